"""What is left of an evaluation when its agent was lost on the way, and all that was played, put together again."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from nappingrl.domains.angrybirds.server.harness import Entry
from nappingrl.domains.angrybirds.server.results import Episode
from nappingrl.domains.angrybirds.server.trial_plan import TRAINING, LevelSet, Plan, Trial

MISSING = "Missing"
"""Status of a level that was never entered: counted as failed."""


@dataclass(slots=True)
class _Part:
    """One execution of a trial."""

    trial: Trial
    execution: int
    seconds: int = 0
    """Of its time, in games that ended before it did."""
    is_ended: bool = False
    """The server said so: nothing of it is missing, even where a limit came before the last level."""
    episodes: list[Episode] = field(default_factory=list)

    def left(self) -> tuple[int, ...]:
        """Numbers of the training levels that a further game is given; none: it is not played on."""
        levels = self.trial.training
        entered = {episode.entry.number for episode in self.episodes}
        if self.is_ended or self._is_used_up(levels) or (self.trial.tests and entered):
            return ()
        return tuple(number for number in range(1, len(levels.sources) + 1) if number not in entered)

    def rest(self) -> Trial:
        """As a further game plays it."""
        levels, n_shots = self.trial.training, self._n_shots
        training = replace(
            levels,
            sources=tuple(levels.sources[number - 1] for number in self.left()),
            time_limit=levels.time_limit and levels.time_limit - self.seconds,
            interaction_limit=levels.interaction_limit and levels.interaction_limit - n_shots,
        )
        return replace(self.trial, training=training, n_executions=1)

    def missing(self, evaluation: int, agent_id: int) -> list[Episode]:
        """An episode for each level that was never entered."""
        if self.is_ended or self._is_used_up(self.trial.training):
            return []
        trial = self.trial
        entered = {(one.entry.mode, one.entry.number, one.entry.source.name) for one in self.episodes}
        episodes = []
        for levels in (trial.training, *trial.tests):
            for number, source in enumerate(levels.sources, 1):
                if (levels.mode, number, source.name) in entered:
                    continue
                entry = Entry(
                    evaluation, trial.name, self.execution, levels.mode, trial.is_informed, number, 1, source
                )  # fmt: skip
                n_birds = len(source.level.birds)
                n_pigs = sum(item.kind == "pig" for item in source.level.items)
                episodes.append(Episode(1, agent_id, entry, MISSING, 0, 0, n_birds, n_pigs, n_birds, n_pigs))
        return episodes

    @property
    def _n_shots(self) -> int:
        return sum(episode.n_shots for episode in self.episodes)

    def _is_used_up(self, levels: LevelSet) -> bool:
        """Whether a limit of shots or time leaves nothing."""
        is_late = 0 < levels.time_limit <= self.seconds
        return is_late or 0 < levels.interaction_limit <= self._n_shots


class Remainder:
    """A plan that is played in several games, each of which gets what the ones before have not entered.

    A level counts from the moment it is entered, so an agent cannot look at a level, die and try again. A trial with
    test sets that was begun is not played on: what comes when in it depends on what was played before.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._parts = [_Part(trial, i) for trial in plan.trials for i in range(trial.n_executions)]
        self._given: list[tuple[int, tuple[int, ...]]] = []
        """Of the last game: which execution each of its trials is, and its levels."""
        self._agent_id: int | None = None
        """What the agent called itself first; one that changes its name is still the same."""

    @property
    def n_left(self) -> int:
        """Training levels that a further game is given."""
        return sum(len(part.left()) for part in self._parts)

    @property
    def episodes(self) -> list[Episode]:
        """All that was played, as if in one game, in the order of play."""
        return [episode for part in self._parts for episode in part.episodes]

    def take(self) -> Plan:
        """What the next game is given; ask `n_left` first."""
        self._given = [(i, left) for i, part in enumerate(self._parts) if (left := part.left())]
        return replace(self._plan, trials=tuple(self._parts[i].rest() for i, _ in self._given))

    def add(self, episodes: Sequence[Episode], n_ended: int, seconds: float) -> None:
        """What came of that game: its episodes, how many trials it ended, the time of the one it did not end."""
        for episode in episodes:
            i, numbers = self._given[episode.entry.evaluation]
            part, number = self._parts[i], episode.entry.number
            number = numbers[number - 1] if episode.entry.mode == TRAINING else number
            entry = replace(episode.entry, evaluation=i, execution=part.execution, number=number)
            self._agent_id = episode.agent_id if self._agent_id is None else self._agent_id
            part.episodes.append(replace(episode, agent=1, agent_id=self._agent_id, entry=entry))
        for i, _ in self._given[:n_ended]:
            self._parts[i].is_ended = True
        for i, _ in self._given[n_ended : n_ended + 1]:
            self._parts[i].seconds += int(seconds)

    def missing(self) -> list[Episode]:
        """The levels that were never entered, where no limit of the plan is the reason."""
        agent_id = self._agent_id or 0
        return [episode for i, part in enumerate(self._parts) for episode in part.missing(i, agent_id)]


def is_endless(levels: LevelSet) -> bool:
    """Whether an agent may play a set for ever."""
    return not (levels.attempts or levels.time_limit or levels.interaction_limit)
