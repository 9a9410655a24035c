"""How a claim is judged: the claim, the runs it is judged on, and what they say."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nappingrl.errors import BadRunError
from nappingrl.report.best_control import Run
from nappingrl.report.statistics import Interval, mean_t, pair
from nappingrl.report.summary import final_levels

Floats = NDArray[np.float64]
HOLDS, FAILS, NOT_RUN = "holds", "does not hold", "not run"


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
        return paired(a, b)


def paired(first: pl.DataFrame, second: pl.DataFrame) -> Floats:
    """Final levels of the same draws, first minus second; raises where there are none."""
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


def finding_of(is_true: bool, ours: str) -> Finding:
    """A judgement with our figures."""
    return Finding(HOLDS if is_true else FAILS, ours)


def words(found: Interval | None, values: Floats, digits: int = 2) -> str:
    """A mean and its interval."""
    if found is None:
        return f"{values.mean():.{digits}f} (one trial: no interval)"
    return f"{found.value:.{digits}f} ({found.low:.{digits}f} to {found.high:.{digits}f})"


def leads(domain: str, first: str, second: str, novelties: tuple[str, ...]) -> Callable[[Book], Finding]:
    """One agent with NAPPING ends above the other, in each of these novelties ("": over all)."""

    def fn(book: Book) -> Finding:
        parts, holds = [], True
        for novelty in novelties:
            difference = book.difference(domain, (first, "napping"), (second, "napping"), novelty)
            found = mean_t(difference)
            holds &= found is not None and found.low > 0
            parts.append(f"{novelty or 'all'} {words(found, difference)}")
        return finding_of(holds, f"{first} minus {second}: " + "; ".join(parts))

    return fn
