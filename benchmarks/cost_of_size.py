"""What a step costs, and how much memory a worker needs, against observations and actions, and by domain and method.

python benchmarks/cost_of_size.py --observations 4 16 64 --actions 2 8 32
python benchmarks/cost_of_size.py --chunks cartpole:ppo:frozen cartpole:ppo:napping

Observations and actions are those of a toy room: each action moves a walker along one of its dimensions, in numpy; the
agent is a random perceptron with two layers of 64. Each case is a new process, which first compiles the kernels with
one trial; memory is that of the process then, and at the end of a whole chunk.
"""

import argparse
import resource
import time
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import polars as pl
from threadpoolctl import threadpool_limits
from typing_extensions import override

import nappingrl
from nappingrl.agents import load
from nappingrl.agents.mlp import MlpAgent
from nappingrl.benchmark.overview import PER_MB, in_process
from nappingrl.domains.base import Domain
from nappingrl.novelties.novelty import Novelty
from nappingrl.score import Score
from nappingrl.testing.toys import Corridor
from nappingrl.trials.chunks import chunk_size
from nappingrl.trials.engine import Engine
from nappingrl.trials.spec import RunSpec
from nappingrl.types import Actions, DomainSpec, Flags, Floats, Observations, Rows

HORIZON = 200


def _nearer(obs: Observations, action: Actions, obs2: Observations, reward: Floats, end: Flags) -> Floats:
    before, after = (np.abs(part.astype(np.float64)).sum(axis=1) for part in (obs, obs2))
    return np.asarray(before - after)


class Room(Domain):
    """A walker in d dimensions; action a moves it along dimension a // 2, modulo d, forwards or back."""

    def __init__(self, n: int, spec: DomainSpec | None = None) -> None:
        super().__init__(n, spec)
        self._state = np.zeros((n, len(self.spec.observation_low)))

    @override
    def reset(self, rows: Rows, uniforms: Floats) -> None:
        self._state[rows] = 0.0
        self._state[rows, 0] = uniforms[:, 0] * 2 - 1

    @override
    def observe(self, rows: Rows) -> Observations:
        return self._state[rows].astype(np.float32)

    @override
    def step(self, rows: Rows, actions: Actions) -> tuple[Floats, Flags]:
        moved = actions // 2 % self._state.shape[1]
        self._state[rows, moved] += (2 * (actions % 2) - 1) * self._parameters[rows, 0]
        self._state[rows] *= 0.98
        return np.ones(len(rows)), np.zeros(len(rows), np.bool_)


def make_room(d: int, n_actions: int) -> type[Domain]:
    """The room with these observations and actions."""
    spec = replace(
        Corridor.spec, observation_low=np.full(d, -10.0, np.float32), observation_high=np.full(d, 10.0, np.float32),
        observation_centre=np.zeros(d), observation_scale=np.ones(d), n_actions=n_actions, horizon=HORIZON,
        observation_names=tuple(f"x{i}" for i in range(d)), observation_words=(("low", "high"),) * d,
        action_names=tuple(f"A{a}" for a in range(n_actions)), controllers={}, oracle="",
        return_range=(1.0, float(HORIZON)), parameters={"step": 0.1}, scores={"nearer": Score("nearer", _nearer)},
        novelties={"reversed": Novelty("reversed", {"step": (-0.2, -0.1)}, "steps go the other way")},
    )  # fmt: skip
    return type("SomeRoom", (Room,), {"spec": spec})


def make_agent(d: int, n_actions: int) -> MlpAgent:
    """A random perceptron."""
    rng, sizes = np.random.default_rng(0), (d, 64, 64, n_actions)
    layers = [(rng.normal(0, m**-0.5, (m, n)).astype(np.float32), np.zeros(n, np.float32)) for m, n in pairwise(sizes)]
    return MlpAgent("walker", layers, "tanh")


class Cost(NamedTuple):
    """Of one chunk."""

    trials: int
    us_per_step: float
    regions: float
    """Mean number at the end of a trial."""
    before_mb: float
    peak_mb: float


def measure_room(d: int, n_actions: int, method: str, trials: int) -> Cost:
    """Trials of 10 + 10 episodes in a room."""
    nappingrl.register("domain", "room", make_room(d, n_actions))
    spec = RunSpec("room", "walker", method, trials=trials, seed=1, protocol="10+10")
    return _measure(spec, make_agent(d, n_actions))


def measure_chunk(domain: str, agent: str, method: str) -> Cost:
    """A chunk of whole trials, as a worker runs it."""
    spec = RunSpec(domain, agent, method, trials=1, seed=1).complete()
    return _measure(replace(spec, trials=chunk_size(spec)), load(agent, domain))


def _measure(spec: RunSpec, agent: nappingrl.Agent) -> Cost:
    spec = spec.complete()
    few = replace(spec, trials=1, protocol="1+1")
    with threadpool_limits(1):
        Engine(few, agent).run_trials(few.trial_specs())
        before, started = _peak_mb(), time.process_time()
        rows = Engine(spec, agent).run_trials(spec.trial_specs())
        seconds = time.process_time() - started
    last = rows.filter(pl.col("episode") == pl.col("episode").max())
    regions, steps = float(last["regions"].mean() or 0), int(rows["length"].sum())  # type: ignore[arg-type]
    return Cost(spec.n_trials, 1e6 * seconds / steps, regions, before, _peak_mb())


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / PER_MB


def _print(names: str, cost: Cost) -> None:
    cells = f"{cost.trials} | {cost.us_per_step:.2f} | {cost.regions:.0f} | {cost.before_mb:.0f} | {cost.peak_mb:.0f}"
    print(f"| {names} | {cells} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--observations", type=int, nargs="+", default=[])
    parser.add_argument("--actions", type=int, nargs="+", default=[2])
    parser.add_argument("--methods", nargs="+", default=["frozen", "napping"])
    parser.add_argument("--trials", type=int, default=128)
    parser.add_argument("--chunks", nargs="+", default=[], help="DOMAIN:AGENT:METHOD: a chunk of whole trials of each")
    options = parser.parse_args()
    columns = "trials | us per step | regions | memory before (MB) | peak (MB)"
    print(f"| case | {columns} |\n|---|---|---|---|---|---|", flush=True)
    for method in options.methods if options.observations else ():
        for d in options.observations:
            for n_actions in options.actions:
                cost = in_process(measure_room, d, n_actions, method, options.trials)
                _print(f"{method}, {d} observations, {n_actions} actions", cost)
    for case in options.chunks:
        _print(case.replace(":", " "), in_process(measure_chunk, *case.split(":")))


if __name__ == "__main__":
    main()
