"""The speed of the engine: against the loop that a user would write, against its forward pass, and as sites grow.

Everything is measured in one process on one core, on trials that have adapted before: each continues with the
principles it has learned (about a thousand), so sites and queries are real model states. Times are CPU times.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from typing_extensions import override

from nappingrl.agents import load
from nappingrl.agents.base import Agent
from nappingrl.agents.mlp import MlpAgent
from nappingrl.agents.state_dict import policy_layers
from nappingrl.benchmark.user_loop import Table, UserLoop
from nappingrl.methods.napping import Napping
from nappingrl.methods.napping.principles import Principles
from nappingrl.trials.engine import SLOTS, Engine
from nappingrl.trials.spec import RunSpec, TrialSpec
from nappingrl.types import Decision, Observations, OnProgress, Rows

Tables = dict[int, Table]  # the principles that each trial has learned, by the trial's key

_POOL, _CHOSEN = 256, 128
"""Trials that adapt, and those of them that are timed."""
_ADAPT_EPISODES, _EPISODES = 40, 10
_USER_TRIALS, _REPEATS = 2, 3
_MAX_RECORDED = 4000


class RecordingAgent(Agent):
    """An agent that keeps some of the observations it has seen."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.name = agent.name
        self.n_actions = agent.n_actions
        self.embedding_dim = agent.embedding_dim
        self.observation_shape = agent.observation_shape
        self.sha256 = agent.sha256
        self.recorded: list[NDArray[np.float32]] = []

    @override
    def forward(self, observations: Observations) -> Decision:
        if len(self.recorded) < _MAX_RECORDED:
            self.recorded.append(observations[:4])
        return self._agent.forward(observations)


class WarmEngine(Engine):
    """Runs trials of NAPPING that start with principles they have learned before."""

    def __init__(self, run: RunSpec, agent: Agent, tables: Tables, is_compiled: bool = True) -> None:
        super().__init__(run, agent, is_compiled=is_compiled)
        self._tables = tables
        self.admit_seconds = 0.0
        """Spent on starting trials, which includes restoring their principles."""

    @override
    def _admit(self, slots: Rows, waiting: Iterator[int], trials: list[TrialSpec]) -> Rows:
        started = time.process_time()
        rows = super()._admit(slots, waiting, trials)
        assert isinstance(self.method, Napping)
        for row in rows.tolist():
            self.method.principles.restore(row, self._tables[_key(trials[self._trial[row]])])
        self.admit_seconds += time.process_time() - started
        return rows


def measure(regions: int = 1000, on_progress: OnProgress | None = None) -> dict[str, Any]:
    """All measurements; times are in microseconds per step of one trial."""
    measured: dict[str, Any] = {}
    names = ("ppo", "dqn")
    with threadpool_limits(1):
        for i, name in enumerate(names):
            if on_progress is not None:
                on_progress(i, len(names))
            measured |= _measure_agent(name, load(name, "cartpole"), regions)
    if on_progress is not None:
        on_progress(len(names), len(names))
    measured["sites_4000_over_100"] = measured["dqn_step_us_4000_sites"] / measured["dqn_step_us_100_sites"]
    return measured


def _measure_agent(name: str, agent: Agent, regions: int) -> dict[str, Any]:
    spec = RunSpec(
        "cartpole", name, "napping", trials=_POOL, seed=1, detector="given", protocol=f"0+{_ADAPT_EPISODES}"
    ).complete()
    learned, queries = adapt(spec, agent, spec.trial_specs())
    again = replace(spec, protocol=f"0+{_EPISODES}")
    chosen = closest_trials(again, learned, regions)
    engine_us, returns = _time_engine(again, agent, chosen, learned)
    user_us, user_returns = _time_user_loop(name, agent, chosen[:_USER_TRIALS], learned)
    forward_us = time_matrix_products(agent)
    measured = {
        f"{name}_regions": float(np.mean([_n_regions(learned, trial) for trial in chosen])),
        f"{name}_engine_step_us": engine_us,
        f"{name}_user_step_us": user_us,
        f"{name}_forward_us": forward_us,
        f"{name}_speedup": user_us / engine_us,
        f"{name}_tick_over_forward": engine_us / forward_us,
        f"{name}_same_returns": float(np.mean(returns[:_USER_TRIALS] == user_returns)),
    }
    sites = np.concatenate([table["site"] for table in learned.values()])
    for n in (10, 100, 1000, 4000):
        measured[f"{name}_step_us_{n}_sites"] = _time_sites(agent, sites[:n], queries)
    return measured


def closest_trials(spec: RunSpec, learned: Tables, regions: int) -> list[TrialSpec]:
    """The trials of a run whose number of regions is closest to `regions`."""
    return sorted(spec.trial_specs(), key=lambda trial: abs(_n_regions(learned, trial) - regions))[:_CHOSEN]


def _key(trial: TrialSpec) -> int:
    return trial.key("choice")


def _n_regions(learned: Tables, trial: TrialSpec) -> int:
    return len(learned[_key(trial)]["wanted"])


def adapt(spec: RunSpec, agent: Agent, trials: list[TrialSpec]) -> tuple[Tables, NDArray[np.float32]]:
    """Run the trials; returns their principles, and some of the observations."""
    recording = RecordingAgent(agent)
    engine = Engine(spec, recording, slots=len(trials))  # trial i stays in slot i
    engine.run_trials(trials)
    assert isinstance(engine.method, Napping)
    learned = {_key(trial): engine.method.principles.table(i) for i, trial in enumerate(trials)}
    return learned, np.concatenate(recording.recorded)


def _time_engine(
    spec: RunSpec, agent: Agent, trials: list[TrialSpec], learned: Tables
) -> tuple[float, NDArray[np.float64]]:
    """Microseconds per step of one trial, the minimum of some repeats; and the returns (trials, episodes).

    Restoring the principles is not part of a step.
    """
    best = np.inf
    for _ in range(_REPEATS):
        engine = WarmEngine(spec, agent, learned)
        started = time.process_time()
        rows = engine.run_trials(trials)
        best = min(best, time.process_time() - started - engine.admit_seconds)
    return best / int(rows["length"].sum()) * 1e6, rows["return"].to_numpy().reshape(len(trials), -1)


def _time_user_loop(
    name: str, agent: Agent, trials: list[TrialSpec], learned: Tables
) -> tuple[float, NDArray[np.float64]]:
    """Microseconds per step of the user's loop on the same trials, and the returns (trials, episodes)."""
    loop = UserLoop(name, agent)
    steps, seconds = 0, 0.0
    returns = []
    for trial in trials:
        starts = trial.stream("reset").random((_EPISODES, 4)) * 0.1 - 0.05
        parameters = trial.parameters()
        assert parameters is not None
        loop.change_parameters(parameters)
        best = np.inf
        for _ in range(_REPEATS):
            started = time.process_time()
            trial_returns = loop.run(starts, learned[_key(trial)])
            best = min(best, time.process_time() - started)
        seconds += best
        steps += int(sum(trial_returns))
        returns.append(trial_returns)
    return seconds / steps * 1e6, np.array(returns)


def time_matrix_products(agent: Agent) -> float:
    """Microseconds per observation of the matrix products (BLAS) of one tick."""
    assert isinstance(agent, MlpAgent)
    _, layers = policy_layers(agent.weights())
    inputs = [np.random.default_rng(0).random((SLOTS, w.shape[0]), np.float32) for w, _ in layers]
    pairs = [
        (x, np.ascontiguousarray(w, np.float32), np.empty((SLOTS, w.shape[1]), np.float32))
        for x, (w, _) in zip(inputs, layers, strict=True)
    ]
    best = np.inf
    for _ in range(20):
        started = time.process_time()
        for _ in range(100):
            for x, w, out in pairs:
                np.matmul(x, w, out=out)
        best = min(best, (time.process_time() - started) / 100 / SLOTS)
    return best * 1e6


def _time_sites(agent: Agent, sites: NDArray[np.float32], queries: NDArray[np.float32]) -> float:
    """Microseconds per step of forward pass and search, for a batch of trials that all have these sites."""
    n = len(sites)
    rows = np.arange(SLOTS)
    principles = Principles(SLOTS, agent.n_actions, agent.embedding_dim)
    wanted = np.arange(n) % agent.n_actions
    others = np.eye(agent.n_actions, dtype=np.bool_)[1 - wanted]
    table: dict[str, NDArray[Any]] = {
        "site": sites,
        "situation": np.zeros((n, 0), np.float32),
        "wanted": wanted,
        "candidates": others,
        "tested": others,
        "best": np.zeros(n),
        "best_action": wanted,
        "visits": wanted,
    }
    for row in rows.tolist():
        principles.restore(row, table)
    batches = queries[: len(queries) // SLOTS * SLOTS].reshape(-1, SLOTS, queries.shape[1])[:60]
    best = np.inf
    for _ in range(_REPEATS):
        started = time.process_time()
        for batch in batches:
            decision = agent.forward(batch)
            principles.select(rows, decision.model_states, decision.actions)
        best = min(best, (time.process_time() - started) / len(batches) / SLOTS)
    return best * 1e6
