"""Live SB3 models: plain ones become numpy agents, all others run in torch; both act as predict() does."""

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO, RecurrentPPO
from stable_baselines3.common.torch_layers import FlattenExtractor
from torch import nn

from nappingrl import agents
from nappingrl.agents.mlp import MlpAgent
from nappingrl.agents.observations import as_batch
from nappingrl.agents.sb3.live import LiveSB3Agent
from nappingrl.errors import BadAgentError, BadObservationError

KINDS = ["ppo", "dqn", "a2c", "qrdqn", "trpo"]
IMAGE = spaces.Box(0, 255, (3, 36, 36), np.uint8)
MIXED = spaces.Dict({"camera": IMAGE, "speed": spaces.Box(-1, 1, (2,), np.float32), "gear": spaces.Discrete(4)})


class Scaled(FlattenExtractor):
    """A feature extractor without weights, which a state dict does not show."""

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Half of it."""
        return super().forward(observations) * 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_plain_models_become_numpy(kind: str, make_model: Any, parity: Any, observations: NDArray[np.float32]) -> None:
    """The usual policies are exported; the model and its policy give the same agent."""
    model = make_model(kind)
    agent = agents.load(model)
    assert isinstance(agent, MlpAgent)
    assert (agent.name, agent.source) == (kind, None)
    assert agent.hyperparameters()["gamma"] == 0.99
    assert agents.load(model.policy).sha256 == agent.sha256
    assert agents.load(agent) is agent
    parity(agent, model, observations)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{"activation_fn": nn.ELU}, {"features_extractor_class": Scaled}])
def test_other_networks_run_in_torch(
    kind: str, options: dict[str, Any], make_model: Any, parity: Any, observations: NDArray[np.float32]
) -> None:
    """What numpy does not have goes through torch."""
    model = make_model(kind, policy_kwargs=options)
    agent = agents.load(model)
    assert isinstance(agent, LiveSB3Agent)
    assert agent.observation_shape == (4,)
    assert agent.weights().keys() == model.policy.state_dict().keys()
    assert agent.hyperparameters()["gamma"] == 0.99
    parity(agent, model, observations)
    with pytest.raises(BadObservationError, match="shape"):
        agent.forward(observations[:, :3])
    with pytest.raises(BadObservationError, match="nan"):
        agent.forward(np.full((1, 4), np.nan, np.float32))
    with pytest.raises(BadObservationError, match="dictionary"):
        agent.forward({"a": observations})
    assert agent.forward(observations[:0]).preferences.shape == (0, 2)


def test_changed_layers_run_in_torch(make_model: Any, parity: Any, observations: NDArray[np.float32]) -> None:
    """A layer added by hand is not overlooked."""
    model = make_model("ppo")
    model.policy.mlp_extractor.policy_net.append(nn.LayerNorm(64))
    agent = agents.load(model)
    assert isinstance(agent, LiveSB3Agent)
    parity(agent, model, observations)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("space", [IMAGE, MIXED], ids=["image", "dictionary"])
def test_images_and_dictionaries(
    kind: str, space: spaces.Space[Any], make_model: Any, make_batch: Any, constant: Any, parity: Any
) -> None:
    """Image and dictionary observations work, in any batch, and a row's bits do not depend on its batch."""
    mixed = isinstance(space, spaces.Dict)
    options: dict[str, Any] = {"policy_kwargs": {"normalize_images": True}}
    model = make_model(kind, constant(space), "MultiInputPolicy" if mixed else "CnnPolicy", **options)
    agent = agents.load(model)
    assert isinstance(agent, LiveSB3Agent)
    assert (agent.n_actions, agent.observation_shape) == (3, None if mixed else (3, 36, 36))
    observations = make_batch(space, 11, seed=9)
    parity(agent, model, observations)
    whole = agent.forward(observations)

    def rows(which: Any) -> Any:
        return {key: value[which] for key, value in observations.items()} if mixed else observations[which]

    for which in ([7], [10, 7, 3], list(range(10, -1, -1))):
        part = agent.forward(rows(which))
        np.testing.assert_array_equal(part.model_states, whole.model_states[which])
        np.testing.assert_array_equal(part.preferences, whole.preferences[which])
    if mixed:
        with pytest.raises(BadObservationError, match="camera"):
            agent.forward({"speed": observations["speed"]})
        with pytest.raises(BadObservationError, match="lengths"):
            agent.forward(observations | {"gear": observations["gear"][:2]})
    else:
        last = agent.forward(np.moveaxis(observations, 1, -1))
        np.testing.assert_array_equal(last.preferences, whole.preferences)


def test_discrete_observations(make_model: Any, make_batch: Any, constant: Any, parity: Any) -> None:
    """One-hot observations are encoded as SB3 does."""
    model, states = make_model("dqn", constant(spaces.Discrete(6))), make_batch(spaces.Discrete(6), 40)
    agent = agents.load(model)
    parity(agent, model, as_batch(agent, states)[0], fed=states)


def test_models_that_are_refused() -> None:
    """Recurrent models have a memory that one forward pass does not show; masks are no matter."""
    env = gymnasium.make("CartPole-v1")
    with pytest.raises(BadAgentError, match="recurrent"):
        agents.load(RecurrentPPO("MlpLstmPolicy", env, device="cpu"))
    assert agents.load(MaskablePPO("MlpPolicy", env, device="cpu")).n_actions == 2
    with pytest.raises(BadAgentError, match="TorchAgent"):
        agents.load(nn.Linear(3, 2))
