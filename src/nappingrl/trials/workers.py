"""Chunks of trials in worker processes of this machine."""

import multiprocessing
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from ctypes import Array, c_int64
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.sharedctypes import RawArray

import polars as pl
from threadpoolctl import threadpool_limits

from nappingrl.agents.base import Agent
from nappingrl.errors import BadRunError
from nappingrl.registry import Entry, add_entries, added_entries
from nappingrl.signals import signals_later, take_signals
from nappingrl.trials.chunks import chunk_size
from nappingrl.trials.deaths import cause_of_death, oom_kills
from nappingrl.trials.engine import Engine
from nappingrl.trials.spec import RunSpec

PROGRESS_SECONDS = 0.2
"""Interval at which finished episodes are counted."""


@dataclass(frozen=True)
class _Job:
    """Everything a worker needs; the parent's own entries of the registry among it."""

    spec: RunSpec
    agent: Agent
    entries: list[Entry]


@dataclass(frozen=True)
class _Worker:
    """A worker process as its parent knows it."""

    process: SpawnProcess
    connection: Connection
    """Carries the job and numbers of chunks to the worker and rows back; closed when either process ends."""

    def give(self, what: _Job | int) -> None:
        """Send the job, or have a chunk run; if the worker is dead, the next read from its connection says so."""
        with suppress(ConnectionError):
            self.connection.send(what)

    def kill(self) -> None:
        """End the process at once, also in the middle of a chunk."""
        self.process.kill()
        self.process.join()
        self.connection.close()


def run_chunk(spec: RunSpec, agent: Agent, chunk: int, on_episodes: Callable[[int], None]) -> pl.DataFrame:
    """The rows of one chunk, in this process."""
    size = chunk_size(spec)
    trials = spec.trial_specs(chunk * size, (chunk + 1) * size)
    return Engine(spec, agent).run_trials(trials, on_episodes)


def run_in_workers(
    spec: RunSpec, agent: Agent, chunks: list[int], workers: int, on_episodes: Callable[[int], None]
) -> Iterator[tuple[int, pl.DataFrame]]:
    """The rows of chunks as they are finished."""
    todo, reported, n_kills = list(reversed(chunks)), 0, oom_kills()
    job, n_episodes = _Job(spec, agent, added_entries()), RawArray(c_int64, workers)
    with _started(n_episodes, workers) as team:
        for worker in team.values():
            worker.give(job)
            worker.give(todo.pop())
        while team:
            ready = wait([worker.connection for worker in team.values()], timeout=PROGRESS_SECONDS)
            count = sum(n_episodes)
            on_episodes(count - reported)
            reported = count
            for connection in ready:
                worker = team[connection]
                chunk, rows = _receive(worker, n_kills)
                if todo:
                    worker.give(todo.pop())
                else:
                    del team[connection]
                yield chunk, rows


def default_workers() -> int:
    """One per core that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else (os.cpu_count() or 1)


# ---- in the parent --------------------------------------------------------------------------------------------------


@contextmanager
def _started(n_episodes: "Array[c_int64]", workers: int) -> Iterator[dict[object, _Worker]]:
    """Workers by their connections; at the end none of their processes is left."""
    context = multiprocessing.get_context("spawn")
    team: list[_Worker] = []
    try:
        for number in range(workers):
            with signals_later():
                team.append(_start(context, n_episodes, number))
        yield {worker.connection: worker for worker in team}
    finally:
        for worker in team:
            worker.kill()


def _start(context: SpawnContext, n_episodes: "Array[c_int64]", number: int) -> _Worker:
    """Start a process that is given little: `start` hangs if one dies before it has read more than a pipe holds.

    `n_episodes` are the finished episodes per worker. Each has one writer: no killed worker can hold a lock.
    """
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(n_episodes, number, theirs))
    process.start()
    theirs.close()
    return _Worker(process, ours)


def _receive(worker: _Worker, n_kills: int) -> tuple[int, pl.DataFrame]:
    """The number and the rows of a finished chunk."""
    try:
        result: tuple[int, pl.DataFrame] | Exception = worker.connection.recv()
    except (EOFError, OSError) as error:
        worker.process.join()
        cause = cause_of_death(worker.process.exitcode or 0, n_kills)
        raise BadRunError(f"a worker process {cause}; finished parts are safe, run again to continue") from error
    if isinstance(result, Exception):
        raise result
    return result


# ---- in a worker ----------------------------------------------------------------------------------------------------


def _work(n_episodes: "Array[c_int64]", number: int, connection: Connection) -> None:
    """Run chunks until the parent is gone."""
    take_signals()
    threadpool_limits(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        job: _Job = connection.recv()
    except EOFError:
        return
    add_entries(job.entries)

    def on_episodes(count: int) -> None:
        n_episodes[number] += count

    while True:
        try:
            chunk = connection.recv()
        except EOFError:
            return
        try:
            connection.send((chunk, run_chunk(job.spec, job.agent, chunk, on_episodes)))
        except Exception as error:
            error.add_note(f"in a worker process:\n{traceback.format_exc()}")
            connection.send(error)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
