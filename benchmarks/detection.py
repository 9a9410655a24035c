"""Every detector in every domain: detection rate, delay and false alarms. Prints the table of docs/detectors.md.

python benchmarks/detection.py --trials 50 --seed 11

The agent stays frozen, so a detector cannot influence the episodes. The agents of a domain are pooled. False alarms are
counted in trials without a novelty (and in the episodes before the novelty if the detector watches them).
"""

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

import nappingrl
from nappingrl.agents import zoo_names
from nappingrl.errors import check_name
from nappingrl.registry import detectors, domains

DOMAINS = ("cartpole", "mountaincar", "crossroad")
NOVELTIES = {"crossroad": "all"}
"""The other domains use their default, the paper's novelty."""
LOOK_AT_NOTHING = ("given", "never")
HEAD = ("domain", "detector", "trials", "detected", "delay, episodes", "delay, steps", "false alarms per 1000 episodes",
        "episodes watched", "trials without false alarm")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cell:
    """The performance of a detector in a domain, or with one of its agents."""

    domain: str
    detector: str
    agent: str
    n_trials: int
    detected: float
    """Share of trials whose first alarm comes after the novelty."""
    delay_episodes: tuple[float, float] | None
    """Episodes of the changed world that had ended at that alarm: mean and median; None where there is none."""
    delay_steps: tuple[float, float] | None
    false_alarms: int
    n_watched: int
    """Episodes without change that were judged."""
    without_false_alarm: float
    """Share of the trials without a novelty that have no alarm."""

    @property
    def rate(self) -> float | None:
        """False alarms per 1000 episodes; None where none was watched."""
        return 1000 * self.false_alarms / self.n_watched if self.n_watched else None

    def texts(self) -> list[str]:
        """A line of the table."""
        delays = [
            f"{delay[0]:.{digits}f} ({delay[1]:g})" if delay else "-"
            for delay, digits in ((self.delay_episodes, 1), (self.delay_steps, 0))
        ]
        rate = "-" if self.rate is None else f"{self.rate:.2f}"
        return [
            self.domain, self.detector, str(self.n_trials), f"{self.detected:.2f}", *delays, rate,
            str(self.n_watched), f"{self.without_false_alarm:.2f}",
        ]  # fmt: skip


def first_alarms(rows: pl.DataFrame) -> pl.DataFrame:
    """For each trial the episode of its first alarm (null: none) and what was seen until then.

    `watched` are episodes from 0 on, `watched_all` all episodes, `steps` steps from episode 0 on.
    """
    key, episode, step = ["agent", "trial"], pl.col("episode"), pl.col("detected_step")
    alarm = episode.filter(step.is_not_null()).first()
    is_before = (episode < pl.col("alarm")) | pl.col("alarm").is_null()
    is_after_novelty = is_before & (episode >= 0)
    is_inside = step.first() > 0  # an episode in the middle of which the alarm came was watched, too
    return (
        rows.with_columns(alarm.over(key).alias("alarm"), step.drop_nulls().first().fill_null(0).over(key))
        .group_by(key, maintain_order=True)
        .agg(
            pl.col("alarm").first(),
            (is_after_novelty.sum() + (is_inside & (pl.col("alarm").first() >= 0)).fill_null(False)).alias("watched"),
            (is_before.sum() + is_inside).alias("watched_all"),
            (pl.col("length").filter(is_after_novelty).sum() + step.first()).alias("steps"),
        )
    )


def measure(domain: str, detector: str, agent: str, changed: pl.DataFrame, unchanged: pl.DataFrame) -> Cell:
    """The numbers of a detector from the rows of trials with a novelty and of trials without."""
    with_novelty, without = first_alarms(changed), first_alarms(unchanged)
    right = with_novelty.filter(pl.col("alarm") >= 0)
    n_early = with_novelty.filter(pl.col("alarm") < 0).height
    is_judged_early = n_early > 0 or without.filter(pl.col("alarm") < 0).height > 0
    if is_judged_early:
        early = with_novelty["watched_all"] - with_novelty["watched"]
        n_watched = int(without["watched_all"].sum()) + int(early.sum())
    else:
        n_watched = int(without["watched"].sum())
    return Cell(
        domain=domain,
        detector=detector,
        agent=agent,
        n_trials=with_novelty.height,
        detected=right.height / with_novelty.height,
        delay_episodes=average(right["alarm"]),
        delay_steps=average(right["steps"]),
        false_alarms=n_early + without["alarm"].count(),
        n_watched=n_watched,
        without_false_alarm=without["alarm"].null_count() / without.height,
    )


def average(values: pl.Series) -> tuple[float, float] | None:
    """Mean and median; None of nothing."""
    numbers = values.to_numpy()
    return (float(numbers.mean()), float(np.median(numbers))) if len(numbers) else None


def play(domain: str, detector: str, agent: str, novelty: str, arguments: argparse.Namespace) -> pl.DataFrame:
    """The rows of one run."""
    rows = nappingrl.run(
        domain, agent, "frozen", novelty=novelty, detector=detector, trials=arguments.trials, seed=arguments.seed
    ).rows
    return rows.select(pl.lit(agent).alias("agent"), "trial", "episode", "length", "detected_step")


def cells(domain: str, detector: str, arguments: argparse.Namespace) -> list[Cell]:
    """All agents of the domain together, then each of them."""
    found: dict[str, tuple[pl.DataFrame, pl.DataFrame]] = {}
    for agent in zoo_names(domain):
        changed = play(domain, detector, agent, NOVELTIES.get(domain, ""), arguments)
        found[agent] = changed, play(domain, detector, agent, "none", arguments)
    pooled = pl.concat([pair[0] for pair in found.values()]), pl.concat([pair[1] for pair in found.values()])
    return [measure(domain, detector, agent, *pair) for agent, pair in {"all": pooled, **found}.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=50, help="of each agent (and each novelty), and without a change")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--domains", nargs="+", default=DOMAINS, choices=domains.names())
    parser.add_argument("--detectors", nargs="+", default=[n for n in detectors.names() if n not in LOOK_AT_NOTHING])
    parser.add_argument("--json", action="store_true", help="every cell, of each agent too, as one JSON array")
    arguments = parser.parse_args()
    for name in arguments.detectors:
        check_name("detector", name, detectors.names())
    if not arguments.json:
        print("| " + " | ".join(HEAD) + " |\n|" + "---|" * len(HEAD), flush=True)
    everything: list[dict[str, Any]] = []
    for domain in arguments.domains:
        for detector in arguments.detectors:
            found = cells(domain, detector, arguments)
            everything += [asdict(cell) | {"rate": cell.rate} for cell in found]
            if not arguments.json:
                print("| " + " | ".join(found[0].texts()) + " |", flush=True)
    if arguments.json:
        json.dump(everything, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
