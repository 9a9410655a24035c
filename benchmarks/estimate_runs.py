"""What a large run would cost, from a small one: CPU time of a step, and of all its trials.

python benchmarks/estimate_runs.py angrybirds --agents naive datalab --novelty all --trials 1 --protocol 5+5 --of 280
python benchmarks/estimate_runs.py mountaincar --agents dqn --method online --trials 4 --of 2000

One process on one core, after a run that compiles the kernels. The estimate is for --of trials of the paper's 40 + 40
episodes that are as long as those of the small run.
"""

import argparse
import time
from dataclasses import replace

from threadpoolctl import threadpool_limits

from nappingrl.agents import load
from nappingrl.trials.engine import Engine
from nappingrl.trials.spec import RunSpec

EPISODES = 80
"""Of a trial of the paper."""


def measure(spec: RunSpec) -> tuple[float, int, int]:
    """CPU seconds, steps and episodes of a run."""
    agent = load(spec.agent, spec.domain)
    few = replace(spec, trials=1, protocol="1+1")
    Engine(few, agent).run_trials(few.trial_specs(0, 1))
    started = time.process_time()
    rows = Engine(spec, agent).run_trials(spec.trial_specs())
    return time.process_time() - started, int(rows["length"].sum()), len(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("domain")
    parser.add_argument("--agents", nargs="+", required=True)
    parser.add_argument("--method", default="frozen")
    parser.add_argument("--novelty", default="")
    parser.add_argument("--trials", type=int, default=4, help="of the small run, per novelty")
    parser.add_argument("--protocol", default="paper", help="of the small run")
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--of", type=int, default=1000, help="trials of the large run, over all novelties")
    parser.add_argument("--cores", type=int, default=2)
    options = parser.parse_args()
    print(f"| agent | steps | CPU s | ms per step | minutes of {options.of} trials on {options.cores} cores |")
    print("|---|---|---|---|---|")
    total = 0.0
    with threadpool_limits(1):
        for agent in options.agents:
            spec = RunSpec(
                options.domain, agent, options.method, options.novelty, options.trials, options.seed,
                protocol=options.protocol,
            )  # fmt: skip
            cpu, steps, episodes = measure(spec.complete())
            minutes = cpu / episodes * EPISODES * options.of / 60 / options.cores
            total += minutes
            print(f"| {agent} | {steps} | {cpu:.1f} | {1000 * cpu / steps:.4f} | {minutes:.1f} |", flush=True)
    print(f"| all | | | | {total:.1f} |")


if __name__ == "__main__":
    main()
