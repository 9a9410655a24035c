"""The learners' benchmark."""

import pytest

from nappingrl.benchmark.learners import measure_learners


@pytest.mark.slow
def test_learners_are_faster_than_sb3() -> None:
    """Bounds far below the values on an idle machine."""
    progress: list[tuple[int, int]] = []
    measured = measure_learners(lambda done, total: progress.append((done, total)))
    assert progress == [(i, 4) for i in range(5)]
    assert measured["dqn_64_speedup"] > 4
    assert measured["ppo_64_speedup"] > 4
    assert measured["dqn_256_speedup"] > 1.5
    assert measured["dqn_256_over_products"] > 0.5
    assert measured["online_trial_speedup"] > 1.5
