"""Where the CPU time of foresight or auto and of the detector goes, per step of a trial, on one core.

Run: python benchmarks/profile_foresight.py cartpole --agent ppo --trials 96
Run: python benchmarks/profile_foresight.py cartpole --agent ppo --method auto --trials 96
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable
from functools import wraps
from typing import Any

from threadpoolctl import threadpool_limits

from nappingrl.agents import load
from nappingrl.detectors.residual import Residual
from nappingrl.methods.facts.trial import FactsTrial
from nappingrl.methods.foresight import planner
from nappingrl.methods.napping_ucb import NappingUcb
from nappingrl.methods.reground import Reground
from nappingrl.methods.reground.trial import RegroundTrial
from nappingrl.trials.engine import Engine
from nappingrl.trials.spec import RunSpec
from nappingrl.world_model.memory import TransitionMemory

PARTS: tuple[tuple[str, Any, str], ...] = (
    ("planning", planner.Planner, "replan"),
    ("- of which the search", planner, "search"),
    ("- of which rollouts of the agent", planner, "evaluate_with_agent"),
    ("- of which fit and terminations", planner.Planner, "_rollouts"),
    ("detector: steps", Residual, "step"),
    ("- of which residuals", TransitionMemory, "judge"),
    ("- of which exchanged actions", Residual, "_judge_exchange"),
    ("detector: ends of episodes", Residual, "end_episode"),
    ("- of which the calibration", Residual, "_calibrate"),
    ("re-grounding", Reground, "learn"),
    ("- of which searches", RegroundTrial, "search"),
    ("NAPPING-UCB", NappingUcb, "learn"),
    ("facts", FactsTrial, "plan"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("domain", nargs="?", default="cartpole")
    parser.add_argument("--agent", default="ppo")
    parser.add_argument("--method", default="foresight", choices=["foresight", "auto"])
    parser.add_argument("--trials", type=int, default=96)
    options = parser.parse_args()
    spec = RunSpec(options.domain, options.agent, options.method, trials=options.trials, seed=1).complete()
    agent = load(spec.agent, spec.domain)
    seconds: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    with threadpool_limits(1):
        Engine(spec, agent).run_trials(spec.trial_specs(0, 1))  # compiles the kernels
        for label, owner, name in PARTS:
            setattr(owner, name, _timed(getattr(owner, name), label, seconds, calls))
        started = time.process_time()
        n_steps = int(Engine(spec, agent).run_trials(spec.trial_specs())["length"].sum())
        spent = time.process_time() - started
    print("| part | calls per trial | us per step |\n|---|---|---|")
    for label in (label for label, _, _ in PARTS if calls[label]):
        print(f"| {label} | {calls[label] / options.trials:.1f} | {1e6 * seconds[label] / n_steps:.2f} |")
    rest = spent - sum(seconds[label] for label, _, _ in PARTS if not label.startswith("- "))
    print(f"| the rest: agent, domain, rows | | {1e6 * rest / n_steps:.2f} |")
    print(f"| all | | {1e6 * spent / n_steps:.2f} |")


def _timed(function: Callable[..., Any], label: str, seconds: Counter[str], calls: Counter[str]) -> Callable[..., Any]:
    @wraps(function)
    def timed(*arguments: Any) -> Any:
        started = time.process_time()
        result = function(*arguments)
        seconds[label] += time.process_time() - started  # type: ignore[assignment] # a Counter of floats
        calls[label] += 1
        return result

    return timed


if __name__ == "__main__":
    main()
