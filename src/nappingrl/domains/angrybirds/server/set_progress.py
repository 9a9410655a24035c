"""How far a level set has been played."""

from dataclasses import dataclass, field

from nappingrl.domains.angrybirds.server.trial_plan import LevelSet


@dataclass(slots=True)
class SetProgress:
    """Entries, scores, shots and time of one level set."""

    levels: LevelSet
    entries: list[int] = field(default_factory=list)
    """Entries per level so far."""
    best: list[int] = field(default_factory=list)
    """Best score per level."""
    current: int | None = None
    """Index of the level entered last."""
    n_shots: int = 0
    n_shots_at_entry: int = 0
    """Shots before the current level was entered."""
    seconds: float = 0.0
    """Time used up before the set was last begun or resumed."""
    begun_at: float | None = None
    is_over: bool = False

    def __post_init__(self) -> None:
        self.entries = [0] * len(self.levels.sources)
        self.best = [0] * len(self.levels.sources)

    def time(self, now: float) -> float:
        """Seconds that count against the time limit."""
        return self.seconds + (now - self.begun_at if self.begun_at is not None else 0.0)

    def pause(self, now: float) -> None:
        """Stop the clock."""
        self.seconds, self.begun_at = self.time(now), None

    def enter(self, i: int) -> None:
        """Enter a level by its index."""
        self.current = i
        self.entries[i] += 1
        self.n_shots_at_entry = self.n_shots

    def has_entries(self, i: int) -> bool:
        """Whether a level may be entered again."""
        return self.levels.attempts == 0 or self.entries[i] < self.levels.attempts

    def next_level(self) -> int | None:
        """Index of the next level: the current one while it has entries, else the next one that has.

        Without a limit of entries every level comes once, in order.
        """
        n, last = len(self.entries), self.current
        if self.levels.attempts == 0:
            following = 0 if last is None else last + 1
            return following if following < n else None
        first = last or 0
        return next((i for i in (*range(first, n), *range(first)) if self.has_entries(i)), None)

    @property
    def is_untouched(self) -> bool:
        """Whether no shot was made since the current level was entered."""
        return not self.is_over and self.n_shots == self.n_shots_at_entry

    @property
    def is_used_up(self) -> bool:
        """Whether no level has entries left."""
        return not any(map(self.has_entries, range(len(self.entries))))
