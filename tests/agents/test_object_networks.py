"""Networks over objects, and their training: what is absent is never chosen, and stopping changes nothing."""

import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

import nappingrl
from nappingrl import agents
from nappingrl.agents import zoo
from nappingrl.agents.object_networks import Layout, NetworkAgent, make_network
from nappingrl.agents.torch_agent import to_numpy
from nappingrl.agents.training.masked_dqn import PrioritisedReplayBuffer, Trainer
from nappingrl.agents.training.sb3 import train
from nappingrl.errors import BadAgentError, UnknownNameError

LAYOUT = {"slots": 3, "per_slot": 4, "shared": 2, "per_object": 4}
KINDS = ("dueling", "relational", "convolutional")
PIXELS = 2 * 5 * 6


def about(kind: str) -> dict[str, Any]:
    picture = {"picture": [2, 5, 6], "centre": [2, 3]} if kind == "convolutional" else {}
    return {"kind": kind, "layout": LAYOUT | picture, "sizes": {"width": 16, "embedding": 8}}


def make_agent(kind: str, seed: int = 0) -> NetworkAgent:
    torch.manual_seed(seed)
    return NetworkAgent("test", about(kind), to_numpy(make_network(about(kind)).state_dict()))


def scenes(m: int, there: list[bool], kind: str = "") -> np.ndarray:
    rng = np.random.default_rng(3)
    observations = rng.random((m, 26)).astype(np.float32)
    observations[:, 14:] = np.repeat(there, 4)
    for slot, is_there in enumerate(there):
        observations[:, slot * 4] = is_there
        if not is_there:
            observations[:, slot * 4 : slot * 4 + 4] = 0
    if kind == "convolutional":
        return np.concatenate([observations, rng.integers(0, 2, (m, PIXELS))], axis=1, dtype=np.float32)
    return observations


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("there", [[True, True, True], [False, True, False], [True, False, True]])
def test_only_what_is_there_is_chosen(kind: str, there: list[bool]) -> None:
    decision = make_agent(kind).forward(scenes(40, there, kind))
    assert {int(action) // 4 for action in decision.actions} <= {
        slot for slot, is_there in enumerate(there) if is_there
    }
    absent = np.repeat(~np.array(there), 4)
    assert (decision.preferences[:, absent] < -1e5).all()
    assert (decision.preferences[:, ~absent] > -1e5).all()
    assert decision.model_states.shape == (40, 8 if kind == "dueling" else 3 * 8)


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_scene_still_gives_an_action_and_finite_numbers(kind: str) -> None:
    decision = make_agent(kind).forward(scenes(2, [False, False, False], kind))
    assert np.isfinite(decision.model_states).all()
    assert np.isfinite(decision.preferences).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_alone_has_the_bits_it_has_in_any_batch(kind: str) -> None:
    agent, observations = make_agent(kind), scenes(9, [True, True, False], kind)
    together = agent.forward(observations)
    for i in range(9):
        alone = agent.forward(observations[i : i + 1])
        np.testing.assert_array_equal(alone.model_states[0], together.model_states[i])
        np.testing.assert_array_equal(alone.preferences[0], together.preferences[i])


@pytest.mark.parametrize("kind", ["relational", "convolutional"])
def test_an_object_is_valued_alike_in_every_slot(kind: str) -> None:
    agent, one = make_agent(kind), scenes(1, [True, True, True], kind)
    other = one.copy()
    other[0, :4], other[0, 4:8] = one[0, 4:8], one[0, :4]
    first, second = (agent.forward(scene).preferences[0].reshape(3, 4) for scene in (one, other))
    np.testing.assert_allclose(first[[1, 0, 2]], second, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_embedding_is_the_input_of_the_last_layer(kind: str) -> None:
    """The values follow from it by a linear layer; objects that are absent have no part in it."""
    agent = make_agent(kind)
    decision, weights = agent.forward(scenes(5, [True, False, True], kind)), agent.weights()
    if kind == "dueling":
        advantage = decision.model_states @ weights["advantage.weight"].T + weights["advantage.bias"]
        value = decision.model_states @ weights["value.weight"].T + weights["value.bias"]
        expected = value + advantage - advantage.mean(axis=1, keepdims=True)
    else:
        each = decision.model_states.reshape(5, 3, 8)
        assert (each[:, 1] == 0).all()
        expected = (each @ weights["head.weight"].T + weights["head.bias"]).reshape(5, 12)
    is_possible = np.repeat([True, False, True], 4)
    np.testing.assert_allclose(decision.preferences[:, is_possible], expected[:, is_possible], rtol=1e-4, atol=1e-5)


def test_the_convolutional_network_reads_the_picture_at_the_object() -> None:
    """It uses the picture and the centres of objects, and nothing else of them."""
    agent, one = make_agent("convolutional"), scenes(1, [True, True, True], "convolutional")
    other_sizes, other_place, other_picture = one.copy(), one.copy(), one.copy()
    other_sizes[0, 1], other_sizes[0, 12:14] = 0.5, 0.5
    other_place[0, 2:4] = 1 - one[0, 2:4]
    other_picture[0, 26:] = 1 - one[0, 26:]
    values, sizes, place, picture = (
        agent.forward(scene).preferences[0].reshape(3, 4) for scene in (one, other_sizes, other_place, other_picture)
    )
    np.testing.assert_array_equal(values, sizes)
    assert (values[0] != place[0]).any()
    np.testing.assert_array_equal(values[1:], place[1:])
    assert (values != picture).any(axis=1).all()


def test_weights_of_another_network_are_refused() -> None:
    weights = to_numpy(make_network(about("dueling")).state_dict())
    with pytest.raises(BadAgentError, match="do not fit"):
        NetworkAgent("test", about("relational"), weights)
    with pytest.raises(UnknownNameError, match="Did you mean 'dueling'"):
        make_network(about("duelling"))


def test_layout_splits_and_masks() -> None:
    layout = Layout(**LAYOUT)
    objects, shared, there = layout.split(torch.as_tensor(scenes(2, [True, False, True])))
    assert (objects.shape, shared.shape, there.tolist()) == ((2, 3, 4), (2, 2), [[True, False, True]] * 2)
    assert (layout.n_features, layout.n_observations, layout.n_actions) == (14, 26, 12)


def test_replay_keeps_pictures() -> None:
    replay, seen = PrioritisedReplayBuffer.empty(4, 26 + PIXELS, PIXELS), scenes(3, [True] * 3, "convolutional")
    for i in range(2):
        replay.add(seen[i], 0, 0.0, seen[i + 1], False)
    np.testing.assert_array_equal(replay.seen(np.array([1, 0])), seen[[1, 0]])
    np.testing.assert_array_equal(replay.seen(np.array([1, 0]), is_next=True), seen[[2, 1]])
    plain = PrioritisedReplayBuffer.empty(4, 26)
    plain.add(seen[0, :26], 0, 0.0, seen[1, :26], False)
    np.testing.assert_array_equal(plain.seen(np.array([0])), seen[:1, :26])


def test_replay_samples_by_priority_and_overwrites_the_oldest() -> None:
    replay = PrioritisedReplayBuffer.empty(3, 1)
    for i in range(5):
        replay.add(np.array([i]), i, float(i), np.array([i + 1]), i == 4)
    assert sorted(replay.actions.tolist()) == [2, 3, 4]
    replay.priorities[:] = [0.0, 0.0, 8.0]
    at, weights = replay.sample(50, 1.0, 1.0, np.random.default_rng(0))
    assert set(at.tolist()) == {2}
    assert (weights == 1.0).all()


class Signs(gymnasium.Env[Any, Any]):
    """One step: of the objects that are there, aiming low at the one whose third number is greatest wins."""

    action_space = gymnasium.spaces.Discrete(12)

    def __init__(self, has_picture: bool = False) -> None:
        self._n = 26 + PIXELS * has_picture
        self.observation_space = gymnasium.spaces.Box(0, 1, (self._n,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._seen = self.np_random.random(self._n).astype(np.float32)
        self._seen[26:] = self._seen[26:] > 0.5
        there = self.np_random.permutation([True, True, False])
        self._seen[[0, 4, 8]] = there
        self._seen[14:26] = np.repeat(there, 4)
        return self._seen, {"action_mask": np.repeat(there, 4)}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        best = int(np.argmax(self._seen[[2, 6, 10]] * self._seen[[0, 4, 8]]))
        return self._seen, float(action // 4 == best), True, False, {"action_mask": np.zeros(12, np.bool_)}


def recipe(kind: str, episodes: int) -> dict[str, Any]:
    gymnasium.register("tests/Signs-v0", entry_point=Signs) if "tests/Signs-v0" not in gymnasium.registry else None
    return {
        "env": "tests/Signs-v0",
        "env_options": {"disable_env_checker": True, "has_picture": kind == "convolutional"},
        "seed": 1, "episodes": episodes,
        "evaluate_every": 50,
        "network": about(kind) | {"sizes": {"width": 32, "embedding": 16}},
        "prices": {"object": 0.0, "high": 0.3, "offset": 0.3}, "evaluation": {"episodes": 100, "seed": 5},
        "hyperparameters": {
            "learning_rate": 0.003, "batch_size": 32, "buffer_size": 500, "learning_starts": 32, "gradient_steps": 1,
            "gamma": 0.99, "target_update_interval": 50, "exploration_fraction": 0.6, "exploration_final_eps": 0.05,
            "priority_exponent": 0.6, "least_priority": 0.01, "beta": 0.4, "max_grad_norm": 10.0,
        },
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["dueling", "relational"])
def test_training_learns_the_plainest_action_that_wins(kind: str, tmp_path: Path) -> None:
    trainer = Trainer(recipe(kind, 700), 1)
    trainer.run(tmp_path, None, None)
    trainer.load_best()
    assert trainer.best_rate > 0.8
    env = Signs()
    ways = [trainer.greedy(env.reset(seed=i)[0]) % 4 for i in range(50)]
    assert ways.count(0) >= 40, "low and in the middle"
    assert not (tmp_path / "checkpoint.pt").exists(), "a finished training needs none"


class StopError(Exception):
    """In place of Ctrl-C."""


@pytest.mark.parametrize("kind", ["dueling", "convolutional"])
def test_a_stopped_training_goes_on_to_the_same_weights(kind: str, tmp_path: Path) -> None:
    whole = Trainer(recipe(kind, 150), 1)
    whole.run(tmp_path / "whole", None, None)

    def stop(done: int, total: int) -> None:
        if done == 120:
            raise StopError

    with pytest.raises(StopError):
        Trainer(recipe(kind, 150), 1).run(tmp_path / "cut", stop, None)
    again = Trainer(recipe(kind, 150), 1)
    seen: list[int] = []
    again.run(tmp_path / "cut", lambda done, total: seen.append(done), None)
    assert seen[0] == 101, "from the checkpoint at 100"
    for one, other in zip(whole.network.parameters(), again.network.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    other_seed = Trainer(recipe(kind, 150), 2)
    other_seed.save(tmp_path / "cut" / "checkpoint.pt")
    fresh = Trainer(recipe(kind, 150), 1)
    fresh.restore(tmp_path / "cut" / "checkpoint.pt")
    assert fresh.episode == 0, "a checkpoint of another seed is left alone"
    torch.save({"recipe": repr(fresh.recipe), "seed": 1, "counts": []}, tmp_path / "cut" / "checkpoint.pt")
    with pytest.raises(BadAgentError, match=r"checkpoint '.*' is damaged; delete it"):
        fresh.restore(tmp_path / "cut" / "checkpoint.pt")
    (tmp_path / "cut" / "checkpoint.pt").write_bytes(b"PK damaged")
    with pytest.raises(BadAgentError, match=r"checkpoint '.*' is damaged; delete it"):
        fresh.restore(tmp_path / "cut" / "checkpoint.pt")


def test_a_birds_agent_trains_saves_and_loads(tmp_path: Path) -> None:
    card = train("angrybirds", "dqn-rel", tmp_path, total_steps=3, tensorboard=tmp_path / "tb")
    assert card["episodes"] == 3
    assert set(card["pass_rate"]) == {"episodes", "training levels", "held-out levels"}
    assert list((tmp_path / "tb").rglob("events*"))
    agent = agents.load(tmp_path / "angrybirds-dqn-rel.json")
    assert (agent.n_actions, agent.observation_shape, agent.sha256) == (168, (322,), card["sha256"])
    about = json.loads((tmp_path / "angrybirds-dqn-rel.json").read_text())
    (tmp_path / "angrybirds-dqn-rel.json").write_text(json.dumps(about | {"sha256": "0"}))
    with pytest.raises(BadAgentError, match="sha256"):
        zoo.load_card(tmp_path / "angrybirds-dqn-rel.json")


def test_napping_adapts_a_convolutional_embedding(tmp_path: Path) -> None:
    """The raster agent trains on pictures; its card says so, and NAPPING runs on what it embeds."""
    card = train("angrybirds", "dqn-raster", tmp_path, total_steps=2)
    assert (card["domain_options"], card["embedding_dim"]) == ({"observation": "raster"}, 12 * 32)
    agent = str(tmp_path / "angrybirds-dqn-raster.json")
    run = nappingrl.run("angrybirds", agent, "napping", novelty="circumcircle", trials=1, protocol="1+4")
    after = run.rows.filter(run.rows["episode"] >= 0)
    assert after["length"].sum() >= 4
    assert after["regions"].max() >= 1, "an agent that is hardly trained fails"
