"""The Evals, by hand-made transitions."""

from collections.abc import Sequence
from dataclasses import FrozenInstanceError
from math import inf

import numpy as np
import pytest

from nappingrl.domains.cartpole import CartPole
from nappingrl.domains.mountaincar import MountainCar
from nappingrl.score import Score, reward_score

LEFT, COAST, RIGHT = range(3)


def judge(
    score: Score, before: Sequence[float], action: int, after: Sequence[float], reward: float = 1.0, end: bool = False
) -> float:
    """The score of one transition."""
    found = score(
        np.array([before], np.float32),
        np.array([action]),
        np.array([after], np.float32),
        np.array([reward]),
        np.array([end]),
    )
    return float(found[0])


def test_a_score_calls_its_function_with_whole_batches() -> None:
    seen = []
    score = Score("mine", lambda *parts: (seen.append(parts), parts[3] * 2)[1], threshold=0.5)
    parts = np.ones((3, 2), np.float32), np.arange(3), np.zeros((3, 2), np.float32), np.arange(3.0), np.ones(3, bool)
    np.testing.assert_array_equal(score(*parts), [0.0, 2.0, 4.0])
    assert all(given is came for given, came in zip(parts, seen[0], strict=True))
    assert (score.threshold, score.supremum) == (0.5, inf)


def test_a_score_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        reward_score().threshold = 1.0  # type: ignore[misc]


def test_reward_score() -> None:
    score = reward_score(threshold=-0.5, supremum=3.0)
    assert (score.name, score.threshold, score.supremum) == ("reward", -0.5, 3.0)
    assert judge(score, [0.0], 0, [0.0], reward=2.5) == 2.5


@pytest.mark.parametrize(
    ("k", "angle", "speed", "following", "expected"),
    [
        (0.3, 0.1, 0.0, 0.5, -0.5),  # leans right, is pushed further to the right
        (0.3, 0.1, 0.0, -0.5, 0.5),
        (0.3, -0.1, 0.0, 0.5, 0.5),
        (0.3, 0.1, -0.5, -0.75, -0.25),  # 0.1 - 0.15 < 0: heads left, and is turned more to the left
        (0.1, 0.1, -0.5, -0.75, 0.25),  # 0.1 - 0.05 > 0: still heads right
    ],
)
def test_push_back(k: float, angle: float, speed: float, following: float, expected: float) -> None:
    """-sgn(theta + k w)(w' - w)."""
    score = CartPole.spec.scores[f"push-back-{k:g}"]
    assert judge(score, [9, 9, angle, speed], 0, [-9, -9, 9, following]) == pytest.approx(expected)
    assert score.threshold == 0
    assert score.supremum == inf


def test_terminal() -> None:
    score = CartPole.spec.scores["terminal"]
    assert judge(score, [0] * 4, 0, [0] * 4, end=True) == -1
    assert judge(score, [0] * 4, 0, [0] * 4, end=False) == 1
    assert (score.threshold, score.supremum) == (0, 1)


def test_angle_and_lean_must_drop() -> None:
    before, after = [0, 0, -0.2, 0.5], [0, 0, 0.1, -1.0]
    assert judge(CartPole.spec.scores["angle-drop"], before, 0, after) == pytest.approx(0.1)
    assert judge(CartPole.spec.scores["lean-drop-0.2"], before, 0, after) == pytest.approx(0.1 - 0.1)
    assert judge(CartPole.spec.scores["lean-drop-0.2"], [0, 0, 0.2, 0.5], 0, after) == pytest.approx(0.3 - 0.1)


@pytest.mark.parametrize(
    ("action", "velocity", "expected"),
    [(RIGHT, 0.01, 1), (LEFT, -0.01, 1), (RIGHT, -0.01, -1), (LEFT, 0.01, -1), (COAST, 0.01, 0), (RIGHT, 0.0, 0)],
)
def test_with_velocity(action: int, velocity: float, expected: float) -> None:
    """(a - 1) sgn(v'), thre = sup = 1."""
    for name in ("with-velocity", "from-rest-right"):
        score = MountainCar.spec.scores[name]
        assert judge(score, [0, 0.02], action, [0, velocity]) == expected
        assert (score.threshold, score.supremum) == (1, 1)


@pytest.mark.parametrize(("velocity", "expected"), [(0.01, 1), (-0.01, -1), (0.0, 0)])
@pytest.mark.parametrize("action", [LEFT, COAST, RIGHT])
def test_from_rest_the_car_must_start_right(action: int, velocity: float, expected: float) -> None:
    assert judge(MountainCar.spec.scores["from-rest-right"], [-0.5, 0.0], action, [-0.5, velocity]) == expected


def test_energy_and_speed_must_grow() -> None:
    faster, energy = MountainCar.spec.scores["faster"], MountainCar.spec.scores["energy"]
    assert judge(faster, [0, -0.02], 0, [0, 0.03]) == pytest.approx(0.01)
    assert judge(energy, [-0.5, -0.02], 0, [-0.5, 0.03]) == pytest.approx((0.03**2 - 0.02**2) / 2)
    climbed = 0.0025 / 3 * (np.sin(3 * 0.2) - np.sin(3 * -0.5))
    assert judge(energy, [-0.5, 0.0], 0, [0.2, 0.0]) == pytest.approx(climbed, rel=1e-5)
