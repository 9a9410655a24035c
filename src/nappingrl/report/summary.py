"""The rows of a run in numbers: the paper's curves and the summary that `napping run` prints."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nappingrl.report.alarms import acted_numbers, alarm_numbers
from nappingrl.report.metrics import performance, retention
from nappingrl.trials.manifest_record import Manifest
from nappingrl.trials.protocol import RECURRED, RESTORED

LAST = 10
"""Episodes at the end of a trial that count as its final level."""


@dataclass(frozen=True, slots=True)
class Summary:
    """One run in numbers. Curves run over post-novelty episodes 0, 1, ..."""

    domain: str
    agent: str
    method: str
    novelty: str
    trials: int
    seed: int
    median: list[float]
    mean: list[float]
    pre_mean: float | None
    last10_mean: float
    solved: float | None
    """Share of trials; None if the domain does not define when a trial is solved."""
    failed: int | None
    """Trials; None if the domain has no least return."""
    diverged: int | None
    """Trials; this and the next three are None where the rows tell returns only."""
    regions_mean: float | None
    regions_max: int | None
    steps: int | None
    retention: float | None
    """Performance in the restored domain over that before the novelty; None without such a phase."""
    recall: float | None
    """Performance in the first episode of the recurring novelty over the last ten of its first time."""
    detector: str
    detection_rate: float | None
    """Share of the trials without a false alarm in which the novelty was detected; None without a novelty."""
    detection_delay: float | None
    """Median number of steps from the novelty to its detection."""
    false_alarms: int | None
    """Trials with an alarm before the novelty, or any alarm where nothing changes; None: the rows do not tell."""
    acted: dict[str, int]
    """In how many changed episodes each part acted at the end; `agent` is the frozen agent."""
    why_not: dict[str, int]
    """Why the frozen agent acted after an alarm, with the number of episodes."""
    seconds: float
    return_range: tuple[float, float] | None
    role: str
    ceiling: float | None = None
    by_novelty: dict[str, dict[str, Any]] = field(default_factory=dict)


def summarise(manifest: Manifest, rows: pl.DataFrame, seconds: float = 0.0) -> Summary:
    """The summary of one run."""
    spec = manifest.spec
    names = rows["novelty"].unique(maintain_order=True).to_list()
    overall = _numbers(manifest, rows)
    return Summary(
        domain=spec["domain"],
        agent=spec["agent"],
        method=spec["method"],
        novelty=spec["novelty"],
        trials=rows["trial"].n_unique() // len(names),
        seed=spec["seed"],
        detector=spec["detector"],
        seconds=round(seconds, 3),
        return_range=manifest.return_range,
        role=manifest.role,
        ceiling=overall["last10_mean"] if spec["method"] == "oracle" else None,
        by_novelty={name: _numbers(manifest, rows.filter(pl.col("novelty") == name)) for name in names},
        **overall,
    )


def _numbers(manifest: Manifest, rows: pl.DataFrame) -> dict[str, Any]:
    retention_and_recall, acted = _retention_and_recall(manifest, rows), acted_numbers(rows)
    rows = first_time(rows)
    pre, post = rows.filter(pl.col("episode") < 0), rows.filter(pl.col("episode") >= 0)
    by_episode = curve(rows)
    last = final_levels(manifest, rows)
    worst = post.group_by("trial").agg(is_failed(manifest))
    return {
        "median": by_episode["median"].to_list(),
        "mean": by_episode["mean"].to_list(),
        "pre_mean": _number(pre["return"].mean()) if len(pre) else None,
        "last10_mean": _number(last["level"].mean()),
        "solved": None if manifest.solved_level is None else _number(last["solved"].mean()),
        "failed": None if manifest.return_range is None else int(worst["failed"].sum()),
        **_course(rows, post),
        **retention_and_recall,
        **alarm_numbers(rows, manifest.spec["novelty"]),
        **acted,
    }


def _course(rows: pl.DataFrame, post: pl.DataFrame) -> dict[str, int | float | None]:
    """What happened in the episodes besides their returns; None where the rows do not tell."""
    if not {"status", "regions", "length"} <= set(rows.columns):
        return dict.fromkeys(("diverged", "regions_mean", "regions_max", "steps"))
    at_end = post.filter(pl.col("episode") == pl.col("episode").max())
    diverged = rows.group_by("trial").agg(pl.col("status").str.starts_with("diverged").any())
    return {
        "diverged": int(diverged["status"].sum()),
        "regions_mean": _number(at_end["regions"].mean()),
        "regions_max": int(at_end["regions"].to_numpy().max()),
        "steps": int(rows["length"].sum()),
    }


def first_time(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows up to the end of the novelty's first time; all rows of tables without phases."""
    return rows.filter(pl.col("phase").is_in(["pre", "novel"])) if "phase" in rows.columns else rows


def _retention_and_recall(manifest: Manifest, rows: pl.DataFrame) -> dict[str, float | None]:
    """Performance when the original domain is restored (retention), and when the novelty recurs (recall).

    retention: in the restored domain from its third episode on, over that before the novelty. recall: in the first
    episode of the recurring novelty, over the last ten of its first time.
    """
    nothing: dict[str, float | None] = {"retention": None, "recall": None}
    if "phase" not in rows.columns:
        return nothing
    back, again = (rows.filter(pl.col("phase") == phase) for phase in (RESTORED, RECURRED))
    if not len(back) or not len(again):
        return nothing
    span = span_of(manifest, rows)
    novel = rows.filter(pl.col("phase") == "novel")

    def level(part: pl.DataFrame) -> NDArray[np.float64]:
        return performance(np.array([part["return"].mean()]), span)

    before, after = rows.filter(pl.col("phase") == "pre"), back.filter(pl.col("episode") > pl.col("episode").min() + 1)
    learned = novel.filter(pl.col("episode") > pl.col("episode").max() - LAST)
    first = again.filter(pl.col("episode") == pl.col("episode").min())
    return {
        "retention": float(retention(level(before), level(after))) if len(before) and len(after) else None,
        "recall": float(retention(level(learned), level(first))),
    }


def _number(value: Any) -> float:
    return float(value)


def is_rate(manifest: Manifest, rows: pl.DataFrame) -> bool:
    """Whether a return is only passed (1) or not (0): then its mean is a pass rate, and its median means little."""
    return manifest.return_range == (0.0, 1.0) and bool(rows["return"].is_in([0.0, 1.0]).all())


def common_episodes(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of the episodes that all trials have; trials may start at different episodes."""
    latest = int(rows.group_by("novelty", "number").agg(pl.col("episode").min())["episode"].to_numpy().max())
    return rows.filter(pl.col("episode") >= latest)


def span_of(manifest: Manifest, *tables: pl.DataFrame) -> tuple[float, float]:
    """The range of returns: the domain's, or the lowest and highest of these rows if the domain has none."""
    if manifest.return_range is not None:
        return manifest.return_range
    low, high = (f([float(f(rows["return"].to_list())) for rows in tables]) for f in (min, max))
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def is_failed(manifest: Manifest) -> pl.Expr:
    """Of the post-novelty episodes of a trial: whether all score the minimum, as column `failed` (null: not known)."""
    if manifest.return_range is None:
        return pl.lit(None, pl.Boolean).alias("failed")
    return (pl.col("return") <= manifest.return_range[0]).all().alias("failed")


def curve(rows: pl.DataFrame) -> pl.DataFrame:
    """Median, mean and quartiles of the return over trials, per post-novelty episode."""
    value = pl.col("return")
    return (
        rows.filter(pl.col("episode") >= 0)
        .group_by("episode")
        .agg(
            value.median().alias("median"),
            value.mean().alias("mean"),
            value.quantile(0.25).alias("lower"),
            value.quantile(0.75).alias("upper"),
        )
        .sort("episode")
    )


def final_levels(manifest: Manifest, rows: pl.DataFrame) -> pl.DataFrame:
    """Per trial: mean return of the novelty's last ten episodes, and whether that counts as solved (null: unknown).

    Where the novelty comes twice, those of its first time count.
    """
    last = first_time(rows).filter(pl.col("episode") >= 0).filter(pl.col("episode") > pl.col("episode").max() - LAST)
    if manifest.solved_column is None or manifest.solved_level is None:
        solved = pl.lit(None, pl.Boolean)
    else:
        solved = pl.col(manifest.solved_column).cast(pl.Float64).mean() >= manifest.solved_level
    return (
        last.group_by("trial", "novelty", "number", maintain_order=True)
        .agg(pl.col("return").mean().alias("level"), solved.alias("solved"))
    )  # fmt: skip
