"""The paper's quantitative claims, each with our figure: holds, does not hold, or was not run."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nappingrl.errors import BadRunError
from nappingrl.report.controls import Run
from nappingrl.report.statistics import Interval, mean_t, pair
from nappingrl.report.summary import curve, final_levels, is_failed

Floats = NDArray[np.float64]
HOLDS, FAILS, NOT_RUN = "holds", "does not hold", "not run"
NO_ADAPTATION = 0.1
"""Share of the range of returns: an agent that gains less than this after the novelty "shows no adaptation"."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What our runs say about a claim."""

    status: str
    ours: str = "-"


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper, and how it is judged."""

    domain: str
    text: str
    criterion: str
    """When it counts as holding."""
    judge: "Callable[[Book], Finding]"


class MissingRunError(Exception):
    """A claim needs a run, or episodes or draws of one, that is not there."""


class Book:
    """The runs that claims are judged on, one of each domain, agent and method."""

    def __init__(self, runs: list[Run]) -> None:
        self.runs: dict[tuple[str, str, str], Run] = {}
        for manifest, rows in runs:
            key = (manifest.spec["domain"], manifest.spec["agent"], manifest.spec["method"])
            if key in self.runs:
                raise BadRunError(
                    f"more than one run of '{manifest.label}'; claims need one of each domain, agent and method: "
                    "give a folder with fewer runs"
                )
            self.runs[key] = manifest, rows

    def run(self, domain: str, agent: str, method: str) -> Run:
        """One run; raises where it is missing."""
        try:
            return self.runs[domain, agent, method]
        except KeyError:
            raise MissingRunError from None

    def levels(self, domain: str, agent: str, method: str) -> pl.DataFrame:
        """The final level of each trial, with the drawn parameters."""
        manifest, rows = self.run(domain, agent, method)
        drawn = rows.filter(pl.col("episode") == 0).select("trial", pl.col("^param_.*$"))
        return final_levels(manifest, rows).join(drawn, on="trial", maintain_order="left")

    def gain(self, domain: str, agent: str, method: str, from_: tuple[int, int], to: tuple[int, int]) -> Floats:
        """Per trial: mean return of the episodes `to` minus that of the episodes `from_` (both inclusive).

        Raises where the run's protocol has no such episodes.
        """
        _, rows = self.run(domain, agent, method)
        value, episode = pl.col("return"), pl.col("episode")
        both = rows.group_by("trial", maintain_order=True).agg(
            value.filter(episode.is_between(*to)).mean().alias("to"),
            value.filter(episode.is_between(*from_)).mean().alias("from"),
        )
        if both["to"].has_nulls() or both["from"].has_nulls():
            raise MissingRunError
        return (both["to"] - both["from"]).to_numpy()

    def difference(self, domain: str, first: tuple[str, str], second: tuple[str, str], novelty: str = "") -> Floats:
        """Paired final levels of two (agent, method), first minus second."""
        a, b = self.levels(domain, *first), self.levels(domain, *second)
        if novelty:
            a, b = a.filter(pl.col("novelty") == novelty), b.filter(pl.col("novelty") == novelty)
        return _paired(a, b)


def _paired(first: pl.DataFrame, second: pl.DataFrame) -> Floats:
    if first.join(second, on=["novelty", "number"]).is_empty():
        raise MissingRunError
    return pair(first, second, "level").difference


def judge(claims: list[Claim], runs: list[Run]) -> list[tuple[Claim, Finding]]:
    """Every claim with what the runs say."""
    book = Book(runs)
    return [(claim, _judge(claim, book)) for claim in claims]


def _judge(claim: Claim, book: Book) -> Finding:
    try:
        return claim.judge(book)
    except MissingRunError:
        return Finding(NOT_RUN)


def _finding(is_true: bool, ours: str) -> Finding:
    return Finding(HOLDS if is_true else FAILS, ours)


def _words(found: Interval | None, values: Floats, digits: int = 2) -> str:
    if found is None:
        return f"{values.mean():.{digits}f} (one trial: no interval)"
    return f"{found.value:.{digits}f} ({found.low:.{digits}f} to {found.high:.{digits}f})"


def _no_adaptation(domain: str, agents: tuple[str, ...], method: str) -> Callable[[Book], Finding]:
    """Last ten against the first five post-novelty episodes."""

    def fn(book: Book) -> Finding:
        parts, holds = [], True
        for agent in agents:
            gain = book.gain(domain, agent, method, (0, 4), (30, 39))
            low, high = book.run(domain, agent, method)[0].return_range
            found = mean_t(gain)
            holds &= (found.low if found else gain.mean()) < NO_ADAPTATION * (high - low)
            parts.append(f"{agent} gains {_words(found, gain)}")
        return _finding(holds, "; ".join(parts))

    return fn


def _first_at(book: Book, agent: str, level: float) -> int | None:
    _, rows = book.run("cartpole", agent, "napping")
    reached = curve(rows).filter(pl.col("median") >= level)["episode"].to_list()
    return reached[0] if reached else None


def _fast_ppo(book: Book) -> Finding:
    at = _first_at(book, "ppo", 200.0)
    return _finding(at is not None and at < 10, f"median 200 at episode {at}" if at is not None else "never")


def _slower_dqn(book: Book) -> Finding:
    ppo, dqn = _first_at(book, "ppo", 200.0), _first_at(book, "dqn", 200.0)
    is_slower = ppo is not None and (dqn is None or dqn > ppo)
    return _finding(is_slower, f"median 200 at episode {ppo} (PPO), {dqn} (DQN)")


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
        parts.append(f"{agent} {_words(found, lost, 0)}")
    return _finding(holds, "against 200: " + "; ".join(parts))


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
            parts.append(f"{agent} {_words(inside, level[end], 0)} against {_words(outside, level[~end], 0)}")
        return _finding(holds, "; ".join(parts))

    return fn


def _jumps(book: Book) -> Finding:
    parts, holds = [], True
    for agent in ("dqn", "ppo-strong", "ppo-weak"):
        gain = book.gain("mountaincar", agent, "napping", (0, 4), (5, 5))
        found = mean_t(gain)
        holds &= found is not None and found.low > 0
        parts.append(f"{agent} {_words(found, gain, 1)}")
    return _finding(holds, "episode 5 minus episodes 0-4: " + "; ".join(parts))


def _converges(book: Book) -> Finding:
    difference = book.difference("mountaincar", ("dqn", "napping"), ("ppo-strong", "napping"))
    found = mean_t(difference)
    return _finding(abs(difference.mean()) < 10.0, f"DQN minus PPO-Strong {_words(found, difference, 1)}")


def _weak_is_below(book: Book) -> Finding:
    parts, holds = [], True
    for other in ("dqn", "ppo-strong"):
        difference = book.difference("mountaincar", ("ppo-weak", "napping"), (other, "napping"))
        found = mean_t(difference)
        holds &= found is not None and found.high < 0
        parts.append(f"minus {other} {_words(found, difference, 1)}")
    return _finding(holds, "PPO-Weak " + "; ".join(parts))


def _easier_gains(book: Book) -> Finding:
    """Draws with more force and less gravity than before the novelty."""
    parts, holds = [], True
    for agent in ("dqn", "ppo-strong", "ppo-weak"):
        manifest, _ = book.run("mountaincar", agent, "napping")
        default = manifest.parameters
        levels = book.levels("mountaincar", agent, "napping").filter(
            (pl.col("param_force") > default["force"]) & (pl.col("param_gravity") < default["gravity"])
        )
        difference = _paired(levels, book.levels("mountaincar", agent, "frozen"))
        found = mean_t(difference)
        holds &= found is not None and found.low > 0
        parts.append(f"{agent} {_words(found, difference, 1)}")
    return _finding(holds, "NAPPING minus frozen: " + "; ".join(parts))


def _failed_cut(agent: str, share: float) -> Callable[[Book], Finding]:
    def fn(book: Book) -> Finding:
        counts = []
        for method in ("frozen", "napping"):
            manifest, rows = book.run("mountaincar", agent, method)
            post = rows.filter(pl.col("episode") >= 0)
            counts.append(int(post.group_by("trial").agg(is_failed(manifest))["failed"].sum()))
        before, after = counts
        cut = 1 - after / before if before else 0.0
        return _finding(cut >= share, f"{before} -> {after} failed: cut by {cut:.1%}" if before else "nothing failed")

    return fn


def _crossroad_fails(book: Book) -> Finding:
    parts, holds = [], True
    for method in ("frozen", "online", "finetune"):
        for agent in ("dqn", "ppo"):
            level = book.levels("crossroad", agent, method)["level"].to_numpy()
            found = mean_t(level)
            holds &= (found.high if found else level.mean()) < 0
            parts.append(f"{agent} {method} {_words(found, level)}")
    return _finding(holds, "; ".join(parts))


def _about_zero(book: Book) -> Finding:
    parts, holds = [], True
    for agent in ("dqn", "ppo"):
        level = book.levels("crossroad", agent, "napping")["level"].to_numpy()
        holds &= abs(level.mean()) < 0.25
        parts.append(f"{agent} {_words(mean_t(level), level)}")
    return _finding(holds, "; ".join(parts))


def _ppo_is_faster(book: Book) -> Finding:
    early = [book.gain("crossroad", agent, "napping", (0, 4), (5, 14)) for agent in ("ppo", "dqn")]
    ppo, dqn = (mean_t(gain) for gain in early)
    is_faster = ppo is not None and dqn is not None and ppo.low > dqn.high
    return _finding(is_faster, f"gain in episodes 5-14: PPO {_words(ppo, early[0])}, DQN {_words(dqn, early[1])}")


def _leads(first: str, second: str, novelties: tuple[str, ...]) -> Callable[[Book], Finding]:
    """One CrossRoad agent ends above the other, in each of these novelties ("": over all)."""

    def fn(book: Book) -> Finding:
        parts, holds = [], True
        for novelty in novelties:
            difference = book.difference("crossroad", (first, "napping"), (second, "napping"), novelty)
            found = mean_t(difference)
            holds &= found is not None and found.low > 0
            parts.append(f"{novelty or 'all'} {_words(found, difference)}")
        return _finding(holds, f"{first} minus {second}: " + "; ".join(parts))

    return fn


_LITTLE = "gains less than a tenth of the range from episodes 0-4 to the last ten (lower end of the interval)"


def _not_built(book: Book) -> Finding:
    raise MissingRunError


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
    Claim("crossroad", "DQN ends slightly higher", "paired difference above 0", _leads("dqn", "ppo", ("",))),
    Claim("crossroad", "DQN is better on New Speeds", "paired difference above 0",
          _leads("dqn", "ppo", ("new-speeds",))),
    Claim("crossroad", "PPO is much better on Shift Speeds and Super Slow", "paired differences above 0",
          _leads("ppo", "dqn", ("shift-speeds", "super-slow"))),
    Claim("crossroad", "PPO is slightly better on All to the Right and Super Fast", "paired differences above 0",
          _leads("ppo", "dqn", ("all-to-the-right", "super-fast"))),
    Claim("angrybirds", "NAPPING agents fall from above .9 to below .4 and end at about .8", "not built yet",
          _not_built),
]  # fmt: skip
