"""How long the stages of an evaluation take: measured, and estimated for those that have not run yet."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from nappingrl.errors import BadRunError
from nappingrl.registry import agents, domains, methods
from nappingrl.trials.protocol import phases
from nappingrl.trials.spec import RunSpec
from nappingrl.trials.store import make_folder, write_output

TIMES = "times.json"
"""File beside the runs: how long each took."""
SECONDS_PER_COST = 0.002
"""CPU seconds of an episode of cost 1 where nothing was measured yet."""


def episode_cost(spec: RunSpec) -> float | None:
    """About how long an episode takes, the frozen agent in CartPole = 1; None where the environment is not a domain."""
    if spec.domain not in domains:
        return None
    name = f"{spec.domain}-{spec.agent}"
    agent_cost = agents.entry(name).cost if name in agents else 1.0
    return domains.entry(spec.domain).cost * methods.entry(spec.method).cost * agent_cost


def expected_seconds(spec: RunSpec, workers: int) -> float | None:
    """About how long a completed run takes where nothing was measured yet; None: unknown."""
    cost = episode_cost(spec)
    n_episodes = spec.n_trials * sum(count for _, count in phases(spec.protocol))
    return None if cost is None else SECONDS_PER_COST * cost * n_episodes / workers


@dataclass(frozen=True, slots=True)
class Times:
    """How long a run took, over all calls."""

    wall: float = 0.0
    """Seconds from start to end."""
    cpu: float = 0.0
    """CPU seconds of all its processes."""


@contextmanager
def timed(run: Path) -> Iterator[None]:
    """Add the time spent inside to that of the run, even if it is stopped."""
    wall, cpu = time.perf_counter(), cpu_seconds()
    try:
        yield
    finally:
        times = read_times(run.parent)
        before = times.get(run.name, Times())
        spent = time.perf_counter() - wall, cpu_seconds() - cpu
        times[run.name] = Times(round(before.wall + spent[0], 1), round(before.cpu + spent[1], 1))
        make_folder(run.parent)
        content = json.dumps({name: asdict(of_run) for name, of_run in times.items()}, indent=2)
        write_output(run.parent / TIMES, f"{content}\n".encode())


def read_times(runs: Path) -> dict[str, Times]:
    """How long each run in a folder took."""
    file = runs / TIMES
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, Times])
    except FileNotFoundError:
        return {}
    except msgspec.MsgspecError as error:
        raise BadRunError(f"{file} cannot be read ({error}); delete it: only times are lost") from error


def cpu_seconds() -> float:
    """CPU seconds of this process and of its workers that have ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system
