"""A plan that is played in several games because its agent fails in between, and the merged episodes."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from nappingrl.domains.angrybirds.server.harness import Entry
from nappingrl.domains.angrybirds.server.results import Episode
from nappingrl.domains.angrybirds.server.trial_plan import TRAINING, LevelSet, Plan, Trial

MISSING = "Missing"
"""Status of a level that was never entered; counts as failed."""


@dataclass(slots=True)
class _Execution:
    """One execution of a trial."""

    trial: Trial
    number: int
    seconds: int = 0
    """Time used up in earlier games."""
    is_ended: bool = False
    """Whether the server has ended it: nothing is missing then, even if a limit came before the last level."""
    episodes: list[Episode] = field(default_factory=list)

    def levels_left(self) -> tuple[int, ...]:
        """Numbers of the training levels for a further game; empty if the execution is not continued."""
        levels = self.trial.training
        entered = {episode.entry.number for episode in self.episodes}
        if self.is_ended or self._is_used_up(levels) or (self.trial.tests and entered):
            return ()
        return tuple(number for number in range(1, len(levels.sources) + 1) if number not in entered)

    def remaining_trial(self) -> Trial:
        """The trial for a further game."""
        levels, n_shots = self.trial.training, self._n_shots
        training = replace(
            levels,
            sources=tuple(levels.sources[number - 1] for number in self.levels_left()),
            time_limit=levels.time_limit and levels.time_limit - self.seconds,
            interaction_limit=levels.interaction_limit and levels.interaction_limit - n_shots,
        )
        return replace(self.trial, training=training, n_executions=1)

    def missing(self, evaluation: int, agent_id: int) -> list[Episode]:
        """A failed episode for each level that was never entered."""
        if self.is_ended or self._is_used_up(self.trial.training):
            return []
        trial = self.trial
        entries = [episode.entry for episode in self.episodes]
        entered = {(entry.mode, entry.number, entry.source.name) for entry in entries}
        episodes = []
        for levels in (trial.training, *trial.tests):
            for number, source in enumerate(levels.sources, 1):
                if (levels.mode, number, source.name) in entered:
                    continue
                entry = Entry(
                    evaluation, trial.name, self.number, levels.mode, trial.is_informed, number, 1, source
                )  # fmt: skip
                n_birds = len(source.level.birds)
                n_pigs = sum(item.kind == "pig" for item in source.level.items)
                episodes.append(Episode(1, agent_id, entry, MISSING, 0, 0, n_birds, n_pigs, n_birds, n_pigs))
        return episodes

    @property
    def _n_shots(self) -> int:
        return sum(episode.n_shots for episode in self.episodes)

    def _is_used_up(self, levels: LevelSet) -> bool:
        """Whether the limit of shots or time is reached."""
        is_late = 0 < levels.time_limit <= self.seconds
        return is_late or 0 < levels.interaction_limit <= self._n_shots


class UnfinishedPlan:
    """A plan that is played in several games; each game gets the levels that were not entered before.

    A level counts as soon as it is entered, so an agent cannot look at it, crash and try again. A trial with test sets
    is not continued once it has begun, because its order depends on what was played before.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._executions = [_Execution(trial, i) for trial in plan.trials for i in range(trial.n_executions)]
        self._given: list[tuple[int, tuple[int, ...]]] = []
        """For each trial of the last game: index of its execution, and the numbers of its levels."""
        self._agent_id: int | None = None
        """The first id of the agent; later ones are ignored."""

    @property
    def n_left(self) -> int:
        """Number of training levels for a further game."""
        return sum(len(execution.levels_left()) for execution in self._executions)

    @property
    def episodes(self) -> list[Episode]:
        """All episodes as if played in one game, in order."""
        return [episode for execution in self._executions for episode in execution.episodes]

    def next_game(self) -> Plan:
        """The plan of the next game; only call it if `n_left` is positive."""
        self._given = [(i, left) for i, execution in enumerate(self._executions) if (left := execution.levels_left())]
        return replace(self._plan, trials=tuple(self._executions[i].remaining_trial() for i, _ in self._given))

    def add(self, episodes: Sequence[Episode], n_ended: int, seconds: float) -> None:
        """Add the last game: its episodes, the number of ended trials, and the time of the unfinished one."""
        for episode in episodes:
            i, numbers = self._given[episode.entry.evaluation]
            execution, number = self._executions[i], episode.entry.number
            number = numbers[number - 1] if episode.entry.mode == TRAINING else number
            entry = replace(episode.entry, evaluation=i, execution=execution.number, number=number)
            self._agent_id = episode.agent_id if self._agent_id is None else self._agent_id
            execution.episodes.append(replace(episode, agent=1, agent_id=self._agent_id, entry=entry))
        for i, _ in self._given[:n_ended]:
            self._executions[i].is_ended = True
        for i, _ in self._given[n_ended : n_ended + 1]:
            self._executions[i].seconds += int(seconds)

    def missing(self) -> list[Episode]:
        """Failed episodes of the levels that were never entered, unless a limit of the plan is the reason."""
        agent_id = self._agent_id or 0
        executions = enumerate(self._executions)
        return [episode for i, execution in executions for episode in execution.missing(i, agent_id)]


def is_endless(levels: LevelSet) -> bool:
    """Whether a set has no limit at all."""
    return not (levels.attempts or levels.time_limit or levels.interaction_limit)
