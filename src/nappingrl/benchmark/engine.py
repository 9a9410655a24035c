"""How fast the engine is: against the loop a user would write, against its own forward pass, and as sites grow.

Everything is measured in one process on one core, on trials that have adapted already: each goes on with the
principles that it learned (about a thousand), so sites and queries are real model states.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import polars as pl
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from nappingrl import registry
from nappingrl.agents import load
from nappingrl.agents.base import Agent
from nappingrl.agents.mlp import MlpAgent
from nappingrl.agents.state_dict import policy_layers
from nappingrl.domains.cartpole import CartPole
from nappingrl.errors import MissingExtraError
from nappingrl.methods.napping import Napping
from nappingrl.methods.napping.principles import Principles
from nappingrl.trials.engine import SLOTS, Engine
from nappingrl.trials.spec import RunSpec, TrialSpec
from nappingrl.types import Flags, Keys, Rows, Transition

Tables = dict[int, dict[str, NDArray[Any]]]
OnProgress = Callable[[int, int], None]

_POOL, _CHOSEN, _ADAPT_EPISODES, _EPISODES, _USER_TRIALS, _REPEATS = 256, 128, 40, 10, 2, 3


class Warm(Napping):
    """NAPPING that begins each trial with the principles it had learned before, and remembers what it sees."""

    tables: Tables = {}  # noqa: RUF012
    """By the trial's key: what each trial begins with."""
    seen: list[NDArray[np.float32]] = []  # noqa: RUF012
    learned: Tables = {}  # noqa: RUF012

    def start(self, rows: Rows, keys: Keys) -> None:
        """Put the learned principles back."""
        super().start(rows, keys)
        self._keys = getattr(self, "_keys", np.zeros(self.n, np.uint64))
        self._keys[rows] = keys
        for row, key in zip(rows.tolist(), keys.tolist(), strict=True):
            if key in self.tables:
                self.principles.restore(row, self.tables[key])

    def learn(self, rows: Rows, transition: Transition, detected: Flags) -> None:
        """Algorithm 2; while nothing is put back, keep some observations as queries."""
        super().learn(rows, transition, detected)
        if not self.tables and len(self.seen) < 4000:
            self.seen.append(transition.observations[:4])

    def end_episode(self, rows: Rows) -> None:
        """While nothing is put back, keep what was learned."""
        if not self.tables:
            for row in rows.tolist():
                self.learned[int(self._keys[row])] = self.principles.table(row)


registry.methods.add("bench-warm", "nappingrl.benchmark.engine:Warm")


def measure(regions: int = 1000, on_progress: OnProgress | None = None) -> dict[str, Any]:
    """All measures, as one flat dictionary; times in microseconds per step of one trial."""
    found: dict[str, Any] = {}
    stages = [("ppo", "cartpole"), ("dqn", "cartpole")]
    with threadpool_limits(1):
        for i, (name, domain) in enumerate(stages):
            if on_progress is not None:
                on_progress(i, len(stages))
            found |= _measure_agent(name, load(name, domain), regions)
    if on_progress is not None:
        on_progress(len(stages), len(stages))
    found["sites_4000_over_100"] = found["dqn_step_us_4000_sites"] / found["dqn_step_us_100_sites"]
    return found


def _measure_agent(name: str, agent: Agent, regions: int) -> dict[str, Any]:
    Warm.tables, Warm.seen, Warm.learned = {}, [], {}
    spec = RunSpec(
        "cartpole", name, "bench-warm", trials=_POOL, seed=1, detector="given", protocol=f"0+{_ADAPT_EPISODES}"
    ).complete()
    trials = spec.trial_specs()
    Engine(spec, agent).run_trials(trials)
    queries = np.concatenate(Warm.seen)
    learned = Warm.learned
    # Go on with the trials whose number of regions is nearest to what was asked for.
    trials.sort(key=lambda trial: abs(len(learned[trial.key("choice")]["wanted"]) - regions))
    Warm.tables = learned
    again = replace(spec, protocol=f"0+{_EPISODES}")
    chosen = [TrialSpec(again, trial.novelty, trial.number) for trial in trials[:_CHOSEN]]
    engine_us, returns = _time_engine(again, agent, chosen)
    user_us, user_returns = _time_user_loop(name, agent, chosen[:_USER_TRIALS], learned)
    forward_us = _time_matrix_products(agent)
    found = {
        f"{name}_regions": float(np.mean([len(learned[trial.key("choice")]["wanted"]) for trial in chosen])),
        f"{name}_engine_step_us": engine_us,
        f"{name}_user_step_us": user_us,
        f"{name}_forward_us": forward_us,
        f"{name}_speedup": user_us / engine_us,
        f"{name}_tick_over_forward": engine_us / forward_us,
        f"{name}_same_returns": float(np.mean(returns[:_USER_TRIALS] == user_returns)),
    }
    sites = np.concatenate([table["site"] for table in learned.values()])
    for n in (10, 100, 1000, 4000):
        found[f"{name}_step_us_{n}_sites"] = _time_sites(agent, sites[:n], queries)
    return found


def _time_engine(spec: RunSpec, agent: Agent, trials: list[TrialSpec]) -> tuple[float, NDArray[np.float64]]:
    """Microseconds per step of one trial, the least of a few repeats; and the returns (trials, episodes).

    The time of a run with one episode is subtracted: what it costs to put the principles back is not a step.
    """
    short = [replace(trial, run=replace(spec, protocol="0+1")) for trial in trials]
    brief = whole = np.inf
    for _ in range(_REPEATS):
        seconds, brief_rows = _timed(lambda: Engine(short[0].run, agent).run_trials(short))
        brief = min(brief, seconds)
        seconds, rows = _timed(lambda: Engine(spec, agent).run_trials(trials))
        whole = min(whole, seconds)
    steps = int(rows["length"].sum()) - int(brief_rows["length"].sum())
    return (whole - brief) / steps * 1e6, rows["return"].to_numpy().reshape(len(trials), -1)


def _timed(work: Callable[[], pl.DataFrame]) -> tuple[float, pl.DataFrame]:
    started = time.perf_counter()
    rows = work()
    return time.perf_counter() - started, rows


def _time_matrix_products(agent: Agent) -> float:
    """Microseconds per observation of the bare matrix products (BLAS) of one tick."""
    assert isinstance(agent, MlpAgent)
    _, layers = policy_layers(agent.weights())
    inputs = [np.random.default_rng(0).random((SLOTS, w.shape[0]), np.float32) for w, _ in layers]
    pairs = [
        (x, np.ascontiguousarray(w, np.float32), np.empty((SLOTS, w.shape[1]), np.float32))
        for x, (w, _) in zip(inputs, layers, strict=True)
    ]
    best = np.inf
    for _ in range(20):
        started = time.perf_counter()
        for _ in range(100):
            for x, w, out in pairs:
                np.matmul(x, w, out=out)
        best = min(best, (time.perf_counter() - started) / 100 / SLOTS)
    return best * 1e6


def _time_sites(agent: Agent, sites: NDArray[np.float32], queries: NDArray[np.float32]) -> float:
    """Microseconds per step of forward pass and search, for a batch of trials that all have these sites."""
    n, rows = len(sites), np.arange(SLOTS)
    principles = Principles(SLOTS, agent.n_actions, agent.embedding_dim)
    wanted = np.arange(n) % agent.n_actions
    sets = np.eye(agent.n_actions, dtype=np.bool_)[1 - wanted]
    table: dict[str, NDArray[Any]] = {
        "site": sites,
        "wanted": wanted,
        "candidates": sets,
        "tested": sets,
        "best": np.zeros(n),
    }
    table |= {"best_action": wanted, "visits": wanted, "situation": np.zeros((n, 0), np.float32)}
    for row in rows.tolist():
        principles.restore(row, table)
    batches = queries[: len(queries) // SLOTS * SLOTS].reshape(-1, SLOTS, queries.shape[1])[:60]
    best = np.inf
    for _ in range(_REPEATS):
        started = time.perf_counter()
        for batch in batches:
            decision = agent.forward(batch)
            principles.select(rows, decision.model_states, decision.actions)
        best = min(best, (time.perf_counter() - started) / len(batches) / SLOTS)
    return best * 1e6


# ------------------------------------------------------------------------------------- the loop a user would write


def _time_user_loop(
    name: str, agent: Agent, trials: list[TrialSpec], learned: Tables
) -> tuple[float, NDArray[np.float64]]:
    """The same trials with SB3's predict(), a forward hook, gymnasium's CartPole and numpy's argmin."""
    try:
        import stable_baselines3 as sb3
        import torch
    except ImportError as error:
        raise MissingExtraError('the benchmark needs SB3: pip install "nappingrl[sb3]"') from error
    torch.set_num_threads(1)
    env = gymnasium.make("CartPole-v1", max_episode_steps=CartPole.spec.horizon)
    hidden = [agent.embedding_dim, agent.embedding_dim]
    kind: Any = {"ppo": sb3.PPO, "dqn": sb3.DQN}[name]
    model = kind("MlpPolicy", env, policy_kwargs={"net_arch": hidden}, device="cpu")
    model.policy.load_state_dict({key: torch.from_numpy(value) for key, value in agent.weights().items()})
    layer = model.policy.mlp_extractor.policy_net if name == "ppo" else model.policy.q_net.q_net[-2]
    seen: dict[str, Any] = {}
    layer.register_forward_hook(lambda module, inputs, output: seen.update(model_state=output))
    steps, returns, seconds = 0, [], 0.0
    for trial in trials:
        starts = trial.stream("reset").random((_EPISODES, 4)) * 0.1 - 0.05
        table, parameters = learned[trial.key("choice")], trial.parameters()
        assert parameters is not None
        _change_world(env.unwrapped, parameters)
        best = np.inf
        for _ in range(_REPEATS):
            started = time.perf_counter()
            got = _user_trial(env, model, seen, starts, table)
            best = min(best, time.perf_counter() - started)
        seconds += best
        steps += int(sum(got))
        returns.append(got)
    return seconds / steps * 1e6, np.array(returns)


def _change_world(world: Any, parameters: dict[str, float]) -> None:
    world.length, world.gravity = parameters["length"], parameters["gravity"]
    world.masscart, world.masspole, world.force_mag = (parameters[k] for k in ("masscart", "masspole", "force"))
    world.total_mass = world.masspole + world.masscart
    world.polemass_length = world.masspole * world.length


def _user_trial(
    env: Any, model: Any, seen: dict[str, Any], starts: NDArray[np.float64], table: dict[str, NDArray[Any]]
) -> list[float]:
    """NAPPING (rule revised) for one trial, one step at a time, with plain lists and a preallocated array of sites."""
    n = len(table["wanted"])
    sites = np.empty((n + len(starts) * CartPole.spec.horizon, table["site"].shape[1]), np.float32)
    sites[:n] = table["site"]
    keys, candidates = table["wanted"].tolist(), [set(np.flatnonzero(c).tolist()) for c in table["candidates"]]
    best, everything = table["best"].tolist(), {0, 1}
    returns = []
    for start in starts:
        env.reset()
        env.unwrapped.state = start.copy()
        observation, total, ended = start.astype(np.float32), 0.0, False
        while not ended:
            action, _ = model.predict(observation, deterministic=True)
            wanted = executed = int(action)
            model_state = seen["model_state"].numpy()[0]
            offsets = sites[:n] - model_state
            region = int(np.argmin((offsets * offsets).sum(axis=1)))
            matches = keys[region] == wanted
            if matches:
                executed = next(iter(candidates[region]))
            following, reward, terminated, truncated, _ = env.step(executed)
            heading = 1.0 if observation[2] + 0.3 * observation[3] > 0 else -1.0
            score = -heading * (float(following[3]) - float(observation[3]))
            new = None
            if not matches:
                new = {wanted} if score >= 0 else everything - {wanted}
            elif score > best[region]:
                best[region] = score
            elif score < best[region] and score < 0:
                new = everything - {executed}
            if new is not None:
                sites[n] = model_state
                keys.append(wanted)
                candidates.append(new)
                best.append(score)
                n += 1
            total += reward
            observation, ended = following, terminated or truncated
        returns.append(total)
    return returns
