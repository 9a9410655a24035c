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
from nappingrl.report.page.formats import Cell, Table
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


@dataclass(frozen=True, slots=True)
class Shown:
    """The rules of one trial as the page shows them."""

    run: str
    trial: str
    origin: str
    description: str
    table: Table
    explained: str
    more: int
    """Rules that are not shown."""


@dataclass(frozen=True, slots=True)
class RulesPart:
    """The rules of each trial, one at a time where the script runs; and why methods show none."""

    shown: list[Shown]
    why: list[str]


def rules_part(found: Sequence[TrialRules], why: Sequence[str]) -> RulesPart:
    """The rules of these trials for a page."""
    return RulesPart([_shown(entry) for entry in found], list(why))


def _shown(entry: TrialRules) -> Shown:
    rules = entry.rules[:MAX_RULES]
    rows: list[list[Cell | str]] = [
        [rule.situation, rule.wanted or "several", _now(rule), f"{rule.visits:,}", f"{rule.coverage:.0%}",
         f"{rule.purity:.0%}", f"{rule.regions:,}", f"{rule.score:.2g}"]
        for rule in rules
    ]  # fmt: skip
    head = ("in this situation", "the agent wants", "now", "visits", "share", "as said", "regions", "score")
    return Shown(
        entry.run, entry.trial, entry.origin, entry.description,
        Table(f"Rules of trial {entry.trial}", head, rows, "rules"),
        f"{explained(rules):.0%}" if rules else "", len(entry.rules) - len(rules),
    )  # fmt: skip


def _now(rule: ReadableRule) -> Cell:
    if rule.now == (rule.wanted,):
        return Cell(f"still {rule.wanted}")
    if len(rule.now) == 1:
        return Cell(f"do {rule.now[0]}", is_best=True)
    return Cell(f"still trying {' or '.join(rule.now)}")
