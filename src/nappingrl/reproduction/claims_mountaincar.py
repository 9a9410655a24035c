"""The paper's claims on MountainCar."""

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from nappingrl.report.intervals import pair
from nappingrl.report.summary import is_failed
from nappingrl.reproduction.claims_cartpole import LITTLE, no_adaptation
from nappingrl.reproduction.judging import (
    BEFORE,
    Claim,
    Evidence,
    NotJudgedError,
    Part,
    mean_part,
    paired,
    resampled_part,
)
from nappingrl.types import Floats

CAR = "mountaincar"
DQN, STRONG, WEAK = "dqn", "ppo-strong", "ppo-weak"
AGENTS = (DQN, STRONG, WEAK)
SAME = 10.0
"""Steps: levels closer than this are the same."""


def _jumps(evidence: Evidence) -> Sequence[Part]:
    return [
        mean_part(agent, evidence.gain(CAR, agent, "napping", to=(5, 5)), low=0, digits=1) for agent in AGENTS
    ]  # fmt: skip


def _converges(evidence: Evidence) -> Sequence[Part]:
    """An equivalence test: the whole interval lies within the margin."""
    others = {"PPO-Strong": (STRONG, "napping"), "frozen PPO-Strong": (STRONG, "frozen")}
    return [
        mean_part(f"minus {name}", evidence.difference(CAR, (DQN, "napping"), other), -SAME, SAME, digits=1)
        for name, other in others.items()
    ]


def _weak_is_below(evidence: Evidence) -> Sequence[Part]:
    return [
        mean_part(f"minus {other}", evidence.difference(CAR, (WEAK, "napping"), (other, "napping")), high=0, digits=1)
        for other in (DQN, STRONG)
    ]


def _easier_gains(evidence: Evidence) -> Sequence[Part]:
    """Draws with more force and less gravity than before the novelty."""
    parts = []
    for agent in AGENTS:
        default = evidence.run(CAR, agent, "napping").manifest.parameters
        levels = evidence.levels(CAR, agent, "napping").filter(
            (pl.col("param_force") > default["force"]) & (pl.col("param_gravity") < default["gravity"])
        )
        gain = paired(levels, evidence.levels(CAR, agent, "frozen"))
        parts.append(mean_part(f"{agent} minus frozen", gain, low=0, digits=1))
    return parts


def _failures(evidence: Evidence, agent: str) -> Floats:
    """Whether the trials fail, frozen and with NAPPING, (trials, 2) on the same draws."""
    tables = []
    for method in ("frozen", "napping"):
        run = evidence.run(CAR, agent, method)
        post = run.rows.filter(pl.col("episode") >= 0)
        tables.append(post.group_by("novelty", "number", maintain_order=True).agg(is_failed(run.manifest)))
    both = pair(tables[0], tables[1], "failed")
    if not both.first.any():
        raise NotJudgedError(f"nothing failed: the frozen {agent} reaches the goal in each of {len(both.first)} trials")
    return np.stack([both.first, both.second], axis=1)


def _share_cut(shares: Floats) -> Floats:
    """The share of the failures that is gone; NaN where nothing failed."""
    before, after = shares.T
    return np.where(before > 0, 1 - after / np.where(before > 0, before, 1.0), np.nan)


def _failed_cut(agent: str, least: float, is_points: bool) -> Callable[[Evidence], Sequence[Part]]:
    """The cut in failed trials: as a share of the failures, or in points of all trials."""

    def judge_claim(evidence: Evidence) -> Sequence[Part]:
        failed = _failures(evidence, agent)
        before, after = (int(count) for count in failed.sum(axis=0))
        label = f"{before} -> {after} of {len(failed)} failed: cut by"
        if is_points:
            return [mean_part(label, failed[:, 0] - failed[:, 1], low=least, digits=3)]
        return [resampled_part(label, _share_cut, failed, low=least, digits=3)]

    return judge_claim


def _better_before(evidence: Evidence) -> Sequence[Part]:
    before = [evidence.window(CAR, agent, "frozen", BEFORE) for agent in (DQN, STRONG)]
    after = evidence.difference(CAR, (DQN, "frozen"), (STRONG, "frozen"))
    return [
        mean_part("DQN minus PPO-Strong before", paired(*before), low=0, digits=1),
        mean_part("after", after, high=0, digits=1),
    ]


_CUTS = (("PPO-Weak", WEAK, "59.4 %", 0.594), ("DQN", DQN, "71.45 %", 0.7145))

CLAIMS: list[Claim] = [
    Claim(CAR, "the frozen DQN is better than PPO-Strong before the novelty, and worse after it", "paired differences "
          "above 0 before, below 0 in the last ten", _better_before, by_column=False),
    Claim(CAR, "Online and FineTune show no adaptation in MountainCar", LITTLE,
          no_adaptation(CAR, AGENTS, ("online", "finetune")), by_column=False),
    Claim(CAR, "all NAPPING agents jump at episode 5", "episode 5 above episodes 0-4, each agent", _jumps),
    Claim(CAR, "DQN-NAPPING converges to PPO-Strong's level", "last ten within 10 of PPO-Strong, with NAPPING and "
          "frozen (equivalence)", _converges),
    Claim(CAR, "PPO-Weak-NAPPING ends below both", "paired differences below 0", _weak_is_below),
    Claim(CAR, "easier domains gain too", "with more force and less gravity, above frozen, each agent", _easier_gains),
    *(Claim(CAR, f"failed tasks cut by {text} ({title}), {reading}", "cut at least as large",
            _failed_cut(agent, least, is_points))
      for title, agent, text, least in _CUTS
      for reading, is_points in (("as a share of the failures", False), ("as points of all trials", True))),
]  # fmt: skip
