"""Changes of actions, observations and rewards: rows side by side are as rows alone, in domains and environments."""

from typing import Any

import gymnasium
import numpy as np
import pytest

from domains import toy_envs
from nappingrl.novelties.subject import read_env
from nappingrl.novelties.terms import TERMS, is_transform, neutral_of
from nappingrl.novelties.transformed_env import TransformedEnv
from nappingrl.novelties.transforms import CHANGES, Transforms
from nappingrl.types import DomainSpec

toy_envs.register()
VALUES = {
    "action-remap[0]": 2.0, "action-remap[1]": 0.0, "action-remap[2]": 1.0, "action-delay": 2.0, "action-noise": 0.5,
    "obs-remap[1]": 3.0, "obs-shift": 0.5, "obs-scale[2]": -2.0, "obs-noise[0]": 0.3, "obs-quantise": 0.25,
    "obs-drop[3]": 1.0, "reward-shift": -1.0, "reward-scale": 3.0,
}  # fmt: skip
BOX = {"action-scale[0]": -0.5, "action-shift": 0.25, "action-noise[0]": 0.1}


def domain(env_id: str = "toys/Echo-v0") -> DomainSpec:
    return read_env(gymnasium.spec(env_id))


def rows_of(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


def run(transforms: Transforms, rows: Any, seeds: list[int], steps: int = 8) -> list[Any]:
    """What becomes of the same actions, observations and rewards in each row."""
    transforms.begin(rows, seeds)
    seen = []
    for step in range(steps):
        actions = np.full(len(rows), step % 3)
        observations = np.tile(np.arange(4, dtype=np.float32) + step, (len(rows), 1))
        seen.append(
            np.column_stack(
                [
                    transforms.actions(rows, actions),
                    transforms.observations(rows, observations),
                    transforms.rewards(rows, np.ones(len(rows))),
                ]
            )
        )
    return [np.array([step[i] for step in seen]) for i in range(len(rows))]


def test_every_term_has_its_change() -> None:
    assert list(CHANGES) == [name for name in TERMS if is_transform(name)]


def test_a_row_alone_is_the_row_in_a_batch() -> None:
    subject, names = domain(), list(VALUES)
    many = Transforms(4, names, subject)
    values = np.tile([neutral_of(name, subject) for name in names], (4, 1))
    values[1] = list(VALUES.values())
    values[3] = [*list(VALUES.values())[:4], 0.9, *list(VALUES.values())[5:]]
    many.set(rows_of(0, 1, 2, 3), values)
    together = run(many, rows_of(3, 1, 0), [5, 6, 7])
    for row, seed, place in ((3, 5, 0), (1, 6, 1), (0, 7, 2)):
        alone = Transforms(1, names, subject)
        alone.set(rows_of(0), values[[row]])
        np.testing.assert_array_equal(run(alone, rows_of(0), [seed])[0], together[place])
    plain = together[2]
    np.testing.assert_array_equal(plain[:, 0], np.arange(8) % 3)
    np.testing.assert_array_equal(plain[:, 1:5], np.arange(4) + np.arange(8)[:, None])
    assert (plain[:, 5] == 1).all()
    assert (together[1][:, 5] == 2).all(), "scaled, then shifted, in whichever order they are given"


def test_the_seed_of_an_episode_decides_and_what_waits_is_forgotten() -> None:
    transforms = Transforms(1, list(VALUES), domain())
    transforms.set(rows_of(0), np.array([list(VALUES.values())]))
    first, other, again = (run(transforms, rows_of(0), [seed])[0] for seed in (1, 2, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize(("env_id", "values"), [("toys/Echo-v0", VALUES), ("toys/EchoBox-v0", BOX)])
def test_a_domain_and_an_environment_change_alike(env_id: str, values: dict[str, float]) -> None:
    subject, n = domain(env_id), 10
    batch = Transforms(3, list(values), subject)
    batch.set(rows_of(2), np.array([list(values.values())]))
    env, inner = TransformedEnv(gymnasium.make(env_id), values, subject), gymnasium.make(env_id)
    observation, _ = env.reset(seed=9)
    plain, _ = inner.reset(seed=9)
    batch.begin(rows_of(2), [9])
    np.testing.assert_array_equal(observation, batch.observations(rows_of(2), plain[None])[0])
    for step in range(n):
        action: Any = np.array([step / n], np.float32) if subject.is_continuous else np.int64(step % 3)
        observation, reward, *_ = env.step(action)
        executed = batch.actions(rows_of(2), np.asarray(action)[None])[0]
        plain, paid, *_ = inner.step(executed)
        np.testing.assert_array_equal(observation, batch.observations(rows_of(2), plain[None])[0])
        assert reward == batch.rewards(rows_of(2), np.array([float(paid)]))[0]
        assert not (subject.is_continuous and executed.dtype != np.float32)


def test_one_entry_of_an_action_is_changed() -> None:
    subject = DomainSpec(
        observation_low=np.zeros(2), observation_high=np.ones(2), n_actions=0, horizon=5,
        action_low=np.array([-1, -2], np.float32), action_high=np.array([1, 2], np.float32),
    )  # fmt: skip
    transforms = Transforms(1, ["action-scale[1]", "action-shift[0]"], subject)
    transforms.set(rows_of(0), np.array([[-1.0, 0.75]]))
    actions = np.array([[0.5, 1.5]], np.float32)
    assert transforms.actions(rows_of(0), actions).tolist() == [[1.0, -1.5]]
    assert actions.tolist() == [[0.5, 1.5]], "the agent's own action stays"
