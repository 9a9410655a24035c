"""Chunks of trials in worker processes of this machine."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from threading import Thread
from typing import Any, Protocol

import polars as pl
from threadpoolctl import threadpool_limits

from nappingrl.agents.base import Agent
from nappingrl.errors import BadRunError
from nappingrl.registry import Entry, add_entries, added_entries
from nappingrl.trials.engine import Engine
from nappingrl.trials.spec import RunSpec

CHUNK = 128
"""Trials per part of a run. Fixed, so that rows and parts do not depend on the number of workers."""


class _Counter(Protocol):
    value: int

    def get_lock(self) -> Any: ...


class _StoppedError(Exception):
    """Raised inside a worker when the parent gives up."""


@dataclass(frozen=True)
class _Job:
    """Everything a worker needs; the parent's own entries of the registry among it."""

    spec: RunSpec
    agent: Agent
    entries: list[Entry]
    counter: _Counter
    stop: Any


_job: _Job | None = None


def run_chunk(spec: RunSpec, agent: Agent, chunk: int, on_episodes: Callable[[int], None]) -> pl.DataFrame:
    """The rows of one chunk, in this process."""
    trials = spec.trial_specs(chunk * CHUNK, (chunk + 1) * CHUNK)
    return Engine(spec, agent).run_trials(trials, on_episodes)


def run_in_workers(
    spec: RunSpec, agent: Agent, chunks: list[int], workers: int, on_episodes: Callable[[int], None]
) -> Iterator[tuple[int, pl.DataFrame]]:
    """The rows of chunks as they are finished."""
    context = multiprocessing.get_context("spawn")
    counter, stop = context.Value("q", 0), context.Event()
    reported = 0
    job = _Job(spec, agent, added_entries(), counter, stop)
    with ProcessPoolExecutor(workers, context, _begin_worker, (job,)) as pool:
        futures: dict[Future[pl.DataFrame], int] = {pool.submit(_work, chunk): chunk for chunk in chunks}
        try:
            waiting = set(futures)
            while waiting:
                finished, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
                count = counter.value
                on_episodes(count - reported)
                reported = count
                for future in finished:
                    yield futures[future], future.result()
        except BrokenProcessPool as error:
            raise BadRunError("a worker process died (out of memory?); finished parts are safe, run again") from error
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def default_workers() -> int:
    """One per core that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else (os.cpu_count() or 1)


def _begin_worker(job: _Job) -> None:
    global _job
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then asks to stop
    threadpool_limits(1)
    Thread(target=_end_with_parent, daemon=True).start()
    add_entries(job.entries)
    _job = job


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _work(chunk: int) -> pl.DataFrame:
    assert _job is not None
    job = _job

    def on_episodes(count: int) -> None:
        if job.stop.is_set():
            raise _StoppedError
        with job.counter.get_lock():
            job.counter.value += count

    return run_chunk(job.spec, job.agent, chunk, on_episodes)
