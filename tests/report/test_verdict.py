"""The verdict in one sentence, and the description of the trials of a run."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from nappingrl.report.aggregates import aggregate, profile
from nappingrl.report.best_control import find_frozen
from nappingrl.report.intervals import BAND_RESAMPLES
from nappingrl.report.runs import Run
from nappingrl.report.verdict import verdict
from report.rows import make_run, steps

ROLES = {"frozen": "baseline", "controller": "control", "oracle": "oracle"}
LEVELS = np.arange(20.0, 180.0, 4.0)


def make(method: str, levels: Any, agent: str = "ppo", before: int = 200, **options: Any) -> Run:
    returns = [steps((before, 2), (int(level), 12)) for level in levels]
    return make_run("cartpole", agent, method, returns, role=ROLES.get(method, "method"), **options)


def test_the_verdict_is_a_share_of_the_oracle_and_names_the_best_control() -> None:
    runs = [
        make("frozen", [20, 30]), make("napping", [100, 120]), make("controller", [150, 160]), make("random", [5, 5]),
        make("oracle", [200, 200]),
    ]  # fmt: skip
    runs[3] = make_run("cartpole", "ppo", "random", [steps((200, 2), (5, 12))] * 2, role="control")
    shares = {level: f"{(level - 1) / 199:.0%}" for level in (155, 110, 25)}
    assert verdict(runs) == (
        f"CartPole, 1 agent, last 10 episodes: NAPPING ends at {shares[110]} of the oracle, Frozen at {shares[25]}; "
        f"the best control, Controller, at {shares[155]}."
    )


def test_without_an_oracle_the_level_before_the_novelty_counts() -> None:
    found = verdict([make("frozen", [20]), make("napping", [101])])
    assert f"NAPPING ends at {100 / 199:.0%} of the level before the novelty" in found


def test_an_agent_that_failed_before_has_returns_instead() -> None:
    assert "NAPPING ends at 101" in verdict([make("napping", [101], before=1)])


def test_agents_count_alike() -> None:
    runs = [make("napping", [101], "ppo"), make("napping", [1], "dqn"), make("oracle", [200])]
    assert "2 agents" in verdict(runs)
    assert f"NAPPING ends at {50 / 199:.0%} of the oracle" in verdict(runs)


def test_iqm_and_improvement_agree_with_scipy() -> None:
    novelties = ["a"] * 15 + ["b"] * 25
    frozen = make("frozen", np.full(40, 60), novelties=novelties)
    run = make("napping", LEVELS, novelties=novelties)
    found = aggregate(run, [frozen, run])
    assert found.iqm == pytest.approx(stats.trim_mean(LEVELS, 0.25))
    assert found.iqm_interval is not None

    def iqm(first: Any, second: Any, axis: int) -> Any:
        return stats.trim_mean(np.concatenate([first, second], axis=axis), 0.25, axis=axis)

    expected = stats.bootstrap((LEVELS[:15], LEVELS[15:]), iqm, method="percentile", n_resamples=5000,
                               rng=np.random.default_rng(1)).confidence_interval  # fmt: skip
    noise = 0.1 * (expected.high - expected.low) * np.sqrt(1000 / BAND_RESAMPLES)
    assert found.iqm_interval.low == pytest.approx(expected.low, abs=noise)
    assert found.iqm_interval.high == pytest.approx(expected.high, abs=noise)
    assert found.improvement == pytest.approx((LEVELS > 60).mean() + 0.5 * (LEVELS == 60).mean())
    assert found.improvement_interval is not None
    assert found.improvement_interval.low < found.improvement < found.improvement_interval.high


def test_improvement_needs_the_frozen_run_of_the_same_agent_and_draws() -> None:
    run = make("napping", LEVELS)
    others = [make("frozen", LEVELS, "dqn"), make("frozen", LEVELS, seed=3)]
    assert find_frozen(run, others) is None
    assert aggregate(run, others).improvement is None
    frozen = make("frozen", LEVELS)
    assert find_frozen(run, [*others, frozen]) is frozen
    assert aggregate(frozen, [frozen]).improvement is None


def test_a_profile_counts_the_trials_that_reach_a_return() -> None:
    run = make("napping", LEVELS)
    returns, band = profile(run, (1.0, 200.0))
    assert (returns[0], returns[-1]) == (1.0, 200.0)
    np.testing.assert_allclose(band.centre, [(value <= LEVELS).mean() for value in returns])
    assert (band.lower <= band.centre).all()
    assert (band.centre <= band.upper).all()
