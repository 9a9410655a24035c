"""Any torch module with a named layer as embedding."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from nappingrl import agents
from nappingrl.agents.torch_agent import TorchAgent
from nappingrl.errors import BadAgentError, BadObservationError, UnknownNameError


class Network(nn.Module):
    """A body, a head, and a dropout that must not act."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body = nn.Sequential(nn.Linear(4, 12), nn.Tanh(), nn.Dropout(0.5))
        self.head = nn.Linear(12, 3)
        self.unused = nn.Linear(1, 1)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """(m, 3) preferences."""
        return self.head(self.body(observations))  # type: ignore[no-any-return]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_decision(dtype: torch.dtype, observations: NDArray[np.float32]) -> None:
    """Preferences are the module's output, model states the output of the layer."""
    network = Network().to(dtype)
    agent = TorchAgent(network, embedding="body", observation_shape=(4,), name="mine")
    assert (agent.n_actions, agent.embedding_dim, agent.name) == (3, 12, "mine")
    decision = agent.forward(observations)
    network.eval()
    with torch.no_grad():
        given = torch.from_numpy(observations).to(dtype)
        states, preferences = network.body(given).numpy(), network(given).numpy()
    np.testing.assert_allclose(decision.model_states, states, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(decision.preferences, preferences, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(decision.actions, preferences.argmax(axis=1))
    assert decision.model_states.dtype == decision.preferences.dtype == np.float32
    assert agents.load(agent) is agent


def test_rows_do_not_depend_on_their_batch(observations: NDArray[np.float32]) -> None:
    """Alone or anywhere in a batch: the same bits."""
    agent = TorchAgent(Network(), "body.1")
    assert agent.embedding_dim == 0
    whole = agent.forward(observations)
    assert agent.embedding_dim == 12
    for row in (0, 7, 100, 256):
        alone = agent.forward(observations[row : row + 1])
        np.testing.assert_array_equal(alone.preferences[0], whole.preferences[row])
        np.testing.assert_array_equal(alone.model_states[0], whole.model_states[row])


def test_hash_and_weights() -> None:
    """The hash follows the parameters."""
    network = Network()
    first = TorchAgent(network, "body")
    assert first.sha256 == TorchAgent(Network(), "body").sha256
    assert first.weights()["head.bias"].shape == (3,)
    with torch.no_grad():
        network.head.bias[1] += 1
    assert TorchAgent(network, "body").sha256 != first.sha256


def test_dictionary_observations() -> None:
    """A module may take a dictionary of tensors; integers stay integers."""

    class Both(Network):
        def forward(self, observations: Any) -> torch.Tensor:
            assert observations["n"].dtype == torch.int64
            return super().forward(observations["x"]) + observations["n"][:, None]

    agent = TorchAgent(Both(), "body")
    observations: Any = {"x": np.ones((9, 4)), "n": np.arange(9)}
    assert agent.forward(observations).preferences.shape == (9, 3)


def test_mistakes(observations: NDArray[np.float32]) -> None:
    """Each mistake is one line that says what to do."""
    with pytest.raises(UnknownNameError, match="Did you mean 'body'"):
        TorchAgent(Network(), embedding="bodi")
    with pytest.raises(BadAgentError, match="layer 'unused' gave a NoneType"):
        TorchAgent(Network(), "unused", observation_shape=(4,))
    with pytest.raises(BadAgentError, match="3 preferences, not 5"):
        TorchAgent(Network(), "body", n_actions=5, observation_shape=(4,))
    with pytest.raises(BadAgentError, match=r"gave a tensor of shape \(8, 2, 1\)"):
        TorchAgent(nn.Sequential(nn.Linear(4, 2), nn.Unflatten(1, (2, 1))), "0", observation_shape=(4,))
    agent = TorchAgent(Network(), "body", observation_shape=(4,))
    with pytest.raises(BadObservationError, match="shape"):
        agent.forward(observations[:, :2])
    with pytest.raises(BadObservationError, match="inf"):
        agent.forward(np.full((2, 4), np.inf, np.float32))
