"""The measurement of the learners."""

import pytest

from nappingrl.benchmark.learners import measure_learners


@pytest.mark.slow
def test_learners_are_faster_than_sb3() -> None:
    """Bounds far below what a quiet machine gives."""
    told: list[tuple[int, int]] = []
    found = measure_learners(lambda done, total: told.append((done, total)))
    assert told == [(i, 4) for i in range(5)]
    assert found["dqn_64_speedup"] > 4
    assert found["ppo_64_speedup"] > 4
    assert found["dqn_256_speedup"] > 1.5
    assert found["online_trial_speedup"] > 1.5
