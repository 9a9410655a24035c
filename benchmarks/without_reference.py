"""`NappingAgent(model).wrap(env)` without `calibrate`: no step of the original environment is known.

python benchmarks/without_reference.py --trials 10 --seed 31
python benchmarks/without_reference.py --group action --episodes 40 --trials 4

The agents are those of benchmarks/agents. By default the environments are unchanged, and the
first ten episodes should lose nothing: `difference` is the mean of auto's episodes minus the frozen agent's, from the
same resets, in percent of the range between random actions and the frozen agent, with a 95 % bootstrap interval over
trials. `--group action` and `--group sensor` wrap changed environments.
"""

import argparse
import warnings
from pathlib import Path

import gymnasium
import numpy as np
from adapt_by_default import AGENTS, CASES, Case, random_return

from nappingrl import AdaptationWarning, NappingAgent
from nappingrl.novelties import apply_novelty
from nappingrl.report.intervals import bootstrap_interval, mean


def returns(case: Case, agents: Path, method: str, n_episodes: int, seed: int) -> list[float]:
    """Returns of the first episodes after wrapping."""
    bare = gymnasium.make(case.env)
    agent = NappingAgent(str(agents / f"{case.agent}.zip"), method=method, seed=seed)
    env = agent.wrap(bare if case.novelty == "none" else apply_novelty(bare, case.novelty))
    totals = []
    for episode in range(n_episodes):
        observation, _ = env.reset(seed=seed * 1000 + episode)
        total, is_over = 0.0, False
        while not is_over:
            action, _ = agent.predict(observation)
            observation, reward, terminated, truncated, _ = env.step(action)
            total, is_over = total + float(reward), terminated or truncated
        totals.append(total)
    return totals


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=Path, default=AGENTS, help="folder with the trained agents")
    parser.add_argument("--group", choices=("none", "action", "sensor", "harmless"), default="none")
    parser.add_argument("--only", default="", help="only cases whose name contains this text")
    parser.add_argument("--episodes", type=int, default=10)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--seed", type=int, default=31)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", AdaptationWarning)
    print("| case | frozen | auto | auto, last ten | difference, % of range |\n|---|---|---|---|---|", flush=True)
    for case in CASES:
        if case.group != arguments.group or arguments.only not in case.name:
            continue
        if not (arguments.agents / f"{case.agent}.zip").exists():
            print(f"| {case.name} | no agent {case.agent}.zip |", flush=True)
            continue
        seeds = range(arguments.seed, arguments.seed + arguments.trials)
        frozen, auto = (
            np.array([returns(case, arguments.agents, method, arguments.episodes, seed) for seed in seeds])
            for method in ("frozen", "auto")
        )
        scale = abs(frozen.mean() - random_return(case.env)) / 100
        difference = (auto - frozen).mean(axis=1) / scale
        interval = bootstrap_interval(mean, difference, rng=np.random.default_rng(0))
        span = f" [{interval.low:+.1f}, {interval.high:+.1f}]" if interval else ""
        print(
            f"| {case.name} | {frozen.mean():.1f} | {auto.mean():.1f} | {auto[:, -10:].mean():.1f} "
            f"| {difference.mean():+.1f}{span} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
