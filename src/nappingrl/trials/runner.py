"""Runs a spec: chunks of trials, in this process or in workers, into a folder that can be continued."""

from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from nappingrl._build import announce_compilation
from nappingrl.agents import load, load_agent
from nappingrl.agents.base import Agent
from nappingrl.domains import find_domain
from nappingrl.errors import BadAgentError, BadRunError, BadSpecError, check_name, check_whole
from nappingrl.explain import ReadableRule, summarise_principles
from nappingrl.files.lock import locked
from nappingrl.methods.napping.candidates import choice_names
from nappingrl.trials import ray_executor as cluster
from nappingrl.trials.chunks import chunk_size, n_chunks
from nappingrl.trials.engine import Engine
from nappingrl.trials.limits import MAX_WORKERS
from nappingrl.trials.manifest import make_manifest
from nappingrl.trials.manifest_record import Manifest
from nappingrl.trials.protocol import phases
from nappingrl.trials.ray_executor import EXECUTORS
from nappingrl.trials.spec import RunSpec
from nappingrl.trials.store import RunFolder
from nappingrl.trials.workers import run_chunk, run_in_workers
from nappingrl.types import OnProgress


def run_trials(
    domain: str,
    agent: str | Path | object,
    method: str,
    options: Mapping[str, Any],
    out: Path | None = None,
    workers: int = 1,
    on_progress: OnProgress | None = None,
    executor: str = "local",
    address: str = "",
) -> tuple[Manifest, pl.DataFrame]:
    """Run trials and return their episodes as rows; options are the other fields of RunSpec."""
    named = str(agent) if isinstance(agent, str | Path) else ""
    spec = RunSpec(domain, named, method, **options).complete()
    loaded = load_agent(spec.agent if isinstance(agent, str | Path) else agent, domain)
    spec = spec if isinstance(agent, str | Path) else replace(spec, agent=loaded.name)
    if out is not None:
        folder = run_into(out, spec, loaded, workers, on_progress, executor=executor, address=address)
        return folder.manifest, folder.read()
    notes = _check(spec, loaded, workers, executor, address)
    chunks = _run_chunks(spec, loaded, None, workers, on_progress, executor, address)
    return replace(make_manifest(spec, loaded.sha256, ""), notes=notes), pl.concat(rows for _, rows in chunks)


def run_into(
    path: Path,
    spec: RunSpec,
    agent: Agent,
    workers: int = 1,
    on_progress: OnProgress | None = None,
    command: str = "",
    executor: str = "local",
    address: str = "",
    on_start: Callable[[], None] | None = None,
) -> RunFolder:
    """Run a completed spec into a folder, continuing where an earlier call stopped.

    `on_start` is called when nothing is refused any more, before the first trial.
    """
    notes = _check(spec, agent, workers, executor, address)
    if on_start is not None:
        on_start()
    manifest = replace(make_manifest(spec, agent.sha256, command), notes=notes)
    RunFolder.grow(path, manifest, lambda start, stop: _run_few(spec, agent, start, stop))
    folder = RunFolder.create(path, manifest)
    if not folder.faults():
        return folder
    with locked(path):
        todo = folder.pending()
        with closing(_run_chunks(spec, agent, todo, workers, on_progress, executor, address)) as results:
            for chunk, rows in results:
                folder.write(chunk, rows)
    return folder


@dataclass(frozen=True, slots=True)
class Replayed:
    """One trial, run again."""

    id: str
    rows: pl.DataFrame
    table: dict[str, NDArray[Any]]
    """Its principles at the end (`Principles.table`); empty where the method has none."""
    description: str
    """The rule in force at the end in words; empty where the method has none."""
    status: str
    """Why the method acted as the frozen agent (`Method.status`); empty: it did not."""
    is_same: bool
    """Whether the rows are those that the run had stored."""


def replay(folder: RunFolder, trial: str, envs: Collection[str] = ()) -> Replayed:
    """Run one trial of a run again, alone; `trial` is its id or its number.

    `envs` are the environments module:id that the caller trusts: the manifest alone does not get a module imported.
    """
    check_trust(folder.manifest, envs, folder.path)
    spec = msgspec.convert(folder.manifest.spec, RunSpec)
    index = spec.find_trial(trial)
    if index is None:
        example = spec.trial_specs(0, 1)[0].id
        raise BadSpecError(
            f"no trial '{trial}' in {folder.path}; allowed: 0 to {spec.trials - 1}, or an id like {example}"
        )
    (found,) = spec.trial_specs(index, index + 1)
    agent = load(spec.agent, spec.domain)
    if agent.sha256 != folder.manifest.agent_sha256:
        raise BadRunError(f"{folder.path} was run with other weights than agent '{spec.agent}' has now")
    engine = Engine(spec, agent, slots=1)
    rows = engine.run_trials([found])
    table = engine.method.table(0)
    stored = folder.read_chunk(index // folder.manifest.chunk).filter(pl.col("trial") == found.id)
    is_same = set(stored.columns) <= set(rows.columns) and rows.select(stored.columns).equals(stored)
    return Replayed(found.id, rows, table, engine.method.describe(0), engine.method.status(0), is_same)


def module_ids(manifest: Manifest) -> list[str]:
    """The environments module:id that a run names."""
    return msgspec.convert(manifest.spec, RunSpec).module_ids


def check_trust(manifest: Manifest, envs: Collection[str], path: Path | None) -> None:
    """BadRunError where a manifest from a file names modules that the caller does not."""
    if unknown := [name for name in module_ids(manifest) if name not in envs]:
        modules = ", ".join(name.rpartition(":")[0] or "?" for name in unknown)
        raise BadRunError(
            f"{path or 'this run'} names {', '.join(unknown)}, which imports {modules}; if you trust that code, "
            f"add --env {' '.join(unknown)} (in Python: read_run(..., env={unknown[0]!r}))"
        )


def readable_rules(domain: str, table: Mapping[str, NDArray[Any]]) -> list[ReadableRule]:
    """The principles of a trial (`Replayed.table`) as rules; none where the table is empty."""
    spec = find_domain(domain)
    return summarise_principles(table, spec, choice_names(spec)) if table else []


def why_not(spec: RunSpec) -> str:
    """Why this agent cannot run this method in this domain; empty: it can."""
    try:
        Engine(spec, load(spec.agent, spec.domain), slots=1)
    except (BadAgentError, BadSpecError) as error:
        return str(error)
    return ""


def _check(spec: RunSpec, agent: Agent, workers: int, executor: str, address: str) -> list[str]:
    """Refuse before anything is written; returns the notes of the domain and of the method."""
    check_whole("workers", workers, 1, MAX_WORKERS)
    check_name("executor", executor, EXECUTORS)
    n_chunks(spec)
    if address and executor != "ray":
        raise BadSpecError(f"address '{address}' is given, but executor '{executor}' has none; use executor 'ray'")
    engine = Engine(spec, agent, slots=1)
    notes = [*engine.domain.spec.notes, *engine.method.notes()]
    if executor == "ray":
        cluster.check(address)
    return notes


def _run_few(spec: RunSpec, agent: Agent, start: int, stop: int) -> pl.DataFrame:
    """The rows of the trials from one place to another, in this process."""
    with threadpool_limits(1, "blas"):
        return Engine(spec, agent).run_trials(spec.trial_specs(start, stop))


def _run_chunks(
    spec: RunSpec,
    agent: Agent,
    chunks: list[int] | None,
    workers: int,
    on_progress: OnProgress | None,
    executor: str,
    address: str,
) -> Generator[tuple[int, pl.DataFrame]]:
    """Run the chunks that are asked for (None: all, in order) and give their rows as they come."""
    n_trials, n_episodes = spec.n_trials, sum(count for _, count in phases(spec.protocol))
    is_ordered, size = chunks is None, chunk_size(spec)
    todo = list(range(n_chunks(spec))) if chunks is None else chunks
    total = n_trials * n_episodes
    done = total - sum(min(size, n_trials - chunk * size) for chunk in todo) * n_episodes
    if on_progress is not None:
        on_progress(done, total)
    report = _Progress(done, total, on_progress)
    if not todo:
        return
    if executor == "ray":
        results = cluster.run_on_ray(spec, agent, todo, workers, address, report.add)
    elif workers == 1 or len(todo) == 1:
        with threadpool_limits(1, "blas"):
            for chunk in todo:
                yield chunk, run_chunk(spec, agent, chunk, report.add)
        return
    else:
        announce_compilation()
        results = run_in_workers(spec, agent, todo, min(workers, len(todo)), report.add)
    yield from sorted(results, key=lambda result: result[0]) if is_ordered else results


class _Progress:
    """Adds up episodes and tells them to the caller."""

    def __init__(self, done: int, total: int, on_progress: OnProgress | None) -> None:
        self.done, self.total, self._tell = done, total, on_progress

    def add(self, episodes: int) -> None:
        self.done += episodes
        if self._tell is not None:
            self._tell(self.done, self.total)
