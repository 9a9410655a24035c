"""Where the time of a step goes: NAPPING in CartPole with about a thousand regions, CPU microseconds per step.

python benchmarks/profile_tick.py ppo --trials 256 --rounds 5

The stages are those of the engine's ticks, one call for up to 128 trials. The last lines are the whole step by ticks
and in the kernel that plays whole episodes, and the bare forward pass (matrix products).
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any

from threadpoolctl import threadpool_limits

from nappingrl.agents import load
from nappingrl.agents.base import Agent
from nappingrl.benchmark.engine import Tables, WarmEngine, adapt, closest_trials, time_matrix_products
from nappingrl.trials.spec import RunSpec, TrialSpec

Seconds = dict[str, float]


def wrap(owner: Any, name: str, label: str, seconds: Seconds) -> None:
    """Add the time that a method takes to `seconds`."""
    work: Callable[..., Any] = getattr(owner, name)

    def timed(*arguments: Any) -> Any:
        started = time.process_time()
        result = work(*arguments)
        seconds[label] += time.process_time() - started
        return result

    setattr(owner, name, timed)


def instrument(engine: WarmEngine) -> Seconds:
    """Time the stages of a tick."""
    seconds: Seconds = defaultdict(float)
    adaptation, method, domain = engine.adaptation, engine.method, engine.domain
    principles: Any = vars(method)["principles"]
    method.agent = copy(method.agent)
    stages = (
        (adaptation, "are_usable", "filter observations"), (method.agent, "forward", "forward pass"),
        (method, "act", "NAPPING acts"), (principles, "select", "- of which search and choice"),
        (domain, "step", "domain: step"), (domain, "observe", "domain: observe"),
        (adaptation.filter, "accept", "filter transitions"), (method, "learn", "NAPPING learns"),
        (method, "scores_of", "- of which the score"), (principles, "update", "- of which the principles"),
        (engine, "_end_episodes", "ends of episodes"),
    )  # fmt: skip
    for owner, name, label in stages:
        seconds[label] = 0.0
        wrap(owner, name, label, seconds)
    return seconds


def run(engine: WarmEngine, trials: list[TrialSpec]) -> tuple[float, int]:
    """CPU seconds and steps of a run, without its beginning."""
    started = time.process_time()
    rows = engine.run_trials(trials)
    return time.process_time() - started - engine.admit_seconds, int(rows["length"].sum())


def profile(name: str, agent: Agent, trials_before: int, repeats: int) -> None:
    spec = RunSpec(
        "cartpole", name, "napping", trials=trials_before, seed=1, detector="given", protocol="0+40"
    ).complete()
    learned: Tables = adapt(spec, agent, spec.trial_specs())[0]
    again = replace(spec, protocol="0+10")
    trials = closest_trials(again, learned, 1000)
    by_ticks = min(run(WarmEngine(again, agent, learned, is_compiled=False), trials) for _ in range(repeats))
    in_kernel = min(run(WarmEngine(again, agent, learned), trials) for _ in range(repeats))
    runs = []
    for _ in range(repeats):
        engine = WarmEngine(again, agent, learned, is_compiled=False)
        seconds = instrument(engine)
        runs.append((run(engine, trials), seconds))
    (_, steps), seconds = min(runs, key=lambda pair: pair[0])
    rows = {label: spent / steps * 1e6 for label, spent in seconds.items()}
    rows["a step by ticks"] = by_ticks[0] / by_ticks[1] * 1e6
    rows["a step in the kernel"] = in_kernel[0] / in_kernel[1] * 1e6
    rows["bare forward pass"] = min(time_matrix_products(agent) for _ in range(repeats))
    print(f"| {name} | us per step | x bare forward pass |\n|---|---|---|")
    for label, us in rows.items():
        print(f"| {label} | {us:.2f} | {us / rows['bare forward pass']:.1f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("agents", nargs="*", default=["ppo", "dqn"])
    parser.add_argument("--trials", type=int, default=256, help="that adapt; half of them are timed")
    parser.add_argument("--rounds", type=int, default=5, help="repeats, of which the fastest counts")
    options = parser.parse_args()
    with threadpool_limits(1):
        for name in options.agents:
            profile(name, load(name, "cartpole"), options.trials, options.rounds)


if __name__ == "__main__":
    main()
