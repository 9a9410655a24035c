"""What the rows of a run say that a user would otherwise miss: a method that had nothing to do, steps left out."""

from typing import Any

import polars as pl

from nappingrl.registry import methods
from nappingrl.trials.protocol import CHANGED

_COLUMNS = {"trial", "phase", "status", "detected", "open_regions"}


def notes_of(spec: dict[str, Any], rows: pl.DataFrame) -> list[str]:
    """One line for each reason to doubt that the run shows adaptation; none for rows that others wrote."""
    if not set(rows.columns) >= _COLUMNS or spec["method"] not in methods:
        return []
    return [*_dropped(rows), *_waiting(spec, rows), *_idle(rows)]


def suspect(spec: dict[str, Any], rows: pl.DataFrame) -> str:
    """The id of a trial in which the method may have had nothing to do although there was an alarm; empty: none.

    Rows do not show whether any action failed, only that no principle was ever open; replay the trial to know.
    """
    if not set(rows.columns) >= _COLUMNS or not methods.get(spec["method"]).takes_score or rows["open_regions"].sum():
        return ""
    alarmed = rows.filter(pl.col("detected") & pl.col("phase").is_in(CHANGED))
    return str(alarmed["trial"][0]) if len(alarmed) else ""


def _dropped(rows: pl.DataFrame) -> list[str]:
    counts = rows["status"].str.extract(r"dropped (\d+)").cast(pl.Int64).drop_nulls()
    if not len(counts):
        return []
    return [
        f"{counts.sum()} steps in {len(counts)} episodes were left out: numbers that are not finite or absurdly large; "
        "returns do not count their rewards"
    ]


def _waiting(spec: dict[str, Any], rows: pl.DataFrame) -> list[str]:
    """Whether the detector never alarmed; no alarm is expected where nothing changes."""
    method = methods.get(spec["method"])
    changed = rows.filter(pl.col("phase").is_in(CHANGED))
    if not method.needs_alarm or method.is_privileged or spec["novelty"] == "none" or changed["detected"].any():
        return []
    return [
        f"{spec['method']} acted as the frozen agent in all {rows['trial'].n_unique()} trials: "
        f"detector '{spec['detector']}' raised no alarm"
    ]


def _idle(rows: pl.DataFrame) -> list[str]:
    """Whether the frozen agent acted after an alarm, and the commonest reason; a guard may have stopped the method."""
    if "why_not" not in rows.columns:
        return []
    changed = rows.filter(pl.col("phase").is_in(CHANGED) & pl.col("detected"))
    reasons = changed.filter(pl.col("why_not") != "")["why_not"]
    if not len(reasons):
        return []
    commonest = str(reasons.mode().sort()[0])
    return [
        f"the frozen agent acted in {len(reasons)} of {len(changed)} episodes after the alarm; most often because "
        f"{commonest}"
    ]
