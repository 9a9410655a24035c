"""Detection rate, delay, false alarms, and what acted, by hand-made rows."""

from typing import Any

import polars as pl
import pytest

from nappingrl.report.alarms import acted_numbers, alarm_numbers
from nappingrl.trials.notes import notes_of


def rows(*trials: list[tuple[int, bool, int | None]], length: int = 10) -> pl.DataFrame:
    """Trials as lists of (episode, detected, step of the alarm)."""
    return pl.DataFrame(
        [
            {
                "trial": f"t{i}", "episode": episode, "phase": "pre" if episode < 0 else "novel", "length": length,
                "detected": detected, "detected_step": step,
            }
            for i, trial in enumerate(trials)
            for episode, detected, step in trial
        ],
        schema_overrides={"detected_step": pl.Int32},
    )  # fmt: skip


PROMPT = [(-1, False, None), (0, True, 3), (1, True, None)]
LATE = [(-1, False, None), (0, False, None), (1, True, 5)]
MISSED = [(-1, False, None), (0, False, None), (1, False, None)]
FALSE = [(-1, True, 2), (0, True, None), (1, True, None)]


@pytest.mark.parametrize(
    ("trials", "rate", "delay", "false"),
    [
        ([PROMPT], 1.0, 3.0, 0),
        ([PROMPT, LATE], 1.0, 9.0, 0),  # the median of 3 and 15
        ([PROMPT, MISSED, MISSED, MISSED], 0.25, 3.0, 0),
        ([MISSED], 0.0, None, 0),
        ([PROMPT, FALSE], 1.0, 3.0, 1),  # what was alarmed before says nothing of the novelty
        ([FALSE], None, None, 1),
    ],
)
def test_alarms(trials: list[Any], rate: float | None, delay: float | None, false: int) -> None:
    numbers = alarm_numbers(rows(*trials), "gravity")
    assert numbers == {"detection_rate": rate, "detection_delay": delay, "false_alarms": false}


def test_without_a_novelty_every_alarm_is_false() -> None:
    numbers = alarm_numbers(rows(PROMPT, LATE, MISSED), "none")
    assert numbers == {"detection_rate": None, "detection_delay": None, "false_alarms": 2}


def test_what_acted_and_why_not() -> None:
    table = rows(PROMPT, LATE).with_columns(
        pl.Series("acted", ["", "", "foresight", "", "", ""]),
        pl.Series("why_not", ["", "too dear", "", "", "", "hurt"]),
    )
    numbers = acted_numbers(table)
    assert numbers == {"acted": {"agent": 3, "foresight": 1}, "why_not": {"hurt": 1, "too dear": 1}}
    assert acted_numbers(rows(PROMPT)) == {"acted": {}, "why_not": {}}  # rows that were written before the columns came


def test_a_run_notes_why_the_agent_acted() -> None:
    table = rows(PROMPT, LATE).with_columns(
        pl.Series("why_not", ["", "too dear", "too dear", "", "", "hurt"]),
        status=pl.lit("ok"),
        open_regions=pl.lit(0),
    )
    spec = {"method": "foresight", "detector": "residual", "novelty": "gravity"}
    assert notes_of(spec, table) == [
        "the frozen agent acted in 3 of 3 episodes after the alarm; most often because too dear"
    ]
