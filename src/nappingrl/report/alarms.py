"""What the detector noticed and what acted, over the trials of a run."""

from typing import Any

import polars as pl

from nappingrl.trials.protocol import CHANGED

AGENT = "agent"
"""The frozen agent, among what acted."""
_PRE = pl.col("episode") < 0


def alarm_numbers(rows: pl.DataFrame, novelty: str) -> dict[str, Any]:
    """Detection rate, delay and false alarms of the novelty's first time.

    A false alarm is one before the novelty, or any if nothing changes. The rate is over the other trials; the delay is
    the median number of steps from the beginning of the first changed episode. All are None where the rows do not tell.
    """
    if "detected" not in rows.columns:
        return {"detection_rate": None, "detection_delay": None, "false_alarms": None}
    is_early = pl.lit(True) if novelty == "none" else _PRE
    by_trial = rows.group_by("trial").agg((pl.col("detected") & is_early).any().alias("false"))
    is_false = int(by_trial["false"].sum())
    post = rows.filter(~_PRE).join(by_trial.filter(~pl.col("false")), on="trial")
    if novelty == "none" or not len(post):
        return {"detection_rate": None, "detection_delay": None, "false_alarms": is_false}
    found = post.group_by("trial").agg(pl.col("detected").any())
    return {
        "detection_rate": float(found["detected"].mean()),  # type: ignore[arg-type]
        "detection_delay": _delay(post),
        "false_alarms": is_false,
    }


def _delay(post: pl.DataFrame) -> float | None:
    if "detected_step" not in post.columns or not post["detected"].any():
        return None
    played = post.sort("episode").with_columns(
        (pl.col("length").cum_sum() - pl.col("length")).over("trial").alias("start")
    )
    first = played.filter(pl.col("detected")).group_by("trial", maintain_order=True).first()
    delay = (first["start"] + first["detected_step"].fill_null(0)).median()
    return float(delay)  # type: ignore[arg-type]


def acted_numbers(rows: pl.DataFrame) -> dict[str, Any]:
    """In how many changed episodes each part acted, and why the frozen agent did after an alarm, with episodes."""
    if not {"acted", "why_not", "phase"} <= set(rows.columns):
        return {"acted": {}, "why_not": {}}
    changed = rows.filter(pl.col("phase").is_in(CHANGED))
    idle = changed.filter(pl.col("detected") & (pl.col("acted") == "") & (pl.col("why_not") != ""))
    return {"acted": _counts(changed["acted"]), "why_not": _counts(idle["why_not"])}


def _counts(values: pl.Series) -> dict[str, int]:
    """How often each text occurs, the commonest first."""
    counts = values.alias("text").value_counts(sort=True, name="n").sort("n", "text", descending=[True, False])
    return {text or AGENT: n for text, n in counts.iter_rows()}
