"""Runs in other formats: SB3's Monitor files, the columns of WSU's trial files, TensorBoard."""

import csv
import json
import re
from pathlib import Path

import polars as pl

from nappingrl.errors import BadRunError, MissingExtraError, check_name
from nappingrl.files import defuse
from nappingrl.report.metrics import performance
from nappingrl.report.runs import Run
from nappingrl.report.summary import curve, span_of
from nappingrl.trials.manifest_record import Manifest
from nappingrl.trials.store import make_folder

MAX_NAME = 100
"""Characters of a folder's name."""
FORMATS = ("monitor", "wsu", "tensorboard")

WSU_COLUMNS = (
    "trial_index", "trial_id", "novelty_level", "novelty_difficulty", "novelty_visibility", "episode_index",
    "performance", "novelty_initiated", "novelty_probability", "novelty_threshold",
)  # fmt: skip


def export(run: Run, format: str, out: Path) -> list[Path]:
    """Write a run into the folder `out`; returns the files."""
    check_name("export format", format, FORMATS)
    make_folder(out)
    manifest, rows = run.manifest, run.rows
    if format == "monitor":
        return _monitor(manifest, rows, out)
    return [_wsu(manifest, rows, out / "trials.csv")] if format == "wsu" else [_tensorboard(manifest, rows, out)]


def _monitor(manifest: Manifest, rows: pl.DataFrame, out: Path) -> list[Path]:
    """One <number>.monitor.csv per trial, as `stable_baselines3.common.monitor.load_results(out)` reads them.

    Rows keep no wall-clock values, so `t` counts the steps of the trial so far.
    """
    known = {f"{index}.monitor.csv" for index in range(rows["trial"].n_unique())}
    if others := sorted(file.name for file in out.glob("*.monitor.csv") if file.name not in known):
        raise BadRunError(f"{out} holds {others[0]} of another run; use another --out")
    files = []
    for index, (_, trial) in enumerate(rows.group_by("trial", maintain_order=True)):
        file = out / f"{index}.monitor.csv"
        table = trial.select(
            pl.col("return").alias("r"), pl.col("length").alias("l"), pl.col("length").cum_sum().alias("t"), "episode"
        )
        head = {"t_start": 0.0, "env_id": manifest.spec["domain"], "trial": trial["trial"][0]}
        with file.open("w", encoding="utf-8", newline="") as stream:
            stream.write(f"#{json.dumps(head)}\n")
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(table.columns)
            writer.writerows(table.rows())
        files.append(file)
    return files


def _wsu(manifest: Manifest, rows: pl.DataFrame, file: Path) -> Path:
    """One csv with a line per episode. Performance is mapped to [0, 1]; the probability is 1 once it is detected."""
    table = rows.with_columns(
        pl.col("trial").rle_id().alias("trial_index"),
        pl.col("trial").alias("trial_id"),
        pl.col("novelty").alias("novelty_level"),
        pl.lit(f"strength {manifest.spec['strength']:g}").alias("novelty_difficulty"),
        pl.lit(1 if manifest.spec["detector"] == "given" else 0).alias("novelty_visibility"),
        (pl.col("episode") - pl.col("episode").min().over("trial")).alias("episode_index"),
        pl.Series("performance", performance(rows["return"].to_numpy(), span_of(manifest, rows))),
        (pl.col("episode") >= 0).alias("novelty_initiated"),
        pl.col("detected").cast(pl.Float64).alias("novelty_probability"),
        pl.lit(0.5).alias("novelty_threshold"),
    )
    table.select(WSU_COLUMNS).with_columns(pl.col(pl.String).map_elements(defuse, pl.String)).write_csv(file)
    return file


def _tensorboard(manifest: Manifest, rows: pl.DataFrame, out: Path) -> Path:
    """Scalars over post-novelty episodes: trial/return_median, trial/return_mean, trial/regions, trial/detected."""
    try:
        from tensorboard.summary import Writer
    except ImportError as error:
        raise MissingExtraError(
            f'export to TensorBoard needs {error.name}: pip install "nappingrl[tensorboard]"'
        ) from error
    name = re.sub(r"[^A-Za-z0-9.-]+", "-", manifest.label)[:MAX_NAME].strip(".-")
    folder = out / (name or "run")
    by_episode = curve(rows).join(
        rows.group_by("episode").agg(pl.col("regions").mean(), pl.col("detected").mean()), on="episode"
    )
    writer = Writer(str(folder))
    for row in by_episode.sort("episode").iter_rows(named=True):
        for name in ("median", "mean"):
            writer.add_scalar(f"trial/return_{name}", row[name], row["episode"])
        for name in ("regions", "detected"):
            writer.add_scalar(f"trial/{name}", row[name], row["episode"])
    writer.close()
    return folder
