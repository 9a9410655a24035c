"""The process that is attacked: makes saved agents, and loads and uses mutated ones, one line of JSON for each."""

import json
import resource
import sys
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from nappingrl import NappingAgent
from nappingrl.errors import BadAgentError, NappingError
from nappingrl.registry import detectors, methods

MAX_MEMORY = 6 * 2**30
"""Address space; numpy and numba's compiler reserve about 2 GB of it."""
N_STEPS = 300
N_EPISODE_STEPS = 12
N_BEFORE, N_AFTER = 45, 8
"""Episodes; detectors calibrate on the first 40."""
CHEAP = {
    "n_rollouts": 2, "n_initial_policies": 12, "n_later_policies": 6, "n_search_rounds": 1, "n_mutants": 4,
    "n_residuals": 2, "residual_gains": "0.5,2", "n_planning_episodes": 3, "surprise": 100,
}  # fmt: skip
"""Options that make planning fast, for methods that have them."""
DISCRETE = "cartpole", "ppo", "nappingrl/CartPole-v0"
CONTINUOUS = "Pendulum-v1", "sac", "Pendulum-v1"


def kinds() -> Iterator[tuple[str, tuple[str, str, str], dict[str, Any]]]:
    """Name, world and arguments of every agent that can be saved: each method with each detector."""
    number = 0
    for method in methods.names():
        if not methods.get(method).can_be_saved:
            continue
        worlds = [(DISCRETE, detector) for detector in detectors.names()]
        if not methods.get(method).needs_discrete:
            worlds.append((CONTINUOUS, "residual"))
        for world, detector in worlds:
            number += 1
            options = {name: value for name, value in CHEAP.items() if name in methods.get(method).options}
            arguments = {
                "method": method,
                "detector": detector,
                "guard": number % 2 == 0,
                "n_envs": 1 + number % 3 // 2,
            }
            yield f"{method}-{detector}-{world[0]}", world, arguments | options


def make_seeds(folder: Path) -> None:
    """Save one agent of each kind, with what it was used for beside it."""
    for name, (domain, model, env_id), arguments in kinds():
        try:
            agent = NappingAgent(model, domain=domain, **arguments)
        except NappingError as error:  # a detector that cannot be used in this domain
            print(json.dumps({"skipped": f"{name}: {error}"}))
            continue
        steps = [step for i in range(agent.n_envs) for step in _play(agent, gymnasium.make(env_id), i)]
        agent.save(folder / f"{name}.zip")
        np.savez(folder / f"{name}.npz", **{key: np.array([step[key] for step in steps]) for key in steps[0]})


def _play(agent: NappingAgent, env: gymnasium.Env[Any, Any], index: int) -> list[dict[str, Any]]:
    """Play before and after a change, and switch between contexts; returns the steps after it."""
    base: Any = env.unwrapped
    wrapped, steps = agent.wrap(env, index), []
    for episode in range(N_BEFORE + N_AFTER):
        is_changed = episode >= N_BEFORE
        options = {"params": {"force": -10.0}} if is_changed and hasattr(base, "set_params") else None
        if episode == N_BEFORE + N_AFTER // 2:
            agent.switch_to("windy", index)
        if episode == N_BEFORE + N_AFTER - 1:
            agent.switch_to("novelty 1" if "novelty 1" in agent.contexts(index) else "icy", index)
        observation, _ = wrapped.reset(seed=episode, options=options)
        for t in range(N_EPISODE_STEPS):
            batch = np.repeat(np.asarray(observation)[None], index + 1, axis=0)
            action = agent.predict(batch)[0][index]
            following, reward, terminated, _, _ = env.step(action)
            truncated = not terminated and t == N_EPISODE_STEPS - 1
            if episode < N_BEFORE + N_AFTER - 1 or t < N_EPISODE_STEPS // 2:  # saved within an episode
                agent.observe(observation, action, following, reward, terminated, truncated, env=index)
            if is_changed:
                steps.append({
                    "observation": observation, "action": action, "next_observation": following,
                    "reward": float(reward), "terminated": terminated, "truncated": truncated,
                })  # fmt: skip
            observation = following
            if terminated or truncated:
                break
    return steps


def use(path: Path, steps: dict[str, NDArray[Any]]) -> str:
    """Load a file and use it; returns what became of it."""
    try:
        agent = NappingAgent.load(path)
    except BadAgentError as error:
        if "\n" in str(error):
            raise ValueError(f"an error of several lines: {error!r}") from error
        return "refused"
    n = agent.n_envs
    for t in range(N_STEPS):
        step = {name: array[[(t + 7 * i) % len(array) for i in range(n)]] for name, array in steps.items()}
        step["action"] = agent.predict(step["observation"])[0]
        agent.observe(**step)
    for env in range(n):
        agent.explain(env)
        agent.describe_policy(env)
        agent.detector.explain(env)
        agent.switch_to(list(agent.contexts(env))[-1], env)
    again = agent.save(path.with_name("again.zip"))
    try:
        NappingAgent.load(again)
    except BadAgentError:  # numbers at the edge of what is allowed may have grown beyond it
        return "used"
    return "used"


def serve(folder: Path) -> None:
    """For each line "kind path" on stdin, one line on stdout: refused, used, or a traceback."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    steps = {path.stem: dict(np.load(path)) for path in folder.glob("*.npz")}
    for line in sys.stdin:
        kind, path = line.rstrip("\n").split("\t")
        try:
            answer = use(Path(path), steps[kind])
        except Exception:
            answer = "failed " + " | ".join(traceback.format_exc().splitlines()[-7:])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    {"seeds": make_seeds, "serve": serve}[sys.argv[1]](Path(sys.argv[2]))
