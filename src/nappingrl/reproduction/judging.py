"""How a claim of the paper is judged: the claim, the runs as evidence, and the finding."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from nappingrl.errors import BadRunError
from nappingrl.report.intervals import Interval, mean_interval, pair
from nappingrl.report.runs import Run
from nappingrl.types import Floats

HOLDS, FAILS, NOT_RUN = "holds", "does not hold", "not run"


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of a claim in our runs."""

    status: str
    ours: str = "-"


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of the paper, and how it is judged."""

    domain: str
    text: str
    criterion: str
    """When it holds."""
    judge: "Callable[[Evidence], Finding]"


class MissingRunError(Exception):
    """A claim needs a run, episodes or draws that are missing."""


class Evidence:
    """The runs that claims are judged on, one per domain, agent and method."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs: dict[tuple[str, str, str], Run] = {}
        for run in runs:
            key = (run.domain, str(run.spec["agent"]), run.method)
            if key in self.runs:
                raise BadRunError(
                    f"more than one run of '{run.manifest.label}'; claims need one of each domain, agent and method: "
                    "give a folder with fewer runs"
                )
            self.runs[key] = run

    def run(self, domain: str, agent: str, method: str) -> Run:
        """One run; raises where it is missing."""
        try:
            return self.runs[domain, agent, method]
        except KeyError:
            raise MissingRunError from None

    def levels(self, domain: str, agent: str, method: str) -> pl.DataFrame:
        """The final level of each trial, with the drawn parameters."""
        run = self.run(domain, agent, method)
        drawn = run.rows.filter(pl.col("episode") == 0).select("trial", pl.col("^param_.*$"))
        return run.levels.join(drawn, on="trial", maintain_order="left")

    def gain(self, domain: str, agent: str, method: str, from_: tuple[int, int], to: tuple[int, int]) -> Floats:
        """Per trial: mean return of the episodes `to` minus that of the episodes `from_` (both inclusive).

        Raises where the run's protocol has no such episodes.
        """
        rows = self.run(domain, agent, method).rows
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


def judge(claims: Sequence[Claim], runs: Sequence[Run]) -> list[tuple[Claim, Finding]]:
    """Every claim with its finding in these runs."""
    evidence = Evidence(runs)
    return [(claim, _judge(claim, evidence)) for claim in claims]


def _judge(claim: Claim, evidence: Evidence) -> Finding:
    try:
        return claim.judge(evidence)
    except MissingRunError:
        return Finding(NOT_RUN)


def make_finding(is_true: bool, ours: str) -> Finding:
    """A judgement with our figures."""
    return Finding(HOLDS if is_true else FAILS, ours)


def describe_mean(interval: Interval | None, values: Floats, digits: int = 2) -> str:
    """A mean and its interval."""
    if interval is None:
        return f"{values.mean():.{digits}f} (one trial: no interval)"
    return f"{interval.value:.{digits}f} ({interval.low:.{digits}f} to {interval.high:.{digits}f})"


def outperforms(domain: str, first: str, second: str, novelties: tuple[str, ...]) -> Callable[[Evidence], Finding]:
    """One agent with NAPPING ends above the other, in each of these novelties ("": over all)."""

    def judge_claim(evidence: Evidence) -> Finding:
        parts, holds = [], True
        for novelty in novelties:
            difference = evidence.difference(domain, (first, "napping"), (second, "napping"), novelty)
            interval = mean_interval(difference)
            holds &= interval is not None and interval.low > 0
            parts.append(f"{novelty or 'all'} {describe_mean(interval, difference)}")
        return make_finding(holds, f"{first} minus {second}: " + "; ".join(parts))

    return judge_claim
