"""CPU time per step of foresight and its detector, on one core, averaged over whole CartPole trials.

Run: python benchmarks/foresight_cost.py --trials 64
"""

import argparse
import time

from threadpoolctl import threadpool_limits

from nappingrl.agents import load
from nappingrl.trials.engine import Engine
from nappingrl.trials.spec import RunSpec

CASES = (("frozen", "never"), ("frozen", "residual"), ("napping", "rolling-mean"), ("foresight", "residual"))


def microseconds(domain: str, agent: str, method: str, detector: str, trials: int, seed: int) -> tuple[float, int]:
    """CPU time per step, and the number of steps; compilation is not included."""
    spec = RunSpec(domain, agent, method, detector=detector, trials=trials, seed=seed).complete()
    loaded = load(spec.agent, domain)
    Engine(spec, loaded).run_trials(spec.trial_specs()[:2])
    engine = Engine(spec, loaded)
    started = time.process_time()
    steps = int(engine.run_trials(spec.trial_specs())["length"].sum())
    return 1e6 * (time.process_time() - started) / steps, steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--domain", default="cartpole")
    parser.add_argument("--agents", nargs="+", default=["ppo", "dqn"])
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--seed", type=int, default=31)
    options = parser.parse_args()
    print("| agent | method | detector | steps | us per step | more than frozen |\n|---|---|---|---|---|---|")
    with threadpool_limits(1):
        for agent in options.agents:
            base = 0.0
            for method, detector in CASES:
                cost, steps = microseconds(options.domain, agent, method, detector, options.trials, options.seed)
                base = base or cost
                print(f"| {agent} | {method} | {detector} | {steps} | {cost:.1f} | {cost - base:.1f} |", flush=True)


if __name__ == "__main__":
    main()
