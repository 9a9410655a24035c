"""How benchmarks/detection.py counts, on hand-made rows."""

from typing import Any

import polars as pl
import pytest

from benchmark_scripts import load_benchmark


@pytest.fixture(scope="module")
def benchmark() -> Any:
    return load_benchmark("detection")


def rows(*alarms: tuple[int, int] | None) -> pl.DataFrame:
    """Trials of 2+4 episodes of 10 steps each with their first alarms (episode, step)."""
    return pl.DataFrame(
        [
            {
                "agent": "a",
                "trial": str(i),
                "episode": episode,
                "length": 10,
                "detected_step": alarm[1] if alarm is not None and alarm[0] == episode else None,
            }
            for i, alarm in enumerate(alarms)
            for episode in range(-2, 4)
        ],
        schema_overrides={"detected_step": pl.Int32},
    )


def test_delays_count_from_the_novelty_on(benchmark: Any) -> None:
    """An alarm before episode 3 begins comes after 30 steps; one at step 4 of episode 1 after 14."""
    cell = benchmark.measure("d", "x", "all", rows((3, 0), (1, 4), None, None), rows(None))
    assert cell.detected == 0.5
    assert cell.delay_episodes == (2.0, 2.0)
    assert cell.delay_steps == (22.0, 22.0)
    assert (cell.false_alarms, cell.n_watched, cell.without_false_alarm) == (0, 4, 1.0)


def test_a_trial_is_watched_until_its_false_alarm(benchmark: Any) -> None:
    """4 episodes without an alarm, 3 before one, 1 and the one in which it came."""
    cell = benchmark.measure("d", "x", "all", rows((1, 0)), rows(None, (3, 0), (1, 4)))
    assert (cell.false_alarms, cell.n_watched) == (2, 9)
    assert cell.rate == pytest.approx(1000 * 2 / 9)
    assert cell.without_false_alarm == pytest.approx(1 / 3)


def test_an_alarm_before_the_novelty_is_false_and_all_episodes_before_count_then(benchmark: Any) -> None:
    """Trials with a novelty were watched for 2 and 2 episodes before it, the others for 6 and 1."""
    cell = benchmark.measure("d", "x", "all", rows((-1, 5), (1, 0)), rows(None, (-1, 0)))
    assert cell.detected == 0.5
    assert (cell.false_alarms, cell.n_watched) == (2, 11)


def test_without_alarms_there_is_no_delay(benchmark: Any) -> None:
    cell = benchmark.measure("d", "x", "all", rows(None), rows(None))
    assert cell.delay_episodes is cell.delay_steps is None
    assert cell.texts() == ["d", "x", "1", "0.00", "-", "-", "0.00", "4", "1.00"]
