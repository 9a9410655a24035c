"""Three readings of the paper's method, side by side: as printed, ours, and beyond the paper.

"As printed" was fixed from the paper's words before any result: the rule of its pseudo-code, the agent's embedding,
and the Eval that it names. It names one in Angry Birds, the pigs that a shot kills; elsewhere the reward of the step
stands in, with threshold 0. Where our defaults are the same, one run serves both columns.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nappingrl.adaptation import AdaptationSpec
from nappingrl.domains import find_domain
from nappingrl.registry import domains, methods
from nappingrl.score import REWARD
from nappingrl.trials.spec import RunSpec

PRINTED, OURS, BEYOND = "as printed", "ours", "beyond"
NAMED_SCORES: Mapping[str, str] = {"angrybirds": "paper"}
"""The Eval that the paper names, by domain."""
OTHER_SCORES: Mapping[str, str] = {"angrybirds": "goal"}
"""A score with which our reading is run beside the domain's default, by domain; claims are not judged on these runs."""


@dataclass(frozen=True, slots=True)
class Column:
    """One reading of the method."""

    name: str
    method: str
    options: Mapping[str, str] = field(default_factory=dict)
    is_literal: bool = False
    """Whether it takes the paper's Eval instead of the domain's default."""
    other_score: str = ""
    """A score instead of the domain's default."""

    def spec(self, domain: str, agent: str, novelty: str, trials: int, seed: int) -> RunSpec:
        """A run of it."""
        options = dict(self.options)
        return RunSpec(
            domain, agent, self.method, novelty, trials, seed, score=self.score(domain), options=options
        ).complete()  # fmt: skip

    def score(self, domain: str) -> str:
        """The score that it names; empty: the domain's default, or none."""
        return NAMED_SCORES.get(domain, REWARD) if self.is_literal else self.other_score

    def adaptation(self, domain: str) -> AdaptationSpec:
        """What it comes to in a domain: two columns with the same are one run."""
        return AdaptationSpec(self.method, self.score(domain), options=dict(self.options)).resolve(find_domain(domain))

    def has(self, spec: Mapping[str, Any]) -> bool:
        """Whether a completed spec is a run of it, with any detector."""
        if spec["method"] != self.method or spec["domain"] not in domains or spec.get("guard"):
            return False
        mine = self.adaptation(str(spec["domain"]))
        usual = {name: option.default for name, option in methods.get(self.method).options.items()}
        is_same = usual | dict(spec.get("options", {})) == usual | dict(mine.options)  # usual values may be left out
        return is_same and spec.get("score", "") == mine.score

    @property
    def folder(self) -> str:
        """The end of its run folders' names."""
        suffix = "printed" if self.is_literal else self.other_score
        return f"{self.method}-{suffix}" if suffix else self.method


COLUMNS: Mapping[str, Column] = {
    column.name: column
    for column in (
        Column(PRINTED, "napping", {"rule": "printed", "space": "embedding"}, is_literal=True),
        Column(OURS, "napping"),
        Column(BEYOND, "auto"),
    )
}


def columns_of(spec: Mapping[str, Any]) -> list[str]:
    """The columns that a run serves, by its completed spec: those with its method, options and score."""
    return [column.name for column in COLUMNS.values() if column.has(spec)]


def setting_of(spec: Mapping[str, Any]) -> str:
    """Method, rule, space and score of a run, in words."""
    method = str(spec["method"])
    title = methods.entry(method).title if method in methods else method
    options = {name: value for name, value in spec.get("options", {}).items() if name in ("rule", "space")}
    words = [f"{name} {value}" for name, value in options.items()]
    words += [f"score {spec['score']}"] if spec.get("score") else []
    return f"{title} ({', '.join(words)})" if words else title
