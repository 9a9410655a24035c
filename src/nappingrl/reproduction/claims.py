"""The paper's quantitative claims, each judged on our runs: holds, does not hold, or not run."""

from collections.abc import Callable

import numpy as np
import polars as pl

from nappingrl.report.intervals import mean_interval, pair
from nappingrl.report.summary import curve, is_failed, span_of
from nappingrl.reproduction import claims_angrybirds
from nappingrl.reproduction.judging import (
    Claim,
    Evidence,
    Finding,
    MissingRunError,
    describe_mean,
    make_finding,
    outperforms,
    paired,
)

NO_ADAPTATION = 0.1
"""Share of the range of returns: an agent that gains less than this after the novelty "shows no adaptation"."""


def _no_adaptation(domain: str, agents: tuple[str, ...], method: str) -> Callable[[Evidence], Finding]:
    """Last ten against the first five post-novelty episodes."""

    def judge_claim(evidence: Evidence) -> Finding:
        parts, holds = [], True
        for agent in agents:
            gain = evidence.gain(domain, agent, method, (0, 4), (30, 39))
            run = evidence.run(domain, agent, method)
            low, high = span_of(run.manifest, run.rows)
            interval = mean_interval(gain)
            holds &= (interval.low if interval else gain.mean()) < NO_ADAPTATION * (high - low)
            parts.append(f"{agent} gains {describe_mean(interval, gain)}")
        return make_finding(holds, "; ".join(parts))

    return judge_claim


def _first_at(evidence: Evidence, agent: str, level: float) -> int | None:
    reached = (
        curve(evidence.run("cartpole", agent, "napping").rows).filter(pl.col("median") >= level)["episode"].to_list()
    )
    return reached[0] if reached else None


def _fast_ppo(evidence: Evidence) -> Finding:
    at = _first_at(evidence, "ppo", 200.0)
    return make_finding(at is not None and at < 10, f"median 200 at episode {at}" if at is not None else "never")


def _slower_dqn(evidence: Evidence) -> Finding:
    ppo, dqn = _first_at(evidence, "ppo", 200.0), _first_at(evidence, "dqn", 200.0)
    is_slower = ppo is not None and (dqn is None or dqn > ppo)
    return make_finding(is_slower, f"median 200 at episode {ppo} (PPO), {dqn} (DQN)")


def _drops_where_solvable(evidence: Evidence) -> Finding:
    """Frozen agents in the draws that the oracle still solves."""
    parts, holds = [], True
    for agent in ("ppo", "dqn"):
        frozen, oracle = evidence.levels("cartpole", agent, "frozen"), evidence.levels("cartpole", agent, "oracle")
        both = pair(frozen, oracle, "level")
        lost = both.first[both.second >= 195.0] - 200.0
        if not len(lost):
            raise MissingRunError
        interval = mean_interval(lost)
        holds &= (interval.high if interval else lost.mean()) < 0
        parts.append(f"{agent} {describe_mean(interval, lost, 0)}")
    return make_finding(holds, "against 200: " + "; ".join(parts))


def _fails_at(parameter: str, is_high: bool) -> Callable[[Evidence], Finding]:
    """NAPPING in the tenth of the draws at one end of a parameter against all others, both agents."""

    def judge_claim(evidence: Evidence) -> Finding:
        parts, holds = [], True
        for agent in ("ppo", "dqn"):
            levels = evidence.levels("cartpole", agent, "napping").drop_nulls()
            value = levels[f"param_{parameter}"].to_numpy()
            end = value >= np.quantile(value, 0.9) if is_high else value <= np.quantile(value, 0.1)
            level = levels["level"].to_numpy()
            if end.all():
                raise MissingRunError
            inside, outside = mean_interval(level[end]), mean_interval(level[~end])
            holds &= inside is not None and outside is not None and inside.high < outside.low
            parts.append(
                f"{agent} {describe_mean(inside, level[end], 0)} against {describe_mean(outside, level[~end], 0)}"
            )
        return make_finding(holds, "; ".join(parts))

    return judge_claim


def _jumps(evidence: Evidence) -> Finding:
    parts, holds = [], True
    for agent in ("dqn", "ppo-strong", "ppo-weak"):
        gain = evidence.gain("mountaincar", agent, "napping", (0, 4), (5, 5))
        interval = mean_interval(gain)
        holds &= interval is not None and interval.low > 0
        parts.append(f"{agent} {describe_mean(interval, gain, 1)}")
    return make_finding(holds, "episode 5 minus episodes 0-4: " + "; ".join(parts))


def _converges(evidence: Evidence) -> Finding:
    difference = evidence.difference("mountaincar", ("dqn", "napping"), ("ppo-strong", "napping"))
    interval = mean_interval(difference)
    return make_finding(abs(difference.mean()) < 10.0, f"DQN minus PPO-Strong {describe_mean(interval, difference, 1)}")


def _weak_is_below(evidence: Evidence) -> Finding:
    parts, holds = [], True
    for other in ("dqn", "ppo-strong"):
        difference = evidence.difference("mountaincar", ("ppo-weak", "napping"), (other, "napping"))
        interval = mean_interval(difference)
        holds &= interval is not None and interval.high < 0
        parts.append(f"minus {other} {describe_mean(interval, difference, 1)}")
    return make_finding(holds, "PPO-Weak " + "; ".join(parts))


def _easier_gains(evidence: Evidence) -> Finding:
    """Draws with more force and less gravity than before the novelty."""
    parts, holds = [], True
    for agent in ("dqn", "ppo-strong", "ppo-weak"):
        default = evidence.run("mountaincar", agent, "napping").manifest.parameters
        levels = evidence.levels("mountaincar", agent, "napping").filter(
            (pl.col("param_force") > default["force"]) & (pl.col("param_gravity") < default["gravity"])
        )
        difference = paired(levels, evidence.levels("mountaincar", agent, "frozen"))
        interval = mean_interval(difference)
        holds &= interval is not None and interval.low > 0
        parts.append(f"{agent} {describe_mean(interval, difference, 1)}")
    return make_finding(holds, "NAPPING minus frozen: " + "; ".join(parts))


def _failed_cut(agent: str, share: float) -> Callable[[Evidence], Finding]:
    def judge_claim(evidence: Evidence) -> Finding:
        counts = []
        for method in ("frozen", "napping"):
            run = evidence.run("mountaincar", agent, method)
            post = run.rows.filter(pl.col("episode") >= 0)
            counts.append(int(post.group_by("trial").agg(is_failed(run.manifest))["failed"].sum()))
        before, after = counts
        cut = 1 - after / before if before else 0.0
        return make_finding(
            cut >= share, f"{before} -> {after} failed: cut by {cut:.1%}" if before else "nothing failed"
        )

    return judge_claim


def _crossroad_fails(evidence: Evidence) -> Finding:
    parts, holds = [], True
    for method in ("frozen", "online", "finetune"):
        for agent in ("dqn", "ppo"):
            level = evidence.levels("crossroad", agent, method)["level"].to_numpy()
            interval = mean_interval(level)
            holds &= (interval.high if interval else level.mean()) < 0
            parts.append(f"{agent} {method} {describe_mean(interval, level)}")
    return make_finding(holds, "; ".join(parts))


def _about_zero(evidence: Evidence) -> Finding:
    parts, holds = [], True
    for agent in ("dqn", "ppo"):
        level = evidence.levels("crossroad", agent, "napping")["level"].to_numpy()
        holds &= abs(level.mean()) < 0.25
        parts.append(f"{agent} {describe_mean(mean_interval(level), level)}")
    return make_finding(holds, "; ".join(parts))


def _ppo_is_faster(evidence: Evidence) -> Finding:
    early = [evidence.gain("crossroad", agent, "napping", (0, 4), (5, 14)) for agent in ("ppo", "dqn")]
    ppo, dqn = (mean_interval(gain) for gain in early)
    is_faster = ppo is not None and dqn is not None and ppo.low > dqn.high
    return make_finding(
        is_faster, f"gain in episodes 5-14: PPO {describe_mean(ppo, early[0])}, DQN {describe_mean(dqn, early[1])}"
    )


_LITTLE = "gains less than a tenth of the range from episodes 0-4 to the last ten (lower end of the interval)"


CLAIMS: list[Claim] = [
    Claim("cartpole", "frozen agents show no adaptation", _LITTLE,
          _no_adaptation("cartpole", ("ppo", "dqn"), "frozen")),
    Claim("cartpole", "Online shows no adaptation", _LITTLE,
          _no_adaptation("cartpole", ("ppo", "dqn"), "online")),
    Claim("cartpole", "FineTune shows no adaptation", _LITTLE,
          _no_adaptation("cartpole", ("ppo", "dqn"), "finetune")),
    Claim("cartpole", "PPO-NAPPING's median is 200 in less than ten episodes", "median 200 before "
          "episode 10", _fast_ppo),
    Claim("cartpole", "DQN-NAPPING adapts more slowly", "its median reaches 200 later", _slower_dqn),
    Claim("cartpole", "frozen agents drop even where the task is no harder", "in draws that the oracle solves, the "
          "frozen level is below 200", _drops_where_solvable),
    Claim("cartpole", "NAPPING fails at very short poles", "lowest tenth below the rest, intervals apart, both agents",
          _fails_at("length", False)),
    Claim("cartpole", "NAPPING fails at very small force", "lowest tenth below the rest, intervals apart, both agents",
          _fails_at("force", False)),
    Claim("cartpole", "NAPPING fails at very large gravity", "highest tenth below the rest, intervals apart, "
          "both agents", _fails_at("gravity", True)),
    Claim("mountaincar", "all NAPPING agents jump at episode 5", "gain above 0 for each agent", _jumps),
    Claim("mountaincar", "DQN-NAPPING converges to PPO-Strong's level", "last ten within 10 of each other", _converges),
    Claim("mountaincar", "PPO-Weak-NAPPING ends below both", "paired differences below 0", _weak_is_below),
    Claim("mountaincar", "easier domains gain too", "with more force and less gravity, gain above 0 for each agent",
          _easier_gains),
    Claim("mountaincar", "failed tasks cut by 59.4 % (PPO-Weak)", "cut at least as large",
          _failed_cut("ppo-weak", 0.594)),
    Claim("mountaincar", "failed tasks cut by 71.45 % (DQN)", "cut at least as large", _failed_cut("dqn", 0.7145)),
    Claim("crossroad", "frozen, Online and FineTune fail", "final level below 0", _crossroad_fails),
    Claim("crossroad", "NAPPING reaches about 0 mean reward (half solved)", "final level within .25 of 0", _about_zero),
    Claim("crossroad", "PPO is faster", "gains more in episodes 5-14, intervals apart", _ppo_is_faster),
    Claim("crossroad", "DQN ends slightly higher", "paired difference above 0",
          outperforms("crossroad", "dqn", "ppo", ("",))),
    Claim("crossroad", "DQN is better on New Speeds", "paired difference above 0",
          outperforms("crossroad", "dqn", "ppo", ("new-speeds",))),
    Claim("crossroad", "PPO is much better on Shift Speeds and Super Slow", "paired differences above 0",
          outperforms("crossroad", "ppo", "dqn", ("shift-speeds", "super-slow"))),
    Claim("crossroad", "PPO is slightly better on All to the Right and Super Fast", "paired differences above 0",
          outperforms("crossroad", "ppo", "dqn", ("all-to-the-right", "super-fast"))),
    *claims_angrybirds.CLAIMS,
]  # fmt: skip
