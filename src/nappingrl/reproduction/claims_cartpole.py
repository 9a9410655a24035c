"""The paper's claims on CartPole, judged on the RL Zoo's agents, most likely those of the paper."""

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from nappingrl.report.intervals import pair
from nappingrl.report.summary import span_of
from nappingrl.reproduction.judging import (
    BEFORE,
    Claim,
    Evidence,
    NotJudgedError,
    Part,
    difference_part,
    mean_part,
    paired,
    rate_part,
    resampled_part,
    shares_of_trials,
)
from nappingrl.types import Floats

CARTPOLE = "cartpole"
PPO, DQN = "zoo-ppo", "zoo-dqn"
AGENTS = (PPO, DQN)
NO_ADAPTATION = 0.1
"""Share of the range of returns: an agent that gains less than this after the novelty "shows no adaptation"."""
SOLVED = 195.0
ALMOST_ALL = 0.9


def no_adaptation(
    domain: str, agents: tuple[str, ...], method_names: tuple[str, ...]
) -> Callable[[Evidence], Sequence[Part]]:
    """Last ten against the first five episodes after the novelty."""

    def judge_claim(evidence: Evidence) -> Sequence[Part]:
        parts = []
        for method in method_names:
            for agent in agents:
                run = evidence.run(domain, agent, method)
                low, high = span_of(run.manifest, run.rows)
                name = agent if len(method_names) == 1 else f"{agent} {method}"
                limit = NO_ADAPTATION * (high - low)
                parts.append(mean_part(f"{name} gains", evidence.gain(domain, agent, method), high=limit, digits=1))
        return parts

    return judge_claim


def _solved_before(evidence: Evidence) -> Sequence[Part]:
    return [
        mean_part(agent, evidence.window(CARTPOLE, agent, "frozen", BEFORE)["level"].to_numpy(), SOLVED, digits=0)
        for agent in AGENTS
    ]


def _first(shares: Floats) -> Floats:
    """The first episode at which at least half of the trials are there: the median is; their number if it never is."""
    is_there = shares >= 0.5
    first: Floats = np.where(is_there.any(axis=1), is_there.argmax(axis=1), shares.shape[1]).astype(np.float64)
    return first


def _fast_ppo(evidence: Evidence) -> Sequence[Part]:
    at_200 = shares_of_trials(evidence.run(CARTPOLE, PPO, "napping").rows, 200.0)
    return [resampled_part("median 200 at episode", _first, at_200, high=10, digits=0)]


def _slower_dqn(evidence: Evidence) -> Sequence[Part]:
    tables = [shares_of_trials(evidence.run(CARTPOLE, agent, "napping").rows, 200.0) for agent in AGENTS]
    if tables[0].shape != tables[1].shape:
        raise NotJudgedError("the two agents met different draws")
    n_episodes = tables[0].shape[1]

    def lead(shares: Floats) -> Floats:
        return _first(shares[:, n_episodes:]) - _first(shares[:, :n_episodes])

    return [
        resampled_part("PPO's median 200 at episode", _first, tables[0], digits=0),
        resampled_part("DQN later by", lead, np.hstack(tables), low=0, digits=0),
    ]


def _drops_where_easier(evidence: Evidence) -> Sequence[Part]:
    """Draws with less gravity and more force than before the novelty."""
    parts = []
    for agent in AGENTS:
        default = evidence.run(CARTPOLE, agent, "frozen").manifest.parameters
        levels = evidence.levels(CARTPOLE, agent, "frozen").filter(
            (pl.col("param_gravity") < default["gravity"]) & (pl.col("param_force") > default["force"])
        )
        if levels.is_empty():
            raise NotJudgedError("no draw has less gravity and more force")
        lost = paired(levels, evidence.window(CARTPOLE, agent, "frozen", BEFORE))
        parts.append(mean_part(f"{agent} after minus before", lost, high=0, digits=0))
    return parts


def _oracle_levels(evidence: Evidence) -> pl.DataFrame:
    """Final levels of the oracle; it never asks the agent, so that a run with either will do."""
    agent = next((agent for agent in AGENTS if evidence.has(CARTPOLE, agent, "oracle")), PPO)
    return evidence.levels(CARTPOLE, agent, "oracle")


def _adapts_to(is_solvable_only: bool) -> Callable[[Evidence], Sequence[Part]]:
    """The share of draws that NAPPING solves: of all, or of those that the oracle solves."""

    def judge_claim(evidence: Evidence) -> Sequence[Part]:
        parts = []
        for agent in AGENTS:
            levels = evidence.levels(CARTPOLE, agent, "napping")
            solved = levels["level"].to_numpy() >= SOLVED
            if is_solvable_only:
                both = pair(levels, _oracle_levels(evidence), "level")
                solved = both.first[both.second >= SOLVED] >= SOLVED
            parts.append(rate_part(agent, solved, low=ALMOST_ALL))
        return parts

    return judge_claim


def _fails_at(parameter: str, is_high: bool) -> Callable[[Evidence], Sequence[Part]]:
    """NAPPING in the tenth of the draws at one end of a parameter against all others, both agents."""

    def judge_claim(evidence: Evidence) -> Sequence[Part]:
        parts = []
        for agent in AGENTS:
            levels = evidence.levels(CARTPOLE, agent, "napping").drop_nulls()
            value = levels[f"param_{parameter}"].to_numpy()
            end = value >= np.quantile(value, 0.9) if is_high else value <= np.quantile(value, 0.1)
            level = levels["level"].to_numpy()
            parts.append(difference_part(f"{agent} that tenth minus the rest", level[end], level[~end], high=0))
        return parts

    return judge_claim


LITTLE = "gains less than a tenth of the range from episodes 0-4 to the last ten"
_TENTH = "tenth of the draws below the rest, both agents"

CLAIMS: list[Claim] = [
    Claim(CARTPOLE, "the agents solve the task before the novelty", "mean return before it above 195",
          _solved_before, by_column=False),
    Claim(CARTPOLE, "frozen agents show no adaptation", LITTLE, no_adaptation(CARTPOLE, AGENTS, ("frozen",)), False),
    Claim(CARTPOLE, "Online shows no adaptation", LITTLE, no_adaptation(CARTPOLE, AGENTS, ("online",)), False),
    Claim(CARTPOLE, "FineTune shows no adaptation", LITTLE, no_adaptation(CARTPOLE, AGENTS, ("finetune",)), False),
    Claim(CARTPOLE, "frozen agents drop even where the task got easier", "with less gravity and more force, last ten "
          "below the level before", _drops_where_easier, by_column=False),
    Claim(CARTPOLE, "PPO-NAPPING's median is 200 in less than ten episodes", "median 200 before episode 10", _fast_ppo),
    Claim(CARTPOLE, "DQN-NAPPING adapts more slowly", "its median reaches 200 later", _slower_dqn),
    Claim(CARTPOLE, "NAPPING adapts to almost all novelties (of all draws)", "solves more than .9 of the draws",
          _adapts_to(is_solvable_only=False)),
    Claim(CARTPOLE, "NAPPING adapts to almost all novelties (of those that can be solved)", "solves more than .9 of "
          "the draws that the oracle solves", _adapts_to(is_solvable_only=True)),
    Claim(CARTPOLE, "NAPPING fails at very short poles", f"lowest {_TENTH}", _fails_at("length", False)),
    Claim(CARTPOLE, "NAPPING fails at very small force", f"lowest {_TENTH}", _fails_at("force", False)),
    Claim(CARTPOLE, "NAPPING fails at very large gravity", f"highest {_TENTH}", _fails_at("gravity", True)),
]  # fmt: skip
