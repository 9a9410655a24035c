"""Chunks of a run as Ray tasks, on this machine or on many: the one module that imports ray, and only when asked to."""

import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any

import nappingrl
from nappingrl._build import source_sha256
from nappingrl.agents.base import Agent
from nappingrl.errors import BadRunError, BadSpecError, MissingExtraError
from nappingrl.registry import added_entries
from nappingrl.trials.spec import RunSpec

if TYPE_CHECKING:
    import polars as pl

EXECUTORS = ("local", "ray")

TRIES = 5
"""How often a chunk is given out before its losses are no longer taken for bad luck."""

START = "ray start --head"

_PROBE_SECONDS = 5.0
_HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
_HTTP2_SETTINGS = 4
_QUIET = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
_LONGEST_FOLDER = 40
"""Ray puts sockets into its folder, and their paths may have about 100 characters."""


def check(address: str) -> None:
    """Refuse in one line, before anything is written: Ray is not installed, or no Ray listens at the address."""
    ray = _import_ray(is_own=not address)
    if address and not ray.is_initialized():
        _probe(_resolve(ray, address))


def run_on_ray(
    spec: RunSpec, agent: Agent, chunks: list[int], workers: int, address: str, on_episodes: Callable[[int], None]
) -> Iterator[tuple[int, "pl.DataFrame"]]:
    """Run the chunks as Ray tasks and give their rows as they come.

    Without an address a Ray with `workers` CPUs is started here and ended with the run; with one ("auto" or host:port)
    the run joins that cluster and uses what it has. A Ray that this process has joined already is used as it is.
    """
    with _connected(address, min(workers, len(chunks))) as (ray, ends_with_run):
        source = source_sha256()
        shared = ray.put(ray.cloudpickle.dumps((spec, agent, added_entries())))
        # Ray's own retries are off: after a kill for want of memory they are endless by default.
        task = ray.remote(num_cpus=1, max_retries=0)(_make_task()).options(name="napping-chunk")

        def give_out(chunk: int) -> Any:
            return task.remote(source, shared, chunk)

        waiting = {give_out(chunk): chunk for chunk in chunks}
        tries = dict.fromkeys(chunks, 1)
        try:
            while waiting:
                ray.wait(list(waiting), num_returns=1)
                finished, _ = ray.wait(list(waiting), num_returns=len(waiting), timeout=0)
                lost = {}
                for reference in finished:
                    chunk = waiting.pop(reference)
                    try:
                        rows = _fetch(ray, reference)
                    except _LostError as error:
                        lost[chunk] = str(error)
                        continue
                    on_episodes(len(rows))
                    yield chunk, rows
                _count(lost, tries)
                waiting |= {give_out(chunk): chunk for chunk in lost}
        finally:
            # Leaving a Ray ends its tasks. A cancel as well may meet their replies, and Ray then aborts the process.
            for reference in () if ends_with_run else waiting:
                with suppress(ray.exceptions.RayError):
                    ray.cancel(reference, force=True)


def _make_task() -> Callable[[str, bytes, int], Any]:
    def work(source: str, shared: bytes, chunk: int) -> Any:
        """The rows of a chunk; or in words, which other nappingrl this node has.

        A function inside a function travels with its code: it works where nappingrl is another one or missing. So it
        imports, and unpacks what it is given, only after it has looked.
        """
        import pickle

        import ray

        node = ray.util.get_node_ip_address()
        try:
            from nappingrl.trials.ray_executor import loaded_source
        except ImportError as error:
            return f"{node} has no nappingrl that can do this ({error})"
        if loaded_source() != source:
            from nappingrl import __version__

            return f"{node} has another nappingrl ({__version__}, source {loaded_source()[:12]})"
        from threadpoolctl import threadpool_limits

        from nappingrl.registry import add_entries
        from nappingrl.trials.workers import run_chunk

        with threadpool_limits(1):
            spec, agent, entries = pickle.loads(shared)
            add_entries(entries)
            return run_chunk(spec, agent, chunk, lambda count: None)

    return work


class _LostError(Exception):
    """Raised if the rows of a task, or the worker that should have made them, are gone; the text is Ray's reason."""


def _fetch(ray: Any, reference: Any) -> "pl.DataFrame":
    """The rows of a finished task."""
    failed = ray.exceptions
    try:
        found = ray.get(reference)
    except failed.TaskCancelledError:  # Ctrl-C in a terminal reaches workers of this machine too, maybe first
        raise KeyboardInterrupt from None
    except failed.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, KeyboardInterrupt):
            raise cause from None
        raise (cause if isinstance(cause, Exception) else BadRunError(_first_line(error))) from None
    except (failed.WorkerCrashedError, failed.NodeDiedError, failed.ObjectLostError, failed.OutOfMemoryError) as error:
        raise _LostError(type(error).__name__) from error
    except failed.RayError as error:
        raise BadRunError(f"Ray failed: {_first_line(error)}; finished parts are safe, run again") from error
    if isinstance(found, str):
        here = f"{nappingrl.__version__}, source {source_sha256()[:12]}"
        raise BadRunError(f"node {found}; this machine has {here}; install the same version on all nodes")
    rows: pl.DataFrame = found
    return rows


def _count(lost: dict[int, str], tries: dict[int, int]) -> None:
    """Say which chunks are run again, or give up."""
    for chunk, reason in lost.items():
        tries[chunk] += 1
        if tries[chunk] > TRIES:
            raise BadRunError(
                f"the workers of chunk {chunk} died {TRIES} times ({reason}); finished parts are safe, "
                "run again to continue"
            )
    if lost:
        print(f"napping: lost with their workers, run again: chunks {', '.join(map(str, lost))}", file=sys.stderr)


@cache
def loaded_source() -> str:
    """Hash of the source that this process has loaded: read once, so that later edits of the files do not count."""
    return source_sha256()


# ------------------------------------------------------------------------------------------------ starting and joining


def _import_ray(is_own: bool) -> Any:
    """The package. A Ray of our own is told to keep to the loopback interface, which it can be at import only."""
    try:
        with _environment({"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"} if is_own else {}):
            import ray
    except ModuleNotFoundError as error:
        raise MissingExtraError('--executor ray needs ray: pip install "nappingrl[ray]"') from error
    return ray


@contextmanager
def _connected(address: str, cpus: int) -> Iterator[tuple[Any, bool]]:
    """Ray, started or joined, and whether this connection ends with the run; what was begun before stays."""
    ray = _import_ray(is_own=not address)
    if ray.is_initialized():
        yield ray, False
        return
    from nappingrl.trials.ray_folders import temporary_folder

    ray._private.worker._worker_logs_enabled = False  # else the deaths of nodes are told on standard output, at length
    with nullcontext("") if address else temporary_folder() as folder:
        try:
            with _own_sigterm():
                if address:
                    _join(ray, address)
                else:
                    _start(ray, cpus, folder)
            yield ray, True
        finally:
            ray.shutdown()
            ray._private.worker._worker_logs_enabled = True


@contextmanager
def _own_sigterm() -> Iterator[None]:
    """Keep the handler of SIGTERM: ray.init() sets one that exits with status 15 and leaves its folder behind."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is not None and current_thread() is main_thread():
            signal.signal(signal.SIGTERM, before)


def _start(ray: Any, cpus: int, folder: str) -> None:
    own_folder = {"_temp_dir": folder} if len(folder) <= _LONGEST_FOLDER else {}
    try:
        with _environment({"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}):
            ray.init("local", num_cpus=cpus, **own_folder, **_QUIET)
    except (RuntimeError, ValueError, OSError, TimeoutError, ray.exceptions.RayError) as error:
        raise BadRunError(f"Ray does not start here: {_first_line(error)}") from error


def _join(ray: Any, address: str) -> None:
    _probe(_resolve(ray, address))
    try:
        ray.init(address, **_QUIET)
    except (RuntimeError, ValueError, OSError, TimeoutError, ray.exceptions.RayError) as error:
        raise BadRunError(
            f"no way into the Ray cluster at {address}: {_first_line(error)}; does a node of it run on this machine?"
        ) from error
    if ray.cluster_resources().get("CPU", 0) < 1:
        print("napping: the cluster has no CPU yet; waiting for one", file=sys.stderr)


def _resolve(ray: Any, address: str) -> str:
    """The HOST:PORT that Ray would make of an address."""
    host, _, port = address.rpartition(":")
    if address != "auto" and (not host or "/" in host or not port.isdigit()):
        raise BadSpecError(f"address '{address}' is not allowed; allowed: auto, or HOST:PORT of a Ray head")
    try:
        found = ray._private.services.canonicalize_bootstrap_address(address)
    except (OSError, ValueError) as error:
        raise BadRunError(f"no Ray cluster found by address '{address}'; begin one: {START}") from error
    return str(found)


def _probe(address: str) -> None:
    """Refuse an address where no Ray listens. ray.init() would try it for minutes, and write about it.

    Ray's head speaks HTTP/2 (gRPC), whose first answer is a frame of settings.
    """
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_PROBE_SECONDS) as connection:
            if os.environ.get("RAY_USE_TLS", "0") != "0":
                return
            connection.sendall(_HTTP2_PREFACE)
            answer = connection.recv(9, socket.MSG_WAITALL)
    except (OSError, ValueError, OverflowError) as error:
        raise BadRunError(f"nothing answers at {address} ({_first_line(error)}); begin a cluster: {START}") from error
    if len(answer) < 9 or answer[3] != _HTTP2_SETTINGS:
        raise BadRunError(f"what answers at {address} is not Ray; give HOST:PORT of a Ray head, or auto")


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Variables that are set for a while, where the user has not set them."""
    added = {name: value for name, value in variables.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
