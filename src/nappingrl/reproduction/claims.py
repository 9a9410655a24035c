"""The paper's quantitative claims, each with our figure: holds, does not hold, or was not run."""

from collections.abc import Callable

import numpy as np
import polars as pl

from nappingrl.report.statistics import mean_t, pair
from nappingrl.report.summary import curve, is_failed, span_of
from nappingrl.reproduction import claims_angrybirds as claims_birds
from nappingrl.reproduction.claim import (
    FAILS,
    HOLDS,
    NOT_RUN,
    Book,
    Claim,
    Finding,
    MissingRunError,
    finding_of,
    judge,
    leads,
    paired,
    words,
)

__all__ = ["CLAIMS", "FAILS", "HOLDS", "NOT_RUN", "Claim", "Finding", "judge"]

NO_ADAPTATION = 0.1
"""Share of the range of returns: an agent that gains less than this after the novelty "shows no adaptation"."""


def _no_adaptation(domain: str, agents: tuple[str, ...], method: str) -> Callable[[Book], Finding]:
    """Last ten against the first five post-novelty episodes."""

    def fn(book: Book) -> Finding:
        parts, holds = [], True
        for agent in agents:
            gain = book.gain(domain, agent, method, (0, 4), (30, 39))
            low, high = span_of(*book.run(domain, agent, method))
            found = mean_t(gain)
            holds &= (found.low if found else gain.mean()) < NO_ADAPTATION * (high - low)
            parts.append(f"{agent} gains {words(found, gain)}")
        return finding_of(holds, "; ".join(parts))

    return fn


def _first_at(book: Book, agent: str, level: float) -> int | None:
    _, rows = book.run("cartpole", agent, "napping")
    reached = curve(rows).filter(pl.col("median") >= level)["episode"].to_list()
    return reached[0] if reached else None


def _fast_ppo(book: Book) -> Finding:
    at = _first_at(book, "ppo", 200.0)
    return finding_of(at is not None and at < 10, f"median 200 at episode {at}" if at is not None else "never")


def _slower_dqn(book: Book) -> Finding:
    ppo, dqn = _first_at(book, "ppo", 200.0), _first_at(book, "dqn", 200.0)
    is_slower = ppo is not None and (dqn is None or dqn > ppo)
    return finding_of(is_slower, f"median 200 at episode {ppo} (PPO), {dqn} (DQN)")


def _drops_where_solvable(book: Book) -> Finding:
    """Frozen agents in the draws that the ceiling still solves."""
    parts, holds = [], True
    for agent in ("ppo", "dqn"):
        frozen, ceiling = book.levels("cartpole", agent, "frozen"), book.levels("cartpole", agent, "oracle")
        both = pair(frozen, ceiling, "level")
        lost = both.first[both.second >= 195.0] - 200.0
        if not len(lost):
            raise MissingRunError
        found = mean_t(lost)
        holds &= (found.high if found else lost.mean()) < 0
        parts.append(f"{agent} {words(found, lost, 0)}")
    return finding_of(holds, "against 200: " + "; ".join(parts))


def _fails_at(parameter: str, is_high: bool) -> Callable[[Book], Finding]:
    """NAPPING in the tenth of the draws at one end of a parameter against all others, both agents."""

    def fn(book: Book) -> Finding:
        parts, holds = [], True
        for agent in ("ppo", "dqn"):
            levels = book.levels("cartpole", agent, "napping").drop_nulls()
            value = levels[f"param_{parameter}"].to_numpy()
            end = value >= np.quantile(value, 0.9) if is_high else value <= np.quantile(value, 0.1)
            level = levels["level"].to_numpy()
            if end.all():
                raise MissingRunError
            inside, outside = mean_t(level[end]), mean_t(level[~end])
            holds &= inside is not None and outside is not None and inside.high < outside.low
            parts.append(f"{agent} {words(inside, level[end], 0)} against {words(outside, level[~end], 0)}")
        return finding_of(holds, "; ".join(parts))

    return fn


def _jumps(book: Book) -> Finding:
    parts, holds = [], True
    for agent in ("dqn", "ppo-strong", "ppo-weak"):
        gain = book.gain("mountaincar", agent, "napping", (0, 4), (5, 5))
        found = mean_t(gain)
        holds &= found is not None and found.low > 0
        parts.append(f"{agent} {words(found, gain, 1)}")
    return finding_of(holds, "episode 5 minus episodes 0-4: " + "; ".join(parts))


def _converges(book: Book) -> Finding:
    difference = book.difference("mountaincar", ("dqn", "napping"), ("ppo-strong", "napping"))
    found = mean_t(difference)
    return finding_of(abs(difference.mean()) < 10.0, f"DQN minus PPO-Strong {words(found, difference, 1)}")


def _weak_is_below(book: Book) -> Finding:
    parts, holds = [], True
    for other in ("dqn", "ppo-strong"):
        difference = book.difference("mountaincar", ("ppo-weak", "napping"), (other, "napping"))
        found = mean_t(difference)
        holds &= found is not None and found.high < 0
        parts.append(f"minus {other} {words(found, difference, 1)}")
    return finding_of(holds, "PPO-Weak " + "; ".join(parts))


def _easier_gains(book: Book) -> Finding:
    """Draws with more force and less gravity than before the novelty."""
    parts, holds = [], True
    for agent in ("dqn", "ppo-strong", "ppo-weak"):
        manifest, _ = book.run("mountaincar", agent, "napping")
        default = manifest.parameters
        levels = book.levels("mountaincar", agent, "napping").filter(
            (pl.col("param_force") > default["force"]) & (pl.col("param_gravity") < default["gravity"])
        )
        difference = paired(levels, book.levels("mountaincar", agent, "frozen"))
        found = mean_t(difference)
        holds &= found is not None and found.low > 0
        parts.append(f"{agent} {words(found, difference, 1)}")
    return finding_of(holds, "NAPPING minus frozen: " + "; ".join(parts))


def _failed_cut(agent: str, share: float) -> Callable[[Book], Finding]:
    def fn(book: Book) -> Finding:
        counts = []
        for method in ("frozen", "napping"):
            manifest, rows = book.run("mountaincar", agent, method)
            post = rows.filter(pl.col("episode") >= 0)
            counts.append(int(post.group_by("trial").agg(is_failed(manifest))["failed"].sum()))
        before, after = counts
        cut = 1 - after / before if before else 0.0
        return finding_of(cut >= share, f"{before} -> {after} failed: cut by {cut:.1%}" if before else "nothing failed")

    return fn


def _crossroad_fails(book: Book) -> Finding:
    parts, holds = [], True
    for method in ("frozen", "online", "finetune"):
        for agent in ("dqn", "ppo"):
            level = book.levels("crossroad", agent, method)["level"].to_numpy()
            found = mean_t(level)
            holds &= (found.high if found else level.mean()) < 0
            parts.append(f"{agent} {method} {words(found, level)}")
    return finding_of(holds, "; ".join(parts))


def _about_zero(book: Book) -> Finding:
    parts, holds = [], True
    for agent in ("dqn", "ppo"):
        level = book.levels("crossroad", agent, "napping")["level"].to_numpy()
        holds &= abs(level.mean()) < 0.25
        parts.append(f"{agent} {words(mean_t(level), level)}")
    return finding_of(holds, "; ".join(parts))


def _ppo_is_faster(book: Book) -> Finding:
    early = [book.gain("crossroad", agent, "napping", (0, 4), (5, 14)) for agent in ("ppo", "dqn")]
    ppo, dqn = (mean_t(gain) for gain in early)
    is_faster = ppo is not None and dqn is not None and ppo.low > dqn.high
    return finding_of(is_faster, f"gain in episodes 5-14: PPO {words(ppo, early[0])}, DQN {words(dqn, early[1])}")


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
    Claim("cartpole", "frozen agents drop even where the task is no harder", "in draws that the ceiling solves, the "
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
    Claim("mountaincar", "easier worlds gain too", "with more force and less gravity, gain above 0 for each agent",
          _easier_gains),
    Claim("mountaincar", "failed tasks cut by 59.4 % (PPO-Weak)", "cut at least as large",
          _failed_cut("ppo-weak", 0.594)),
    Claim("mountaincar", "failed tasks cut by 71.45 % (DQN)", "cut at least as large", _failed_cut("dqn", 0.7145)),
    Claim("crossroad", "frozen, Online and FineTune fail", "final level below 0", _crossroad_fails),
    Claim("crossroad", "NAPPING reaches about 0 mean reward (half solved)", "final level within .25 of 0", _about_zero),
    Claim("crossroad", "PPO is faster", "gains more in episodes 5-14, intervals apart", _ppo_is_faster),
    Claim("crossroad", "DQN ends slightly higher", "paired difference above 0",
          leads("crossroad", "dqn", "ppo", ("",))),
    Claim("crossroad", "DQN is better on New Speeds", "paired difference above 0",
          leads("crossroad", "dqn", "ppo", ("new-speeds",))),
    Claim("crossroad", "PPO is much better on Shift Speeds and Super Slow", "paired differences above 0",
          leads("crossroad", "ppo", "dqn", ("shift-speeds", "super-slow"))),
    Claim("crossroad", "PPO is slightly better on All to the Right and Super Fast", "paired differences above 0",
          leads("crossroad", "ppo", "dqn", ("all-to-the-right", "super-fast"))),
    *claims_birds.CLAIMS,
]  # fmt: skip
