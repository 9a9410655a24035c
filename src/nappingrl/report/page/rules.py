"""Page section: what chosen trials learned, as readable rules."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from numpy.typing import NDArray

from nappingrl.errors import BadRunError, BadSpecError, NappingError
from nappingrl.explain import ReadableRule, explained
from nappingrl.files import UnusableFileError, read_arrays, read_file
from nappingrl.registry import methods
from nappingrl.report.page.html import items, table, text
from nappingrl.report.runs import Run

MAX_RULES = 40
"""Shown per trial, the most visited first."""
MAX_STORED = 20
"""Stored trials shown per run."""

MAX_BYTES = 1 << 28
"""Of a stored table, packed and unpacked."""

_NEEDED = {"situation", "candidates", "wanted", "visits", "best"}


@dataclass(frozen=True, slots=True)
class TrialRules:
    """What one trial learned, and how it was found."""

    run: str
    trial: str
    origin: str
    rules: tuple[ReadableRule, ...]
    description: str = ""
    """The rule in force at the end in words, of methods that have one."""


def find_rules(runs: Sequence[Run], trial: str = "") -> tuple[list[TrialRules], list[str]]:
    """The rules of one trial of each method, then of stored trials; and why methods show none.

    `trial` is a number or an id, "none", or empty for the trial with the median final level. Trials that `napping
    replay` has stored are read, others are run again.
    """
    if trial == "none":
        return [], ["not asked for (--trial none)"]
    reasons = {run.method: why_no_rules(run.method) for run in runs}
    learners = [run for run in runs if not reasons[run.method]]
    learners.sort(key=lambda run: run.manifest.role != "method")  # controls come last
    why = [f"{method}: {reason}" for method, reason in reasons.items() if reason]
    why += [f"{run.method}: {run.distrust}" for run in learners if run.distrust]
    learners = [run for run in learners if not run.distrust]
    if trial and not learners:
        raise BadSpecError(f"--trial {trial}: no run here has rules ({'; '.join(why)})")
    shown = []
    for run in _one_per_method(learners, trial):
        try:
            shown.append(_rules_of(run, trial or median_trial(run), is_default=not trial))
        except NappingError as error:
            if trial:
                raise
            why.append(f"{run.method}: {error}")
    return [*shown, *_stored_rules(learners, shown)], why


def why_no_rules(method: str) -> str:
    """Why a page shows no rules of a method; empty: it shows them."""
    return methods.entry(method).no_rules if method in methods else "it is not installed"


def _one_per_method(runs: Sequence[Run], trial: str) -> list[Run]:
    """The first run of each method; those that have the trial, where an id is given."""
    first = list({run.method: run for run in reversed(runs)}.values())[::-1]
    return [run for run in first if trial in run.rows["trial"]] or first


def _stored_rules(runs: Sequence[Run], shown: Sequence[TrialRules]) -> list[TrialRules]:
    """The rules of the trials that `napping replay` has stored, except those shown already."""
    known = {(entry.run, entry.trial) for entry in shown}
    return [
        TrialRules(run.label, trial, f"Read from {_name(file)}", tuple(run.read_rules(read_table(file))))
        for run in runs
        for trial, file in list(stored_tables(run).items())[:MAX_STORED]
        if (run.label, trial) not in known
    ]


def _rules_of(run: Run, trial: str, is_default: bool) -> TrialRules:
    """The rules of one trial: read if it is stored, else run again."""
    chosen = "The trial with the median final level of those with principles; " if is_default else ""
    trials = run.rows.select("number", "trial").unique(maintain_order=True).rows()
    ids = {str(number): name for number, name in reversed(trials)}  # of several novelties: the first, like `replay`
    name = ids.get(trial, trial)
    if (file := stored_tables(run).get(name)) is not None:
        origin = f"{chosen}read from {_name(file)}, which napping replay wrote"
        return TrialRules(run.label, name, _sentence(origin), tuple(run.read_rules(read_table(file))))
    again = run.replay(trial)
    same = "it gave the same rows as stored" if again.is_same else "IT GAVE OTHER ROWS THAN STORED"
    origin = _sentence(f"{chosen}run again for this page: {same}")
    return TrialRules(run.label, again.id, origin, tuple(run.read_rules(again.table)), again.description)


def _name(file: Path) -> str:
    return f"{file.parent.name}/{file.name}"


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def median_trial(run: Run) -> str:
    """The id of the trial with the median final level, of those with principles at their end if there are any."""
    levels = run.levels.sort("level", maintain_order=True)
    learned = run.rows.filter((pl.col("episode") == pl.col("episode").max()) & (pl.col("regions") > 0))["trial"]
    if len(learned):
        levels = levels.filter(pl.col("trial").is_in(learned.implode()))
    return str(levels["trial"][(len(levels) - 1) // 2])


def stored_tables(run: Run) -> dict[str, Path]:
    """The files that `napping replay` wrote, by the id of their trial; files of other runs are passed over."""
    if run.path is None:
        return {}
    ids = {trial.replace("/", "_"): trial for trial in run.rows["trial"].unique().to_list()}
    files = sorted((run.path / "principles").glob("*.npz"))
    return {ids[file.stem]: file for file in files if file.stem in ids}


def read_table(path: Path) -> dict[str, NDArray[Any]]:
    """A stored table of principles; empty where the method has none."""
    try:
        content = read_arrays(read_file(path, MAX_BYTES), MAX_BYTES)
    except UnusableFileError as error:
        raise BadRunError(f"{path}: {error}; delete it, or write it again with `napping replay`") from None
    if content and not content.keys() >= _NEEDED:
        raise BadRunError(f"{path} holds no principles; delete it, or write it again with `napping replay`")
    return content


def rules_section(shown: Sequence[TrialRules], why: Sequence[str]) -> str:
    """The rules of each trial, one at a time where the script runs; and why methods show none."""
    if not shown:
        return f"<p>No rules: {text('; '.join(why))}.</p>"
    also = f"<h3>Not shown</h3>{items(why, 'notes')}" if why else ""
    options = "".join(
        f"<option value='trial-{i}'>{text(entry.run)}: {text(entry.trial)}</option>" for i, entry in enumerate(shown)
    )
    choice = f"<p><label>Trial <select id='trial'>{options}</select></label></p>" if len(shown) > 1 else ""
    return (
        "<p>A decision tree summarises the principles of a trial, so no two lines are about the same situation. Each "
        "states what the trained agent wants there, what is done now, its share of all visits, and in how many of its "
        "visits exactly this is done. The score is the best one observed there, averaged over visits.</p>"
        + choice
        + "".join(_article(i, entry) for i, entry in enumerate(shown))
        + also
    )


def _article(number: int, entry: TrialRules) -> str:
    shown = entry.rules[:MAX_RULES]
    lines = [
        [text(rule.situation), text(rule.wanted or "several"), _now(rule), f"{rule.visits:,}", f"{rule.coverage:.0%}",
         f"{rule.purity:.0%}", f"{rule.regions:,}", f"{rule.score:.2g}"]
        for rule in shown
    ]  # fmt: skip
    head = ("in this situation", "the agent wants", "now", "visits", "share", "as said", "regions", "score")
    more = len(entry.rules) - len(shown)
    words = f"<p>In words: {text(entry.description)}</p>" if entry.description else ""
    words += (
        f"<p>These rules describe {explained(shown):.0%} of what the principles do, by visits.</p>" if shown else ""
    )
    listed = table(f"Rules of trial {entry.trial}", head, lines, "rules") if lines else "<p>It has no principles.</p>"
    return (
        f"<article class='trial' id='trial-{number}'><h3>{text(entry.run)}, trial <code>{text(entry.trial)}</code></h3>"
        f"<p>{text(entry.origin)}.</p>{words}{listed}"
        + (f"<p>And {more} more, less visited: <code>napping replay</code> prints them.</p>" if more else "")
        + "</article>"
    )


def _now(rule: ReadableRule) -> str:
    if rule.now == (rule.wanted,):
        return f"still {text(rule.wanted)}"
    if len(rule.now) == 1:
        return f"<strong>do {text(rule.now[0])}</strong>"
    return f"still trying {text(' or '.join(rule.now))}"
