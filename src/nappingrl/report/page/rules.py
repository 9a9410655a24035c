"""The principles of chosen trials on a page, as rules."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nappingrl.errors import BadRunError
from nappingrl.explain import ReadableRule
from nappingrl.report.page.html import table, text
from nappingrl.report.runs import Loaded
from nappingrl.report.summary import final_levels

MAX_RULES = 40
"""Shown per trial, the most visited first."""
MAX_STORED = 20
"""Stored trials that a page takes from one run."""

_NEEDED = {"situation", "candidates", "wanted", "visits", "best"}


@dataclass(frozen=True, slots=True)
class TrialRules:
    """What one trial learned, and where that is known from."""

    run: str
    trial: str
    origin: str
    rules: tuple[ReadableRule, ...]


def median_trial(run: Loaded) -> str:
    """The id of the trial with the median final level, of those with principles at their end if there are any."""
    levels = final_levels(run.manifest, run.rows).sort("level", maintain_order=True)
    learned = run.rows.filter((pl.col("episode") == pl.col("episode").max()) & (pl.col("regions") > 0))["trial"]
    if len(learned):
        levels = levels.filter(pl.col("trial").is_in(learned.implode()))
    return str(levels["trial"][(len(levels) - 1) // 2])


def stored_tables(run: Loaded) -> dict[str, Path]:
    """The files that `napping replay` wrote, by the id of their trial; files of other runs are passed over."""
    ids = {trial.replace("/", "_"): trial for trial in run.rows["trial"].unique().to_list()}
    files = sorted((run.path / "principles").glob("*.npz"))
    return {ids[file.stem]: file for file in files if file.stem in ids}


def read_table(path: Path) -> dict[str, NDArray[Any]]:
    """A stored table of principles; empty where the method has none."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            found = {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise BadRunError(f"{path} cannot be read; delete it, or write it again with `napping replay`") from error
    if found and not found.keys() >= _NEEDED:
        raise BadRunError(f"{path} holds no principles; delete it, or write it again with `napping replay`")
    return found


def rules_section(chosen: list[TrialRules], why_none: str) -> str:
    """The rules of each trial, one shown at a time where the script runs."""
    if not chosen:
        return f"<p>No rules: {text(why_none)}.</p>"
    also = f"<p>The chosen trial is not shown: {text(why_none)}.</p>" if why_none else ""
    options = "".join(
        f"<option value='trial-{i}'>{text(one.run)}: {text(one.trial)}</option>" for i, one in enumerate(chosen)
    )
    choice = f"<p><label>Trial <select id='trial'>{options}</select></label></p>" if len(chosen) > 1 else ""
    return (
        "<p>Each line is a set of principles that read alike: where the trained agent meets this situation, what it "
        "wanted to do there, and what is done now. The score is the best one seen there, averaged over visits.</p>"
        + also
        + choice
        + "".join(_article(i, one) for i, one in enumerate(chosen))
    )


def _article(number: int, one: TrialRules) -> str:
    shown = one.rules[:MAX_RULES]
    lines = [
        [text(rule.situation), text(rule.wanted), _now(rule), f"{rule.visits:,}", f"{rule.regions:,}",
         f"{rule.score:.2g}"]
        for rule in shown
    ]  # fmt: skip
    head = ("in this situation", "the agent wanted", "now", "visits", "regions", "score")
    more = len(one.rules) - len(shown)
    listed = table(f"Rules of trial {one.trial}", head, lines, "rules") if lines else "<p>It has no principles.</p>"
    return (
        f"<article class='trial' id='trial-{number}'><h3>{text(one.run)}, trial <code>{text(one.trial)}</code></h3>"
        f"<p>{text(one.origin)}.</p>{listed}"
        + (f"<p>And {more} more, less visited: <code>napping replay</code> prints them.</p>" if more else "")
        + "</article>"
    )


def _now(rule: ReadableRule) -> str:
    if rule.now == (rule.wanted,):
        return f"still {text(rule.wanted)}"
    if len(rule.now) == 1:
        return f"<strong>do {text(rule.now[0])}</strong>"
    return f"still trying {text(' or '.join(rule.now))}"
