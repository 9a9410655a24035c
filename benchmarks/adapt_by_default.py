"""Adapting by default in ten environments: prints the tables of docs/adapt-by-default.md.

python benchmarks/adapt_by_default.py --group action --trials 10 --seed 31

The agents are those of benchmarks/agents, trained by the commands in benchmarks/train_agents.txt. Every method meets
the same draws. `before`: the last ten episodes before the change; `recovered`: how much of the way from the frozen
agent back to that the last ten episodes of a method go; `harm`: the mean over all episodes after the change minus that
of the frozen agent, with a 95 % bootstrap interval over trials, in percent of the range between random actions and the
trained agent. The group `facts` shows shares of successful episodes instead; MiniGrid needs `pip install minigrid`.
Finished runs are read from --out, not repeated.
"""

import argparse
import importlib.util
from dataclasses import dataclass
from pathlib import Path

import gymnasium
import numpy as np
import polars as pl

from nappingrl.agents import load
from nappingrl.errors import NappingError
from nappingrl.report.intervals import bootstrap_interval, mean
from nappingrl.report.runs import read_run
from nappingrl.trials.protocol import CHANGED
from nappingrl.trials.runner import run_into
from nappingrl.trials.spec import RunSpec
from nappingrl.trials.workers import default_workers

METHODS = ("frozen", "napping", "finetune", "auto")
GROUPS = ("action", "sensor", "harmless", "physics", "facts", "none")
N_RANDOM_EPISODES = 20
AGENTS = Path(__file__).parent / "agents"


@dataclass(frozen=True, slots=True)
class Case:
    """A change of an environment that an agent was trained in."""

    group: str
    name: str
    env: str
    agent: str
    novelty: str
    protocol: str = "40+40"
    most_trials: int = 1000
    """At most, where episodes are long."""
    longest: int = 0
    """Episodes that succeed are shorter than this; 0: they have a return above 0."""


def _lander(group: str, name: str, novelty: str, agent: str = "lander-ppo") -> Case:
    return Case(group, f"LunarLander {name}", "LunarLander-v3", agent, novelty, "30+25")


def _cartpole(group: str, name: str, novelty: str) -> Case:
    return Case(group, f"CartPole {name}", "CartPole-v1", "cartpole-ppo", novelty)


def _acrobot(group: str, name: str, novelty: str) -> Case:
    return Case(group, f"Acrobot {name}", "Acrobot-v1", "acrobot-ppo", novelty)


def _continuous_lander(group: str, name: str, novelty: str) -> Case:
    return Case(group, f"LunarLanderContinuous {name}", "LunarLanderContinuous-v3", "landerc-ppo", novelty, "30+25")


ENVS = {
    "cartpole-ppo": "CartPole-v1", "cartpole-dqn": "CartPole-v1", "mc-dqn": "MountainCar-v0",
    "mc-ppo": "MountainCar-v0", "acrobot-ppo": "Acrobot-v1", "acrobot-dqn": "Acrobot-v1", "pendulum-sac": "Pendulum-v1",
    "pendulum-ppo": "Pendulum-v1", "lander-ppo": "LunarLander-v3", "lander-dqn": "LunarLander-v3",
    "mcc-sac": "MountainCarContinuous-v0", "landerc-ppo": "LunarLanderContinuous-v3", "walker-ppo": "BipedalWalker-v3",
}  # fmt: skip
"""The environment of each agent."""

LONG = {"walker-ppo": 12}
"""At most this many trials without a change, where episodes are long."""
LAKE = "grid_worlds:DryLake-v0"
MINIGRID = "minigrid:MiniGrid-Empty-5x5-v0+minigrid-image+flatten"

CASES = (
    _cartpole("action", "reversed", "action-remap=1,0"),
    Case("action", "MountainCarContinuous reversed", "MountainCarContinuous-v0", "mcc-sac", "action-scale=-1"),
    Case("action", "Pendulum reversed", "Pendulum-v1", "pendulum-sac", "action-scale=-1"),
    _acrobot("action", "remap", "action-remap=2,1,0"),
    Case("action", "MountainCar remap", "MountainCar-v0", "mc-dqn", "action-remap=2,1,0"),
    _lander("action", "swap", "action-remap=0,3,2,1"),
    _continuous_lander("action", "one dimension", "action-scale[1]=-1"),
    _continuous_lander("action", "both dimensions", "action-scale=-1"),
    Case("action", "BipedalWalker one joint", "BipedalWalker-v3", "walker-ppo", "action-scale[0]=-1", "30+25", 4),
    _cartpole("sensor", "angular velocity shifted", "obs-shift[3]=1"),
    _cartpole("sensor", "angle negated", "obs-scale[2]=-1"),
    _cartpole("sensor", "velocity and angle swapped", "obs-remap=0,2,1,3"),
    _lander("sensor", "angle shifted", "obs-shift[4]=0.4"),
    _lander("sensor", "angle negated", "obs-scale[4]=-1"),
    _lander("sensor", "velocities swapped", "obs-remap=0,1,3,2,4,5,6,7"),
    _lander("harmless", "wind", "enable_wind=1; wind_power=15"),
    _lander("harmless", "gravity", "gravity=-5"),
    _acrobot("harmless", "mass", "LINK_MASS_1=2.0"),
    _acrobot("harmless", "length", "LINK_LENGTH_1=1.5"),
    _acrobot("harmless", "torque", "AVAIL_TORQUE=-0.5,0,0.5"),
    Case("physics", "Pendulum g = 15, SAC", "Pendulum-v1", "pendulum-sac", "g=15"),
    Case("physics", "Pendulum g = 15, PPO", "Pendulum-v1", "pendulum-ppo", "g=15"),
    Case("facts", "FrozenLake remap", LAKE, "lake-ppo", "action-remap"),
    Case("facts", "FrozenLake, other map", LAKE, "lake-ppo", "other-env=grid_worlds:DryLakeOther-v0"),
    Case("facts", "Taxi remap", "Taxi-v4", "taxi-dqn", "action-remap", longest=200),
    Case("facts", "MiniGrid remap", MINIGRID, "grid-ppo", "action-remap"),
    *(Case("none", agent, env, agent, "none", most_trials=LONG.get(agent, 1000)) for agent, env in ENVS.items()),
)


def rows_of(case: Case, method: str, arguments: argparse.Namespace) -> pl.DataFrame:
    """The episodes of one run."""
    agent = load(str(arguments.agents / f"{case.agent}.zip"), case.env)
    name, *options = method.split()
    chosen = dict(option.split("=", 1) for option in options)
    detector = chosen.pop("detector", "")
    trials = min(arguments.trials, case.most_trials)
    spec = RunSpec(
        case.env, str(arguments.agents / f"{case.agent}.zip"), name, case.novelty, trials, arguments.seed,
        protocol=case.protocol, options=chosen, detector=detector,
    ).complete()  # fmt: skip
    place = arguments.out / f"{case.name}-{case.agent}-{method}-{arguments.seed}-{trials}".replace(" ", "-")
    run_into(place, spec, agent, arguments.workers or default_workers())
    return read_run(place).rows


def random_return(env: str) -> float:
    """Mean return of uniformly random actions."""
    made = gymnasium.make(env)
    made.action_space.seed(0)
    totals = []
    for seed in range(N_RANDOM_EPISODES):
        made.reset(seed=seed)
        total, is_over = 0.0, False
        while not is_over:
            _, reward, terminated, truncated, _ = made.step(made.action_space.sample())
            total, is_over = total + float(reward), terminated or truncated
        totals.append(total)
    return float(np.mean(totals))


def by_trial(rows: pl.DataFrame, last: int = 0) -> np.ndarray:
    """Mean return of each trial after the change; `last`: of that many last episodes."""
    changed = rows.filter(pl.col("phase").is_in(CHANGED)).sort("trial", "episode")
    means = changed.group_by("trial", maintain_order=True).agg(
        (pl.col("return").tail(last) if last else pl.col("return")).mean()
    )
    return means["return"].to_numpy()


def false_alarms(rows: pl.DataFrame) -> int:
    """Trials with an alarm."""
    return int(rows.filter(pl.col("detected"))["trial"].n_unique())


def success_line(case: Case, arguments: argparse.Namespace) -> list[str]:
    """One line of the table of shares of successful episodes."""
    is_success = pl.col("length") < case.longest if case.longest else pl.col("return") > 0
    found = [case.name]
    for method in arguments.methods:
        rows = rows_of(case, method, arguments).with_columns(is_success.cast(pl.Float64).alias("return"))
        if len(found) == 1:
            found.append(f"{rows.filter(~pl.col('phase').is_in(CHANGED))['return'].mean():.2f}")
        last = by_trial(rows, 10)
        interval = bootstrap_interval(mean, last, rng=np.random.default_rng(0))
        span = f" [{interval.low:.2f}, {interval.high:.2f}]" if interval else ""
        found += [f"{by_trial(rows).mean():.2f}", f"{last.mean():.2f}{span}"]
    return found


def table_line(case: Case, arguments: argparse.Namespace) -> list[str]:
    """One line of the table of a group."""
    frozen = rows_of(case, "frozen", arguments)
    if case.group == "none":
        auto = rows_of(case, "auto", arguments)
        is_same = frozen["return"].equals(auto["return"])
        calm = auto.join(auto.filter(pl.col("detected")).select("number").unique(), on="number", how="anti")
        differing = calm.join(frozen, on=["number", "episode", "return"], how="anti")
        return [case.name, str(auto["number"].n_unique()), str(false_alarms(auto)), str(is_same), str(len(differing))]
    before = frozen.filter(~pl.col("phase").is_in(CHANGED)).sort("trial", "episode")
    usual = float(before.group_by("trial").agg(pl.col("return").tail(10).mean())["return"].mean())
    end = by_trial(frozen, 10).mean()
    found = [case.name, f"{usual:.1f}", f"{end:.1f}"]
    scale = abs(usual - random_return(case.env)) / 100
    for method in arguments.methods[1:]:
        try:
            rows = rows_of(case, method, arguments)
        except NappingError as error:
            found += [f"{str(error)[:30]}", "", ""]
            continue
        last = by_trial(rows, 10).mean()
        harm = (by_trial(rows) - by_trial(frozen)) / scale
        interval = bootstrap_interval(mean, harm, rng=np.random.default_rng(0))
        span = f" [{interval.low:+.1f}, {interval.high:+.1f}]" if interval else ""
        found += [f"{last:.1f}", f"{(last - end) / (usual - end):.0%}", f"{harm.mean():+.1f}{span}"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=Path, default=AGENTS, help="folder with the trained agents")
    parser.add_argument("--group", choices=GROUPS, default="action")
    parser.add_argument("--only", default="", help="only cases whose name contains this text")
    parser.add_argument("--methods", nargs="+", default=METHODS, help='such as "auto candidates=reground"')
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--seed", type=int, default=31)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/adapt-by-default"))
    arguments = parser.parse_args()
    head = ["case", "before", "frozen, last ten"]
    for method in arguments.methods[1:]:
        head += [f"{method}, last ten", "recovered", "harm, % of range"]
    if arguments.group == "none":
        head = ["agent", "trials", "with an alarm", "returns equal frozen's", "differing episodes without alarm"]
    if arguments.group == "facts":
        head = ["case", "before"]
        for method in arguments.methods:
            head += [method, f"{method}, last ten"]
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head), flush=True)
    for case in CASES:
        if case.group == arguments.group and arguments.only in case.name:
            if not (arguments.agents / f"{case.agent}.zip").exists():
                print(f"| {case.name} | no agent {case.agent}.zip |", flush=True)
                continue
            if case.env == MINIGRID and importlib.util.find_spec("minigrid") is None:
                print(f"| {case.name} | needs minigrid: pip install minigrid |", flush=True)
                continue
            line = success_line if case.group == "facts" else table_line
            print("| " + " | ".join(line(case, arguments)) + " |", flush=True)


if __name__ == "__main__":
    main()
