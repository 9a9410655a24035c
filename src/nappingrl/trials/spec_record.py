"""An experiment as a plain record: what a manifest holds, and the ids that follow from it."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from nappingrl.trials.limits import MAX_NAMES, MAX_SEED, MAX_TEXT, MAX_TRIALS
from nappingrl.trials.protocol import episode_counts

GAME = "game-"
"""Takes the place of the options' hash in the id of a trial that an external agent played."""
CONTROL = r"\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
"""What no line of text may hold, as the inside of a regular expression's brackets."""
Text = Annotated[str, Meta(max_length=MAX_TEXT, pattern=rf"^[^{CONTROL}]*\Z")]
"""One line of text without control characters."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One agent and one method in one domain. Empty names mean: the domain's default."""

    domain: Text
    agent: Text = ""
    method: Text = ""
    novelty: Text = ""
    """A name, "all" (trials of each) or "none" (nothing changes: a control)."""
    trials: Annotated[int, Meta(ge=1, le=MAX_TRIALS)] = 100
    seed: Annotated[int, Meta(ge=0, le=MAX_SEED)] = 0
    strength: Annotated[float, Meta(gt=0, le=1)] = 1.0
    score: Text = ""
    detector: Text = ""
    protocol: Text = "paper"
    """"paper" = the paper's in this domain (40+40 episodes), any PRE+POST such as 10+40, LEAST..MOST+POST, or
    "return" = 40+40+40+40: before the novelty, after it, the original domain again, and the novelty again."""
    options: Annotated[dict[str, Any], Meta(max_length=MAX_NAMES)] = field(default_factory=dict)
    """Options of the method, such as NAPPING's `rule` and `space`."""
    guard: bool = False
    """Whether the frozen agent takes over where adaptation does not pay."""
    domain_options: Annotated[dict[str, Any], Meta(max_length=MAX_NAMES)] = field(default_factory=dict)
    """Options of the domain, such as what an observation holds; those of the agent where none are given."""

    @property
    def n_before(self) -> int:
        """The greatest number of episodes before the novelty."""
        return episode_counts(self.protocol)[1]

    def trial_ids(self, trials: Iterable[tuple[str, int]]) -> list[str]:
        """Ids of the trials with these novelties and numbers: domain/agent/method/novelty/seed/number-options."""
        agent, options = self.agent.replace("\\", "/").rsplit("/", 1)[-1], options_hash(self)
        return [
            f"{self.domain}/{agent}/{self.method}/{novelty}/{self.seed}/{number}-{options}"
            for novelty, number in trials
        ]


def options_hash(run: RunRecord) -> str:
    """Eight letters that differ where any option of the run differs that the id does not name."""
    names = ("strength", "score", "detector", "protocol", "options", "guard", "domain_options")
    stated = {name: getattr(run, name) for name in names if getattr(run, name)}
    return hashlib.sha256(msgspec.json.encode(stated, order="sorted")).hexdigest()[:8]
