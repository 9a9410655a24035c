"""The runs of a report, a figure or another table: opened, checked, named."""

from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import polars as pl

from nappingrl.errors import BadRunError
from nappingrl.report.best_control import Run
from nappingrl.trials.store import ABSENT, MANIFEST, Manifest, RunFolder


@dataclass(frozen=True, slots=True)
class Loaded:
    """One run, and what is missing of it."""

    path: Path
    manifest: Manifest
    rows: pl.DataFrame
    label: str
    """Unlike that of any other run of the report."""
    gap: str = ""
    """Which parts are missing, in words; empty where the run is whole."""

    @property
    def run(self) -> Run:
        """What figures and claims take."""
        return self.manifest, self.rows


def load_runs(paths: list[Path], partial: bool = False) -> list[Loaded]:
    """Open the runs of one domain. Unfinished ones are refused, or taken as they are where `partial` is asked for."""
    folders = [RunFolder.open(path) for path in paths]
    _check_domain(folders)
    return [load_run(folder, partial, label) for folder, label in zip(folders, name_runs(folders), strict=True)]


def load_run(folder: RunFolder, partial: bool = False, label: str = "") -> Loaded:
    """The rows of a run. An unfinished one is refused, or taken as it is where `partial` is asked for."""
    lacking = folder.lacking()
    is_empty = list(lacking.values()) == [ABSENT] * folder.manifest.n_chunks  # `read` says so
    if lacking and not partial and not is_empty:
        raise BadRunError(
            f"{folder.path} is unfinished: {name_parts(folder, lacking)}; run the command of its {MANIFEST} again, "
            f"or take the rest with --partial"
        )
    rows = folder.read(skip=lacking)
    gap = ""
    if lacking:
        gap = f"{rows['trial'].n_unique()} of {folder.manifest.n_trials} trials; {name_parts(folder, lacking)}"
    return Loaded(folder.path, folder.manifest, rows, label or folder.manifest.label, gap)


def name_parts(folder: RunFolder, lacking: dict[int, str]) -> str:
    """The parts and their faults in words, neighbours of the same fault as a range."""
    words = []
    for (_, fault), group in groupby(enumerate(lacking), lambda pair: (pair[1] - pair[0], lacking[pair[1]])):
        chunks = [chunk for _, chunk in group]
        first, last = folder.part(chunks[0]).name, folder.part(chunks[-1]).name
        words.append(f"{first} {fault}" if len(chunks) == 1 else f"{first} to {last} {fault}")
    return ", ".join(words)


def name_runs(folders: list[RunFolder]) -> list[str]:
    """Labels of runs; those that would read alike also say in what they differ."""
    plain = [folder.manifest.label for folder in folders]
    named = []
    for folder, label in zip(folders, plain, strict=True):
        alike = [other.manifest.spec for other, name in zip(folders, plain, strict=True) if name == label]
        spec = folder.manifest.spec
        keys = [key for key in spec if any(other.get(key) != spec[key] for other in alike)]
        named.append(f"{label} ({', '.join(f'{key} {_short(spec[key])}' for key in keys)})" if keys else label)
    return [
        f"{name} ({folder.path.name or folder.path})" if named.count(name) > 1 else name
        for folder, name in zip(folders, named, strict=True)
    ]


def _short(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key}={entry}" for key, entry in value.items()) or "default"
    return str(value)


def _check_domain(folders: list[RunFolder]) -> None:
    by_domain: dict[str, list[str]] = {}
    for folder in folders:
        by_domain.setdefault(str(folder.manifest.spec["domain"]), []).append(str(folder.path))
    if len(by_domain) > 1:
        found = "; ".join(f"{domain}: {', '.join(paths)}" for domain, paths in by_domain.items())
        raise BadRunError(f"runs of {len(by_domain)} domains together ({found}); give runs of one domain")
