"""The paper's claims on CrossRoad, judged on agents trained with SB3's default values."""

from collections.abc import Sequence

from nappingrl.reproduction.judging import BEFORE, Claim, Evidence, Part, mean_part, outperforms, paired

ROAD = "crossroad"
DQN, PPO = "sb3-dqn", "sb3-ppo"
AGENTS = (DQN, PPO)
CROSSES = 0.95
MUCH = 0.25
"""Of a range of 2: from here on a difference is "much"; up to here a mean is "about" 0."""


def _crosses_before(evidence: Evidence) -> Sequence[Part]:
    return [
        mean_part(agent, evidence.window(ROAD, agent, "frozen", BEFORE)["level"].to_numpy(), CROSSES)
        for agent in AGENTS
    ]


def _fails(evidence: Evidence) -> Sequence[Part]:
    return [
        mean_part(f"{agent} {method}", evidence.levels(ROAD, agent, method)["level"].to_numpy(), high=0)
        for method in ("frozen", "online", "finetune")
        for agent in AGENTS
    ]


def _is_robust(evidence: Evidence) -> Sequence[Part]:
    return [mean_part("PPO minus DQN", evidence.difference(ROAD, (PPO, "frozen"), (DQN, "frozen")), low=0)]


def _about_zero(evidence: Evidence) -> Sequence[Part]:
    return [
        mean_part(agent, evidence.levels(ROAD, agent, "napping")["level"].to_numpy(), -MUCH, MUCH) for agent in AGENTS
    ]


def _ppo_is_faster(evidence: Evidence) -> Sequence[Part]:
    early, first = (
        [evidence.window(ROAD, agent, "napping", window) for agent in (PPO, DQN)] for window in ((5, 14), (0, 4))
    )
    return [mean_part("PPO's gain minus DQN's in episodes 5-14", paired(*early) - paired(*first), low=0)]


CLAIMS: list[Claim] = [
    Claim(ROAD, "the agents cross before the novelty", "mean return before it above .95", _crosses_before, False),
    Claim(ROAD, "frozen, Online and FineTune fail", "final level below 0", _fails, by_column=False),
    Claim(ROAD, "PPO is more robust when frozen", "paired difference above 0", _is_robust, by_column=False),
    Claim(ROAD, "NAPPING reaches about 0 mean reward (half solved)", "final level within .25 of 0", _about_zero),
    Claim(ROAD, "PPO is faster", "gains more from episodes 0-4 to 5-14, paired", _ppo_is_faster),
    Claim(ROAD, "DQN ends slightly higher", "paired difference above 0", outperforms(ROAD, DQN, PPO, ("",))),
    Claim(ROAD, "DQN is better on New Speeds", "paired difference above 0",
          outperforms(ROAD, DQN, PPO, ("new-speeds",))),
    Claim(ROAD, "PPO is much better on Shift Speeds and Super Slow", "paired differences above .25",
          outperforms(ROAD, PPO, DQN, ("shift-speeds", "super-slow"), MUCH)),
    Claim(ROAD, "PPO is slightly better on All to the Right and Super Fast", "paired differences above 0",
          outperforms(ROAD, PPO, DQN, ("all-to-the-right", "super-fast"))),
]  # fmt: skip
