"""Runs as one record: make one (`run`), read one back (`read_run`), summarise it, compare it with another."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import signature
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Never

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nappingrl.errors import BadRunError, check_name
from nappingrl.report.intervals import Interval, mean_interval, pair
from nappingrl.report.summary import Summary, common_episodes, final_levels, is_rate, summarise
from nappingrl.trials.manifest_record import Manifest
from nappingrl.trials.notes import notes_of
from nappingrl.trials.store import AGAIN, MISSING, RunFolder

if TYPE_CHECKING:
    from nappingrl.explain import ReadableRule
    from nappingrl.trials.runner import Replayed

PUBLISHED: Mapping[Any, Any] = {pl.Float64: pl.Float32}
"""How precise the parameters in published rows are."""
SAME_DRAWS = ("domain", "seed", "strength", "protocol")
"""What two runs must share so that trials of the same novelty and number met the same draw."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A run's final level minus that of another run, over the trials that both ran."""

    other: str
    """Method of the other run."""
    difference: float
    interval: Interval | None
    """95 % of the mean paired difference; None with one trial only."""

    @property
    def is_better(self) -> bool:
        """Whether the whole interval is above zero."""
        return self.interval is not None and self.interval.low > 0

    def describe(self, digits: int) -> str:
        """The verdict as a cell of a table."""
        if self.interval is None:
            return f"{self.difference:+.{digits}f} to {self.other} (one trial: no interval)"
        span = f"{self.interval.low:+.{digits}f} to {self.interval.high:+.{digits}f}"
        verdict = "better" if self.is_better else "NOT better"
        return f"{self.difference:+.{digits}f} ({span}), {verdict} than {self.other}"


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """The rows of a run and what was run."""

    manifest: Manifest
    rows: pl.DataFrame
    """One row per episode; docs/trials.md lists the columns."""
    path: Path | None = None
    """Its folder; None: it was never stored."""
    label: str = ""
    """Name in tables and legends; default: domain, agent and method."""
    gap: str = ""
    """Which parts are missing; empty if the run is complete."""
    envs: tuple[str, ...] = ()
    """Environments module:id that the caller named: their modules may be imported."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", self.label or self.manifest.label)

    def __repr__(self) -> str:
        summary = self.summary()
        solved = "" if summary.solved is None else f", solved {summary.solved:.0%}"
        return (
            f"Run({self.label}: {self.manifest.n_trials} trials of {self.spec['novelty']}, protocol "
            f"{self.spec['protocol']}; return of the last 10 episodes {summary.last10_mean:.3g}{solved})"
        )

    @property
    def name(self) -> str:
        """The name of its folder; empty: it was not stored."""
        return "" if self.path is None else self.path.name or str(self.path)

    @property
    def place(self) -> str:
        """Where it is, for a message; its label where it was not stored."""
        return str(self.path or self.name or f"'{self.label}'")

    @property
    def spec(self) -> dict[str, Any]:
        """The completed RunSpec as plain values."""
        return self.manifest.spec

    @property
    def notes(self) -> list[str]:
        """What a user should know before reading the results, one line each."""
        return [*self.manifest.notes, *notes_of(self.spec, self.rows)]

    @property
    def domain(self) -> str:
        """Name of the domain, or id of the environment."""
        return str(self.spec["domain"])

    @property
    def method(self) -> str:
        """Name of the method."""
        return str(self.spec["method"])

    @property
    def is_rate(self) -> bool:
        """Whether a return is only passed (1) or not (0)."""
        return is_rate(self.manifest, self.rows)

    @property
    def novelties(self) -> list[str]:
        """The novelties of its trials, in order."""
        return self.rows["novelty"].unique(maintain_order=True).to_list()

    @property
    def n_trials(self) -> int:
        """Trials with rows."""
        return self.rows["trial"].n_unique()

    @cached_property
    def levels(self) -> pl.DataFrame:
        """Per trial: its id, novelty, number, final level and whether that counts as solved (`final_levels`)."""
        return final_levels(self.manifest, self.rows)

    @cached_property
    def keys(self) -> pl.DataFrame:
        """Novelty and number of each trial: what pairs it with the same draw of another run."""
        return self.rows.select("novelty", "number").unique(maintain_order=True)

    @cached_property
    def common_rows(self) -> pl.DataFrame:
        """The episodes that all trials have, trial by trial; BadRunError where some are missing."""
        rows = self.rows if self.rows.is_empty() else common_episodes(self.rows)
        rows = rows.join(self.keys.with_row_index("row"), on=["novelty", "number"]).sort("row", "episode")
        episodes = rows["episode"].unique().sort().to_numpy()
        first = -int((episodes < 0).sum())
        expected = np.tile(np.arange(first, first + len(episodes)), len(self.keys))
        if not len(rows) or not np.array_equal(rows["episode"].to_numpy(), expected):
            raise BadRunError("trials or episodes are missing or doubled; give the rows of one finished run")
        return rows

    @property
    def tau(self) -> int:
        """Index of the first post-novelty episode among the common ones."""
        return self.common_rows.filter(pl.col("episode") < 0)["episode"].n_unique()

    @property
    def draws(self) -> pl.DataFrame:
        """Per trial: the parameters in force at the first post-novelty episode."""
        return self.common_rows.filter(pl.col("episode") == 0).select(pl.col("^param_.*$"))

    def matrix(self, column: str, otherwise: float | bool | None = None) -> NDArray[Any]:
        """A column of the common episodes as (trials, episodes); `otherwise` in place of one that is missing."""
        if otherwise is not None and column not in self.rows.columns:
            return np.full((len(self.keys), len(self.common_rows) // len(self.keys)), otherwise)
        return self.common_rows[column].to_numpy().reshape(len(self.keys), -1)

    def in_order_of(self, other: "Run") -> "Run":
        """The trials of `other` in this run, in that order; BadRunError where the two did not meet the same draws."""
        rows = self.rows.join(other.keys.with_row_index("row"), on=["novelty", "number"]).sort("row", "episode")
        same = replace(self, rows=rows.drop("row"))
        if not same.keys.equals(other.keys):
            raise BadRunError("trials or episodes are missing or doubled; one run has trials that the other lacks")
        if (
            same.tau != other.tau
            or not same.draws.cast(PUBLISHED).equals(other.draws.cast(PUBLISHED))
            or len(same.common_rows) != len(other.common_rows)
        ):
            raise BadRunError(
                "these runs met other novelties or protocols; same domain, novelty, seed and protocol needed"
            )
        return same

    def summary(self, seconds: float = 0.0) -> Summary:
        """The run in numbers; `seconds`: how long it took."""
        return summarise(self.manifest, self.rows, seconds)

    def compare(self, other: "Run") -> Comparison:
        """Final level minus that of `other`, paired by draw; BadRunError where the runs met other draws."""
        check_same_draws(self, other)
        difference = pair(self.levels, other.levels, "level").difference
        return Comparison(other.method, float(difference.mean()), mean_interval(difference))

    def where(self, novelty: str) -> "Run":
        """Only its trials of one novelty."""
        return replace(self, rows=self.rows.filter(pl.col("novelty") == novelty))

    def replay(self, trial: str) -> "Replayed":
        """Run one trial again, alone; `trial` is its id or its number."""
        from nappingrl.trials.runner import replay

        return replay(self._folder(), trial, self.envs)

    @property
    def distrust(self) -> str:
        """Why no trial is run again: its file names modules to import that the caller did not; empty: it may be."""
        from nappingrl.trials.runner import check_trust

        try:
            check_trust(self.manifest, self.envs, self.path)
        except BadRunError as error:
            return str(error)
        return ""

    def read_rules(self, table: Mapping[str, NDArray[Any]]) -> "list[ReadableRule]":
        """The principles of one of its trials (`Replayed.table`, or a stored table) as readable rules."""
        from nappingrl.trials.runner import check_trust, readable_rules

        check_trust(self.manifest, self.envs, self.path)
        return readable_rules(self.domain, table)

    def _folder(self) -> RunFolder:
        if self.path is None:
            raise BadRunError(f"the run '{self.label}' was not stored; give `out` to nappingrl.run to keep it")
        return RunFolder(self.path, self.manifest)


# ------------------------------------------------------------------------------------------------------------ from disk


def read_run(path: str | Path, partial: bool = False, env: str | Sequence[str] = ()) -> Run:
    """Read a run back from its folder.

    Args:
        path: The --out folder of the run.
        partial: Take an unfinished or damaged run as far as it goes, else BadRunError.
        env: Environments module:id that you trust. A file alone never gets a module imported, so that `replay` needs
            them for a run in such an environment.
    """
    folder = RunFolder.open(Path(path))
    tables, faults = [], {}
    for chunk, found in folder.parts():
        if isinstance(found, str):
            faults[chunk] = found
        else:
            tables.append(found)
    is_unfinished = set(faults.values()) <= {MISSING}
    if not tables and is_unfinished:
        raise BadRunError(f"{folder.path} has no rows yet; {AGAIN}")
    if faults and (not partial or not tables):
        state, cure = ("unfinished", AGAIN) if is_unfinished else ("damaged", f"delete these parts and {AGAIN}")
        rest = ", or take the rest with --partial" if tables else ""
        raise BadRunError(f"{folder.path} is {state}: {name_parts(folder, faults)}; {cure}{rest}")
    rows, gap = pl.concat(tables), ""
    if faults:
        gap = f"{rows['trial'].n_unique()} of {folder.manifest.n_trials} trials; {name_parts(folder, faults)}"
    return Run(folder.manifest, rows, folder.path, gap=gap, envs=(env,) if isinstance(env, str) else tuple(env))


def read_runs(paths: Sequence[str | Path], partial: bool = False, env: str | Sequence[str] = ()) -> list[Run]:
    """Read several runs of one domain, each with a different label."""
    folders = [RunFolder.open(Path(path)) for path in paths]
    _check_one_domain([(str(folder.manifest.spec["domain"]), str(folder.path)) for folder in folders])
    return label_runs([read_run(path, partial, env) for path in paths])


def check_same_draws(first: Run, second: Run) -> None:
    """BadRunError where trials of the same novelty and number did not meet the same draw."""
    for key in SAME_DRAWS:
        if first.spec[key] != second.spec[key]:
            raise BadRunError(
                f"{first.place} and {second.place} cannot be paired: {key} is {first.spec[key]} in one and "
                f"{second.spec[key]} in the other; give runs with the same {key}"
            )


def name_parts(folder: RunFolder, lacking: Mapping[int, str]) -> str:
    """The parts of a run that are missing or damaged, in words; neighbours with the same fault as a range."""
    words = []
    for (_, fault), group in groupby(enumerate(lacking), lambda pair: (pair[1] - pair[0], lacking[pair[1]])):
        chunks = [chunk for _, chunk in group]
        first, last = folder.part(chunks[0]).name, folder.part(chunks[-1]).name
        words.append(f"{first} {fault}" if len(chunks) == 1 else f"{first} to {last} {fault}")
    return ", ".join(words)


def label_runs(runs: Sequence[Run]) -> list[Run]:
    """The runs with labels that differ: equal ones also name the settings in which the runs differ, or the run."""
    plain = [run.manifest.label for run in runs]
    labels = []
    for run, label in zip(runs, plain, strict=True):
        alike = [other.spec for other, name in zip(runs, plain, strict=True) if name == label]
        single = [key for key in run.spec if key not in ("options", "domain_options")]
        keys = [key for key in single if any(other.get(key) != run.spec[key] for other in alike)]
        words = [f"{key} {run.spec[key]}" for key in keys] + differing_options(run.spec, alike)
        words += differing_options(run.spec, alike, "domain_options")
        labels.append(f"{label} ({', '.join(words)})" if words else label)
    named = [
        f"{label} ({run.name or f'run {number}'})" if labels.count(label) > 1 else label
        for number, (run, label) in enumerate(zip(runs, labels, strict=True), 1)
    ]
    # a published run has the name of the folder that it was in
    return [replace(run, label=label) for run, label in zip(runs, number_equal(named, " ({})"), strict=True)]


def number_equal(names: Sequence[str], end: str = "-{}") -> list[str]:
    """The names; one that comes again has a number at its end."""
    found: list[str] = []
    for name in names:
        numbered, number = name, 2
        while numbered in found:
            numbered, number = name + end.format(number), number + 1
        found.append(numbered)
    return found


def differing_options(spec: Mapping[str, Any], others: Sequence[Mapping[str, Any]], of: str = "options") -> list[str]:
    """The options of a run's method, or "domain_options", as NAME=VALUE, that another run has not with this value."""
    options = [other.get(of, {}) for other in others]
    return [
        f"{name}={value}"
        for name, value in spec.get(of, {}).items()
        if any(other.get(name) != value for other in options)
    ]


def check_one_domain(runs: Sequence[Run]) -> None:
    """BadRunError where the runs are of several domains."""
    _check_one_domain([(run.domain, str(run.path or run.label)) for run in runs])


def _check_one_domain(runs: Sequence[tuple[str, str]]) -> None:
    by_domain: dict[str, list[str]] = {}
    for domain, name in runs:
        by_domain.setdefault(domain, []).append(name)
    if len(by_domain) > 1:
        listed = "; ".join(f"{domain}: {', '.join(names)}" for domain, names in by_domain.items())
        raise BadRunError(f"runs of {len(by_domain)} domains together ({listed}); give runs of one domain")


# --------------------------------------------------------------------------------------------------------------- run


def run(
    domain: str, agent: str | Path | object = "", method: str = "", *, novelty: str = "", trials: int = 100,
    seed: int = 0, protocol: str = "paper", score: str = "", detector: str = "", guard: bool = False,
    strength: float = 1.0, options: Mapping[str, Any] = MappingProxyType({}),
    domain_options: Mapping[str, Any] = MappingProxyType({}), out: str | Path | None = None, workers: int = 1,
    executor: str = "local", address: str = "",
    on_progress: Callable[[int, int], None] | None = None, **unknown: Never,
) -> Run:  # fmt: skip
    """Run trials: a trained agent meets a novelty, with or without adaptation.

    Args:
        domain: Name of a domain, or the id of a gymnasium environment.
        agent: Name of a shipped or scripted agent, path of an SB3 .zip, or a live model; default: the domain's.
        method: What is done with experience: auto, napping, foresight, frozen, online, ...; default: napping, or auto
            in a gymnasium environment.
        novelty: Name of a novelty, "all" (trials of each), "none", or a description; default: the domain's.
        trials: Trials per novelty.
        seed: All draws follow from it.
        protocol: "paper", or PRE+POST episodes such as "10+40"; docs/trials.md has the others.
        score: The Eval that judges actions; default: the domain's.
        detector: What decides when the domain has changed; default: the method's, else the domain's.
        guard: Whether the frozen agent takes over where adaptation does not pay.
        strength: How far the novelty goes, in (0, 1].
        options: Options of the method, such as {"rule": "text"}.
        domain_options: Options of the domain; default: those that the agent was trained with.
        out: Folder of the run; the same call continues a stopped run. Default: nothing is written.
        workers: Worker processes. Rows do not depend on them.
        executor: "local", or "ray" for Ray tasks: in a Ray started here, or in the cluster at `address`.
        address: "auto" or host:port of a Ray cluster.
        on_progress: Called with (episodes done, episodes in all).
        unknown: Nothing else is allowed; a misspelt argument is named.

    Examples:
        >>> frozen = run("cartpole", method="frozen", trials=2, protocol="1+1")
        >>> frozen.rows["episode"].to_list()
        [-1, 0, -1, 0]
    """
    from nappingrl.trials.runner import module_ids, run_trials

    for name in unknown:
        check_name("argument of nappingrl.run", name, _ARGUMENTS)
    spec: dict[str, Any] = {
        "novelty": novelty, "trials": trials, "seed": seed, "protocol": protocol, "score": score, "detector": detector,
        "guard": guard, "strength": strength, "options": dict(options),
        "domain_options": dict(domain_options),
    }  # fmt: skip
    path = None if out is None else Path(out)
    manifest, rows = run_trials(domain, agent, method, spec, path, workers, on_progress, executor, address)
    return Run(manifest, rows, path, envs=tuple(module_ids(manifest)))


_ARGUMENTS = [name for name in signature(run).parameters if name != "unknown"]
