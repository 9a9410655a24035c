"""Novelty by one-step prediction: its limit, its false alarms, and worlds that are known again."""

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from detectors.linear_worlds import BEFORE, CALM, FACTS, OTHER, SHIFTED, STEPS, Trials, World, transition
from nappingrl.detectors.residual import Residual, ResidualConfig
from nappingrl.detectors.tail_limits import tail_limit
from nappingrl.errors import BadSpecError
from nappingrl.types import DomainSpec

# ---- the limit ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "index", "most"), [(400, 2.0, 5e-4), (400, 4.0, 5e-4), (40, 4.0, 1e-3), (40, 2.0, 3e-3)])
def test_the_limit_is_exceeded_about_as_often_as_stated(n: int, index: float, most: float) -> None:
    """By Pareto samples, for which the probability is known: the mean over calibrations on n values each.

    Forty values tell little of a heavy tail.
    """
    rng = np.random.default_rng(0)
    limits = np.array([tail_limit(1 + rng.pareto(index, n), 2.5e-4) for _ in range(400)])
    assert 1e-4 < (limits**-index).mean() < most


@pytest.mark.parametrize("n", [40, 400])
@pytest.mark.parametrize("index", [10.0, np.inf])
def test_the_limit_of_a_thin_tail_is_exceeded_at_most_as_often(n: int, index: float) -> None:
    """Of a Pareto tail and of a normal one."""
    rng = np.random.default_rng(0)

    def some(shape: tuple[int, ...]) -> NDArray[np.float64]:
        return 1 + rng.pareto(index, shape) if np.isfinite(index) else np.abs(rng.normal(size=shape))

    limits = np.array([tail_limit(row, 2.5e-4) for row in some((400, n))])
    assert (some((500, 400)) > limits).mean() < 5e-4


def test_the_limit_is_in_the_unit_of_the_values_and_beyond_them() -> None:
    values = np.random.default_rng(0).pareto(2, 60)
    assert tail_limit(1000 * values, 1e-3) == pytest.approx(1000 * tail_limit(values, 1e-3))
    assert tail_limit(values[::-1], 1e-3) == tail_limit(values, 1e-3)
    assert tail_limit(values, 1e-4) > tail_limit(values, 1e-3) > values.max()
    assert np.isfinite(tail_limit(np.zeros(10), 1e-3))
    assert tail_limit(np.array([3.0]), 1e-3) >= 3.0


# ---- false alarms -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tail", "decay"), [(np.inf, 0.5), (4.0, 0.5), (np.inf, 0.9)])
def test_an_unchanged_world_alarms_no_more_often_than_stated(tail: float, decay: float) -> None:
    """200 trials of 30 episodes; 2.5e-4 of 6000 is 1.5: more than 6 come by chance once in a thousand times."""
    before = BEFORE if decay < 0.9 else 20  # where states wander, those that come are not all like those that were
    believed = unchanged_trials(200, 30, replace(CALM, tail=tail, decay=decay), before, false_alarms=2.5e-4)
    assert int((np.diff(believed, axis=1) > 0).sum()) <= 6


def test_the_stated_share_of_false_alarms_is_not_exceeded() -> None:
    """At 5 % an episode: 100 of 2000 episodes, by a factor of three, as calibrations on few episodes err."""
    believed = unchanged_trials(200, 10, CALM, BEFORE, false_alarms=0.05)
    per_episode = believed.reshape(200, 10, STEPS)
    n_alarms = int((np.diff(per_episode, axis=2) > 0).any(axis=2).sum())
    assert n_alarms <= 300


def unchanged_trials(n: int, episodes: int, world: World, before: int, **options: Any) -> NDArray[np.int64]:
    """As `Trials`, with one stream for all: fast."""
    detector, rows, rng = Residual(n, FACTS, ResidualConfig(**options)), np.arange(n), np.random.default_rng(1)
    detector.start(rows, -before)
    believed = []
    for episode in range(-before, episodes):
        states = rng.uniform(-1, 1, (n, 3)).astype(np.float32)
        for t in range(STEPS):
            actions = rng.integers(2, size=n)
            nexts = world.step(rng, states, actions)
            detector.step(rows, transition(states, actions, nexts, t == STEPS - 1))
            states = nexts
            if episode >= 0:
                believed.append(detector.context.copy())
        assert episode >= 0 or not detector.context.any()
        detector.end_episode(rows, np.full(n, float(STEPS)), np.full(n, episode + 1))
    return np.array(believed).T


# ---- worlds -------------------------------------------------------------------------------------------------------


def test_a_changed_world_is_detected_by_its_first_surprise() -> None:
    """Where an episode has ten steps; with longer ones it takes more of them."""
    trials = Trials(3)
    assert not trials.play(CALM, BEFORE + 2).any()
    assert (trials.play(SHIFTED)[:, 1:] == 1).all()


@pytest.mark.parametrize("gain", [-1.3, 3.0, 20.0])
def test_a_change_that_drives_the_states_out_of_their_range_is_detected_too(gain: float) -> None:
    """The larger it is, the more so."""
    trials, calm = Trials(5), replace(CALM, noise=0.02)
    trials.play(calm, BEFORE)
    assert trials.play(replace(calm, gains=(0.1, gain, 0.0)), 2)[:, -1].tolist() == [1] * 5


def test_it_does_not_alarm_before_it_is_calibrated() -> None:
    """Which takes the episodes before the novelty, or forty if the start of the novelty is unknown."""
    assert not Trials(1).play(SHIFTED, BEFORE).any()
    for n_before, expected in ((39, 0), (40, 1)):
        trials = Trials(1, first=0)
        trials.play(CALM, n_before)
        assert trials.play(SHIFTED)[0, -1] == expected


def test_with_too_few_steps_there_is_no_alarm() -> None:
    for n_before, expected in ((4, 0), (6, 1)):  # 40 and 60 steps
        trials = Trials(1, first=-n_before)
        trials.play(CALM, n_before)
        assert trials.play(SHIFTED, 2)[0, -1] == expected


def test_surprises_are_forgotten_when_the_episode_ends() -> None:
    """Where episodes are long, an alarm needs four surprising steps of one episode."""
    trials = Trials(1)
    trials.play(CALM, BEFORE, steps=50)
    assert trials.detector.surprise.n_alarm_steps[0] == 4
    reference = trials.detector.memory.reference(0)
    assert reference is not None
    out = 4 * trials.detector.surprise.limit[0].max() * reference.model.noise.max(axis=0)
    states, actions = np.zeros((1, 3), np.float32), np.zeros(1, np.int64)
    surprising = transition(states, actions, (states + out).astype(np.float32), False)
    for number in range(3):
        for _ in range(3):
            trials.detector.step(trials.rows, surprising)
        trials.detector.drift.forget_episode(trials.rows)
        trials.detector.end_episode(trials.rows, np.ones(1), np.array([number + 1]))
        assert trials.detector.context[0] == 0
    for expected in (0, 0, 0, 1):
        trials.detector.step(trials.rows, surprising)
        assert trials.detector.context[0] == expected


def test_what_changed_is_named_the_most_surprising_first() -> None:
    trials = Trials(2)
    trials.play(CALM, BEFORE)
    assert trials.detector.explain(0) == ""
    trials.play(SHIFTED)
    assert trials.detector.explain(0).split(",")[0] == "speed"
    both = Trials(1)
    both.play(CALM, BEFORE)
    both.play(OTHER)
    assert both.detector.explain(0).split(",")[0] == "height and heat"


def test_the_old_world_is_known_again() -> None:
    trials = Trials(3)
    trials.play(CALM, BEFORE)
    assert (trials.play(SHIFTED, 4)[:, 2:] == 1).all()
    believed = trials.play(CALM, 4)
    assert (believed[:, 0] == 1).all()
    assert (believed[:, 2 * STEPS :] == 0).all()


@pytest.mark.parametrize("noise", [0.005, 0.02])
def test_a_novelty_met_before_gets_its_number_again_and_another_one_another(noise: float) -> None:
    """The changes are 120 and 30 times the noise."""
    trials, calm = Trials(3), replace(CALM, noise=noise)
    trials.play(calm, BEFORE)
    expected = []
    for world, number in ((SHIFTED, 1), (OTHER, 2), (SHIFTED, 1), (OTHER, 2), (SHIFTED, 1)):
        expected.append((trials.play(replace(world, noise=noise), 10)[:, -1].tolist(), [number] * 3))
        assert (trials.play(calm, 4)[:, -1] == 0).all()
    assert [found for found, _ in expected] == [number for _, number in expected]


def test_five_novelties_have_five_numbers() -> None:
    """More than are remembered: the fifth is not taken for the fourth."""
    trials, found = Trials(1, max_contexts=4), []
    trials.play(CALM, BEFORE)
    for gains in ((0.5, 0.2, 0.0), (0.1, -0.4, 0.0), (0.1, 0.2, 0.4), (-0.4, 0.2, 0.0), (0.1, 0.2, -0.4)):
        found.append(int(trials.play(replace(CALM, gains=gains), 10)[0, -1]))
        trials.play(CALM, 4)
    assert len(set(found)) == 5


def test_steps_that_touch_a_bound_say_nothing() -> None:
    """Heat stops at 1: whatever it does there is no novelty."""
    facts = replace(FACTS, observation_high=np.array([np.inf, np.inf, 1.0]))
    detector, rng, rows = Residual(1, facts), np.random.default_rng(0), np.array([0])
    detector.start(rows, -BEFORE)

    def episode(number: int, drift: float) -> None:
        states = rng.uniform(-1, 1, (1, 3)).astype(np.float32)
        for t in range(STEPS):
            actions = rng.integers(2, size=1)
            nexts = np.minimum(
                CALM.step(rng, states, actions) + np.array([0, 0, drift], np.float32), np.array([99, 99, 1], np.float32)
            )
            detector.step(rows, transition(states, actions, nexts, t == STEPS - 1))
            states = nexts
        detector.end_episode(rows, np.ones(1), np.array([number + 1]))

    for number in range(-BEFORE, 0):
        episode(number, 0.0)
    for number in range(5):
        episode(number, 50.0)
    assert detector.context[0] == 0
    episode(5, -0.5)
    assert detector.context[0] == 1


def test_a_flag_that_always_lies_at_a_bound_does_not_blind_it() -> None:
    """Heat is 0 or 1, which are its bounds; the speed's change is seen all the same."""
    facts = replace(
        FACTS, observation_low=np.array([-np.inf, -np.inf, 0]), observation_high=np.array([np.inf, np.inf, 1])
    )
    detector, rng, rows = Residual(1, facts), np.random.default_rng(0), np.array([0])
    detector.start(rows, -BEFORE)
    for number in range(-BEFORE, 2):
        states = np.array([[*rng.uniform(-1, 1, 2), 0]], np.float32)
        for t in range(STEPS):
            actions = rng.integers(2, size=1)
            nexts = (SHIFTED if number >= 0 else CALM).step(rng, states, actions)
            nexts[:, 2] = t > 5
            detector.step(rows, transition(states, actions, nexts, t == STEPS - 1))
            states = nexts
        detector.end_episode(rows, np.ones(1), np.array([number + 1]))
    assert detector.context[0] == 1


# ---- bookkeeping --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "before", [[(CALM, 11)], [(CALM, BEFORE), (SHIFTED, 2)], [(CALM, BEFORE), (SHIFTED, 4), (CALM, 4)]]
)
def test_restored_it_goes_on_identically(before: list[tuple[World, int]]) -> None:
    """While it calibrates, in the changed world, and with a world that it knows."""
    going, restored = Trials(2), Trials(2)
    for world, episodes in before:
        going.play(world, episodes)
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **going.detector.state())
    file.seek(0)
    restored.detector.restore(dict(np.load(file, allow_pickle=False)))
    restored.episode, restored.rngs = going.episode, [np.random.default_rng(key) for key in (5, 6)]
    going.rngs = [np.random.default_rng(key) for key in (5, 6)]
    left = -going.episode if going.episode < 0 else 0
    for world, episodes in ((CALM, left), (SHIFTED, 3), (CALM, 3), (OTHER, 3)):
        np.testing.assert_array_equal(going.play(world, episodes), restored.play(world, episodes))
    assert going.detector.context.tolist() == [2, 2]
    assert [going.detector.explain(row) for row in (0, 1)] == [restored.detector.explain(row) for row in (0, 1)]
    for name, value in going.detector.state().items():
        np.testing.assert_array_equal(value, restored.detector.state()[name])


def test_rows_are_apart() -> None:
    """Alone, together, and in another order: the same; only the row in the changed world alarms."""
    together = Trials(3)
    together.play(CALM, BEFORE, np.array([2, 0, 1]))
    believed = together.play(SHIFTED, 2, np.array([2, 0]))
    assert together.detector.context.tolist() == [1, 0, 1]
    for i, row in enumerate((2, 0)):
        alone = Trials(1, keys=[row])
        alone.play(CALM, BEFORE)
        np.testing.assert_array_equal(alone.play(SHIFTED, 2)[0], believed[i])
        assert alone.detector.explain(0) == together.detector.explain(row)


def test_a_new_trial_begins_afresh() -> None:
    used, fresh = Trials(1), Trials(1)
    used.play(CALM, BEFORE)
    used.play(SHIFTED, 4)
    used.play(CALM, 4)
    for trials in (used, fresh):
        trials.rngs, trials.episode = [np.random.default_rng(9)], -BEFORE
        trials.detector.start(trials.rows, -BEFORE)
    for world, episodes in ((CALM, BEFORE), (SHIFTED, 3), (CALM, 3)):
        np.testing.assert_array_equal(used.play(world, episodes), fresh.play(world, episodes))
    assert used.detector.explain(0) == fresh.detector.explain(0)


def test_continuous_actions() -> None:
    facts = DomainSpec(
        np.full(1, -np.inf), np.full(1, np.inf), 0, STEPS, action_low=np.array([-1.0]), action_high=np.array([1.0])
    )
    detector, rng, rows = Residual.for_domain(1, facts), np.random.default_rng(0), np.array([0])
    detector.start(rows, -BEFORE)
    for number in range(-BEFORE, 1):
        for t in range(STEPS):
            states, actions = rng.normal(size=(1, 1)).astype(np.float32), rng.uniform(-1, 1, (1, 1)).astype(np.float32)
            nexts = 0.9 * states + (0.5 if number < 0 else -0.5) * actions + 0.01 * np.float32(rng.normal())
            detector.step(rows, transition(states, actions, nexts, t == STEPS - 1))
        detector.end_episode(rows, np.ones(1), np.array([number + 1]))
        assert detector.context[0] == (number >= 0)


@pytest.mark.parametrize(
    ("facts", "options", "words"),
    [
        (DomainSpec(np.zeros((3, 3)), np.ones((3, 3)), 2, 9), {}, "one row of numbers"),
        (DomainSpec(np.zeros(600), np.ones(600), 2, 9), {}, "at most 512 observations, .* has 600; use detector 'ks'"),
        (FACTS, {"false_alarms": 0.0}, "false_alarms=0.0"),
        (FACTS, {"false_alarms": 0.5}, r"allowed: .*\(0, 0.1\)"),
    ],
)
def test_what_it_cannot_do_is_refused_in_one_line(facts: DomainSpec, options: dict[str, float], words: str) -> None:
    with pytest.raises(BadSpecError, match=words) as caught:
        Residual(1, facts, ResidualConfig(**options))
    assert "\n" not in str(caught.value)
