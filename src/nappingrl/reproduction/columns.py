"""Three readings of the paper's method, side by side: as printed, ours, and beyond the paper.

"As printed" was fixed from the paper's words before any result: the rule of its pseudo-code, the agent's embedding,
and the Eval that it names. It names one in Angry Birds, the pigs that a shot kills; elsewhere the reward of the step
stands in, with threshold 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nappingrl.registry import methods
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


def column_of(spec: Mapping[str, Any]) -> str:
    """The column of a run by its completed spec; empty: it is of none."""
    literal = COLUMNS[PRINTED]
    if spec["method"] == literal.method:
        usual = {name: option.default for name, option in methods.get(literal.method).options.items()}
        options = usual | spec.get("options", {})  # a spec states options only where they differ from the method's
        is_literal = spec.get("score") == literal.score(str(spec["domain"])) and all(
            options.get(name) == value for name, value in literal.options.items()
        )
        is_other = bool(spec.get("score")) and spec.get("score") == OTHER_SCORES.get(str(spec["domain"]))
        return PRINTED if is_literal else "" if is_other else OURS
    return BEYOND if spec["method"] == COLUMNS[BEYOND].method else ""


def setting_of(spec: Mapping[str, Any]) -> str:
    """Method, rule, space and score of a run, in words."""
    method = str(spec["method"])
    title = methods.entry(method).title if method in methods else method
    options = {name: value for name, value in spec.get("options", {}).items() if name in ("rule", "space")}
    words = [f"{name} {value}" for name, value in options.items()]
    words += [f"score {spec['score']}"] if spec.get("score") else []
    return f"{title} ({', '.join(words)})" if words else title
