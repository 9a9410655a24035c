"""What the frozen agent earned in a changed context: what a forecast of another policy is compared with."""

from dataclasses import dataclass, field
from typing import Annotated

from nappingrl.snapshot import Expected, Sizes

MAX_RETURNS = 20
"""Latest episodes that count."""


@dataclass(slots=True)
class AgentReturns:
    """Returns of the frozen agent's latest episodes in the latest changed context.

    A return to the original world does not end them: it may have been an error.
    """

    context: Annotated[int, Expected(low=0)] = 0
    """0: none has changed yet."""
    latest: list[float] = field(default_factory=list)

    def check(self, sizes: Sizes) -> None:
        """Raise if more were saved than are kept."""
        if len(self.latest) > MAX_RETURNS:
            raise ValueError(f"{len(self.latest)} returns; at most {MAX_RETURNS} are kept")

    def enter(self, context: int) -> None:
        """The detector believes in another context."""
        if context not in (0, self.context):
            self.context, self.latest = context, []

    def add(self, total: float) -> None:
        """Record an episode in which only the agent's actions were executed."""
        self.latest = [*self.latest, total][-MAX_RETURNS:]

    @property
    def mean(self) -> float | None:
        """Of the latest episodes; None: there are none."""
        return sum(self.latest) / len(self.latest) if self.latest else None
