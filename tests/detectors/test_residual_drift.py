"""Changes smaller than the noise of a step that go with what is done; and the worlds in which they were found."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import nappingrl
from detectors.linear_worlds import BEFORE, CALM, Trials
from nappingrl.detectors.residual.config import ResidualConfig
from nappingrl.detectors.residual.drift import BIAS, EVIDENCE, Drift
from nappingrl.detectors.tail_limits import gumbel_limit

NOISY = replace(CALM, noise=0.15, gains=(0.1, 0.2, 0.0))
REVERSED = replace(NOISY, gains=(0.1, -0.2, 0.0))
"""The change, 0.4, is less than three deviations of the noise: no single step is beyond the limit of 5."""
LONG = 80


def noisy_trials(n: int) -> Trials:
    trials = Trials(n)
    assert not trials.play(NOISY, BEFORE, steps=LONG).any()
    return trials


def test_what_no_step_shows_is_seen_in_many() -> None:
    """A weak drift needs two episodes: one odd episode is no change."""
    trials = noisy_trials(5)
    believed = trials.play(REVERSED, 2, steps=LONG)
    assert (believed[:, -1] == 1).all()
    assert (believed[:, 5] == 0).all()
    assert trials.detector.explain(0).split(",")[0] == "speed"


def test_one_odd_episode_is_no_change_and_two_are() -> None:
    """Just beyond the limit in one episode; then in two in a row."""
    drift = Drift(1, 1, 1, ResidualConfig())
    row, sums = np.array([0]), np.zeros((1, 1, 2))
    drift.limit[:], drift.deviation[:] = 10.0, 1.0

    def episode(deviation: float) -> bool:
        sums[:] = deviation
        is_alarm = bool(drift.is_alarm(row, sums)[0])
        drift.end_episode(row)
        drift.forget_episode(row)
        return is_alarm

    assert [episode(deviation) for deviation in (11.0, 1.0, 11.0, 11.0)] == [False, False, False, True]
    assert [episode(deviation) for deviation in (1.0, 13.0)] == [False, True]


def test_sums_are_those_of_the_steps_so_far() -> None:
    """A step that does not count, or has no residual, adds nothing but its weight."""
    rng, config = np.random.default_rng(1), ResidualConfig()
    drift, row = Drift(2, 3, 2, config), np.array([1])
    drift.size[1], drift.deviation[1] = (0.5, 1.0, 0.2), 2.0
    residuals, actions = rng.normal(0, 8, (30, 3)), np.eye(2)[rng.integers(2, size=30)]
    residuals[4, 1] = 0.0
    for t in range(30):
        deviations = drift.update(row, residuals[t : t + 1], np.array([t != 7]), actions[t : t + 1])
    residuals[7] = 0.0
    clipped = np.clip(residuals, -config.max_residual, config.max_residual)
    excess = np.where(residuals == 0, 0.0, np.abs(clipped) - drift.size[1])
    sums = np.column_stack([clipped.T @ actions, excess.sum(axis=0)])
    weights = np.array([*actions.sum(axis=0), 30.0])
    expected = np.abs(sums) / np.sqrt(EVIDENCE + weights + (BIAS * weights) ** 2) / 2.0
    np.testing.assert_allclose(deviations[0], expected, rtol=1e-12)
    assert not drift.sums[0].any()


def test_the_way_back_takes_an_episode_or_two_and_is_not_taken_in_the_new_world() -> None:
    trials = noisy_trials(10)
    trials.play(REVERSED, 2, steps=LONG)
    assert (trials.play(REVERSED, 6, steps=LONG) == 1).mean() > 0.95
    trials.play(NOISY, 2, steps=LONG)
    assert (trials.detector.context == 0).mean() >= 0.8


def test_drift_of_the_unchanged_world_alarms_no_more_often_than_stated() -> None:
    """40 trials of 25 episodes of 80 steps: 0.25 alarms are expected; more than 3 come once in 7000 times."""
    trials = noisy_trials(40)
    believed = trials.play(NOISY, 25, steps=LONG)
    assert int((np.diff(believed, axis=1) > 0).sum()) <= 3


def test_the_limit_of_largest_values_is_exceeded_as_often_as_stated() -> None:
    rng = np.random.default_rng(0)
    limits = gumbel_limit(rng.gumbel(3.0, 0.5, (40, 4000)), 1e-3)
    assert 5e-4 < (rng.gumbel(3.0, 0.5, (1000, 4000)) > limits).mean() < 3e-3


@pytest.mark.parametrize("agent", ["dqn", "ppo"])
def test_every_novelty_of_crossroad_is_seen_in_its_first_episode(agent: str) -> None:
    """All its states touch bounds somewhere: that must not leave it without a step to learn from."""
    rows = nappingrl.run("crossroad", agent, "frozen", novelty="all", detector="residual", trials=3, seed=4).rows
    alarms = rows.filter(pl.col("detected_step").is_not_null()).group_by("trial").agg(pl.col("episode").min())
    assert alarms["episode"].to_list() == [0] * 27
    unchanged = nappingrl.run("crossroad", agent, "frozen", novelty="none", detector="residual", trials=5, seed=4).rows
    assert unchanged["detected_step"].null_count() == unchanged.height


def test_an_agent_that_swings_forever_in_the_same_valley_is_no_novelty() -> None:
    """Episodes of 500 steps, each a little wider or narrower than those before."""
    rows = nappingrl.run(
        "mountaincar", "ppo-unnormalised", "frozen", novelty="none", detector="residual", trials=12, seed=6
    ).rows
    assert rows["detected_step"].null_count() == rows.height


def test_reversed_actions_of_acrobot_are_seen_in_the_first_episode() -> None:
    rows = nappingrl.run("Acrobot-v1", "dqn", "frozen", novelty="action-remap", detector="residual", trials=3, seed=4,
                         protocol="40+1").rows  # fmt: skip
    assert rows.filter(pl.col("episode") == 0)["detected_step"].null_count() == 0
