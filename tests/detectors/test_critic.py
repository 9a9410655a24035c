"""The detectors that ask the agent's critic."""

from typing import Any

import numpy as np
import pytest

from nappingrl.agents.base import Agent
from nappingrl.detectors.auto import AutoDetector
from nappingrl.detectors.critic import Critic
from nappingrl.types import Decision, DomainSpec, Floats, Observations, Transition
from nappingrl.world_model.memory import TransitionMemory

DOMAIN = DomainSpec(np.full(1, -np.inf), np.full(1, np.inf), n_actions=2, horizon=10)


class Promising(Agent):
    """An agent whose critic expects as much as the observation says."""

    gamma = 0.5
    no_critic = ""

    def __init__(self) -> None:
        pass

    def forward(self, observations: Observations) -> Decision:
        raise NotImplementedError

    def values(self, observations: Observations) -> Floats:
        return np.asarray(observations[:, 0], np.float64)


class Silent(Promising):
    """An agent without a critic."""

    no_critic = "it has no critic that can be read"


def detector(kind: Any, agent: Agent, episode: int = 0) -> Any:
    made = kind.for_domain(1, DOMAIN)
    made.own_memory = TransitionMemory(1, DOMAIN)
    made.connect(made.own_memory, agent)
    made.start(np.array([0]), episode)
    return made


def play(made: Any, promised: float, rewards: list[float], number: int = 0, rest: float = 0.0) -> bool:
    """One episode; `rest`: what the critic expects from its last state, if it is truncated."""
    row = np.array([0])
    for i, reward in enumerate(rewards):
        is_last = i == len(rewards) - 1
        observations = np.full((1, 1), promised, np.float32)
        decision = Decision(np.zeros(1, np.int64), np.zeros((1, 0), np.float32), np.zeros((1, 2), np.float32))
        step = Transition(
            observations, decision, np.zeros(1, np.int64), np.full((1, 1), rest, np.float32), np.array([reward]),
            np.array([is_last and not rest]), np.array([is_last and bool(rest)]),
        )  # fmt: skip
        made.own_memory.add(row, step, np.array([False]))
        made.step(row, step)
    made.end_episode(row, np.array([sum(rewards)]), np.array([number + 1]))
    return bool(made.context[0])


@pytest.mark.parametrize("kind", [Critic, AutoDetector])
def test_three_broken_promises_in_a_row_raise_an_alarm(kind: Any) -> None:
    made = detector(kind, Promising())
    assert [play(made, 10.0, [1.0, 1.0], number) for number in range(3)] == [False, False, True]
    assert "critic" in made.explain(0)


def test_a_kept_promise_in_between_raises_none() -> None:
    made = detector(Critic, Promising())
    kept = [8.0, 4.0]  # 8 + 0.5 * 4 = 10
    alarms = [play(made, 10.0, rewards) for rewards in ([1.0], [1.0], kept, [1.0], [1.0])]
    assert not any(alarms)


def test_costs_are_promises_too() -> None:
    made = detector(Critic, Promising())
    assert not any(play(made, -10.0, [-12.0]) for _ in range(5))
    assert [play(made, -10.0, [-14.0]) for _ in range(3)] == [False, False, True]


def test_a_truncated_episode_counts_what_the_critic_expects_from_its_end() -> None:
    made = detector(Critic, Promising())
    assert not any(play(made, 10.0, [5.0], rest=10.0) for _ in range(5))


def test_episodes_that_the_protocol_declares_unchanged_raise_none() -> None:
    made = detector(Critic, Promising(), episode=-5)
    assert not any(play(made, 10.0, [1.0], number) for number in range(-5, -1))
    assert play(made, 10.0, [1.0], 0)


def test_an_agent_without_a_critic_is_reported() -> None:
    made = detector(Critic, Silent())
    assert made.status(0) == "cannot alarm: it has no critic that can be read"
    assert not any(play(made, 10.0, [1.0]) for _ in range(5))


def test_the_critic_is_silent_once_there_is_a_reference() -> None:
    made = detector(AutoDetector, Promising(), episode=0)
    made.residual._is_calibrated[:] = True
    assert not any(play(made, 10.0, [1.0], number) for number in range(5))
