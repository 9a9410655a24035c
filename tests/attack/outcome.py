"""What an attack reports."""

from dataclasses import dataclass, field


@dataclass
class Outcome:
    """What was tried, and what became of it.

    `attack(budget, seed)` of every module in this package returns one. `budget` is the share of the full attack: 1.0 is
    what `make attack` promises, 0.01 a hundredth of it. The same budget and seed try the same things.
    """

    name: str
    """Of the attack: its module's name; the runner fills it in."""
    tried: int = 0
    """How often something hostile was done."""
    refused: int = 0
    """How often the answer was one clear error."""
    survived: int = 0
    """How often all went on as it should."""
    failures: list[str] = field(default_factory=list)
    """One line each: what went wrong, and the seed that repeats it."""
    notes: list[str] = field(default_factory=list)
    """Figures worth printing below the table, one line each."""
    peak_mb: float = 0.0
    """Largest resident memory of the attack's process or of one of its children; the runner fills it in."""
    seconds: float = 0.0
    """Wall time; the runner fills it in."""

    def fail(self, what: str) -> None:
        """Record a failure, shortened to one line."""
        self.failures.append(" ".join(what.split())[:500])
