"""The trial harness: which state an agent is told, which level comes next, when a set or a trial is over.

It knows nothing of physics or sockets: the game tells it of shots and outcomes, a clock tells it the time.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from nappingrl.domains.angrybirds.server.protocol import State
from nappingrl.domains.angrybirds.server.trial_plan import TRAINING, LevelSet, Plan, Source, Trial

Clock = Callable[[], float]
"""Seconds of the wall clock."""

ENDED = (State.WON, State.LOST)
NOT_ALLOWED, NOT_BEGUN, HAS_BEGUN = -1, 0, 1
"""Answers to the question for novelty."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One time that a level was entered."""

    evaluation: int
    """Number of the execution of a trial, from 0."""
    trial: str
    execution: int
    """Of this trial, from 0."""
    mode: str
    is_informed: bool
    number: int
    """Of the level in its set, from 1."""
    attempt: int
    """At this level, from 1."""
    source: Source


@dataclass(slots=True)
class _Progress:
    """How far a level set has been played."""

    levels: LevelSet
    used: list[int] = field(default_factory=list)
    """Entries per level."""
    best: list[int] = field(default_factory=list)
    """Best score per level."""
    current: int | None = None
    n_shots: int = 0
    n_shots_before: int = 0
    """Before the current level was entered."""
    seconds: float = 0.0
    """Time used up before it was last begun or resumed."""
    begun_at: float | None = None
    is_over: bool = False

    def __post_init__(self) -> None:
        self.used = [0] * len(self.levels.sources)
        self.best = [0] * len(self.levels.sources)

    def time(self, now: float) -> float:
        return self.seconds + (now - self.begun_at if self.begun_at is not None else 0.0)

    def pause(self, now: float) -> None:
        self.seconds, self.begun_at = self.time(now), None

    def has_entries(self, i: int) -> bool:
        return self.levels.attempts == 0 or self.used[i] < self.levels.attempts

    def following(self) -> int | None:
        """The level that comes next: the same while it may be entered again, else the next one that may.

        Without a limit of entries every level comes once, in order.
        """
        n, last = len(self.used), self.current
        if self.levels.attempts == 0:
            number = 0 if last is None else last + 1
            return number if number < n else None
        first = last or 0
        return next((i for i in (*range(first, n), *range(first)) if self.has_entries(i)), None)

    @property
    def is_used_up(self) -> bool:
        return not any(map(self.has_entries, range(len(self.used))))


class Harness:
    """One agent's way through an evaluation.

    Attributes:
        is_report_due: a novelty likelihood must be reported before anything else.
        is_terminated: all is done.
        evaluation: number of the execution of a trial, from 0; rises when one is over.
    """

    def __init__(self, plan: Plan, clock: Clock) -> None:
        self._plan, self._clock = plan, clock
        self.is_report_due = False
        self.is_terminated = False
        self.evaluation = -1
        self._trials = ((trial, i) for trial in plan.trials for i in range(trial.n_executions))
        self._trial, self._execution = plan.trials[0], 0
        self._set = _Progress(self._trial.training)
        self._waiting: list[LevelSet] = []
        """Test sets still to come before training goes on or the trial ends."""
        self._interrupted: _Progress | None = None
        """The training that goes on after them."""
        self._last_checkpoint = 0, 0.0
        self._scene = State.MAIN_MENU
        self._announced: State | None = None
        """A set that waits for the agent to be ready."""
        self._is_new_trial = False
        self._is_outcome_told = False
        self._begin_trial()

    # What there is ---------------------------------------------------------------------------------------------------

    @property
    def trial(self) -> Trial:
        """The trial that runs, or was the last."""
        return self._trial

    @property
    def levels(self) -> LevelSet:
        """The level set that runs, or is announced."""
        return self._set.levels

    @property
    def n_shots(self) -> int:
        """Accepted shots in this set."""
        return self._set.n_shots

    @property
    def best_scores(self) -> list[int]:
        """Per level of this set."""
        return self._set.best

    @property
    def is_in_level(self) -> bool:
        """A level is loaded: being played, won or lost."""
        return self._scene in (State.PLAYING, *ENDED)

    @property
    def is_playing(self) -> bool:
        """A shot may be made, as far as the harness is concerned."""
        return self._scene is State.PLAYING and not self.is_report_due and not self._set.is_over

    @property
    def is_set_over(self) -> bool:
        """No more shots or levels in this set."""
        return self._set.is_over

    @property
    def is_untouched(self) -> bool:
        """The level being played has not seen a shot: an agent that leaves it by being ready may come back."""
        return self._scene is State.PLAYING and not self._set.is_over and self._set.n_shots == self._set.n_shots_before

    @property
    def entry(self) -> Entry | None:
        """The level that was entered last in this set; none if it was left since."""
        i = self._set.current
        if i is None or not self.is_in_level:
            return None
        levels, trial = self._set.levels, self._trial
        return Entry(
            self.evaluation, trial.name, self._execution, levels.mode, trial.is_informed, i + 1, self._set.used[i],
            levels.sources[i],
        )  # fmt: skip

    def novelty_info(self) -> int:
        """Whether the novelty has begun, where agents may know it."""
        if not self._trial.is_informed:
            return NOT_ALLOWED
        entry = self.entry
        return HAS_BEGUN if entry is not None and entry.source.is_novel else NOT_BEGUN

    # What the agent asks ---------------------------------------------------------------------------------------------

    def poll(self) -> State:
        """The state to tell. The outcome of the last level of a set is told once, then what comes after it."""
        self.check_time()
        if self.is_report_due:
            return State.REQUEST_NOVELTY_LIKELIHOOD
        self._turn()
        if self._is_new_trial:
            return State.NEW_TRIAL
        if self.is_terminated:
            return State.EVALUATION_TERMINATED
        if self._announced is not None:
            return self._announced
        self._is_outcome_told = self._scene in ENDED
        return self._scene

    def ready(self) -> tuple[int, int, int, int, int, int, int]:
        """Ready for a new set: go on by one from what is announced, else leave the level. The set's limits.

        An untouched level gets its entry back: a published agent does this with the first level that it loads.
        """
        self._is_outcome_told = True
        if not self.is_report_due and self._turn():
            pass  # what comes next has not been told yet
        elif self._is_new_trial:
            self._is_new_trial = False
            self._announced = State.NEW_TRAINING_SET
        else:
            if self._announced is not None:
                self._announced = None
                self._set.begun_at = self._clock()
            elif self.is_untouched and self._set.current is not None:
                self._set.used[self._set.current] -= 1
            self._scene = State.MAIN_MENU
        levels = self._set.levels
        return (
            levels.time_limit, levels.interaction_limit, len(levels.sources), levels.attempts,
            int(levels.mode == TRAINING), int(levels.is_selectable), int(self._trial.is_informed),
        )  # fmt: skip

    def enter_next(self) -> bool:
        """Enter the next level; none left: the set is over."""
        if not self._can_enter():
            return False
        i = self._set.following()
        if i is None:
            self._set.is_over = True
            self._turn()
            return False
        return self._enter(i)

    def enter(self, number: int) -> bool:
        """Enter a level by its number from 1: any that has entries left, or only the next where there is no choice."""
        if not self._can_enter() or not 1 <= number <= len(self._set.used):
            return False
        i = number - 1
        is_allowed = self._set.has_entries(i) if self._set.levels.is_selectable else i == self._set.following()
        return is_allowed and self._enter(i)

    def enter_again(self) -> bool:
        """Restart the level, which takes one more of its entries."""
        i = self._set.current
        if not self.is_in_level or not self._can_enter() or i is None or not self._set.has_entries(i):
            return False
        return self._enter(i)

    def report(self) -> bool:
        """A novelty likelihood has come; refused only when all is over."""
        self.is_report_due = False
        return not self.is_terminated

    # What the game tells ---------------------------------------------------------------------------------------------

    def on_shot(self) -> None:
        """A shot was accepted."""
        progress, plan = self._set, self._plan
        progress.n_shots += 1
        limit = progress.levels.interaction_limit
        if limit and progress.n_shots >= limit:
            progress.is_over = True
        is_asked = plan.is_asked_in_training if progress.levels.mode == TRAINING else plan.is_asked_in_tests
        if is_asked and not self._trial.is_informed and plan.report_step and progress.n_shots % plan.report_step == 0:
            self.is_report_due = True

    def on_end(self, is_won: bool, score: int) -> None:
        """The level was decided."""
        progress = self._set
        self._scene = State.WON if is_won else State.LOST
        self._is_outcome_told = False
        if progress.current is not None:
            progress.best[progress.current] = max(progress.best[progress.current], score)
        if progress.is_used_up:
            progress.is_over = True

    def check_time(self) -> None:
        """See whether the time of the set is up."""
        limit = self._set.levels.time_limit
        if limit and self._set.time(self._clock()) >= limit:
            self._set.is_over = True

    # How it goes on --------------------------------------------------------------------------------------------------

    def _can_enter(self) -> bool:
        """Whether levels can be entered now; whoever asks for one has seen enough of the last."""
        if self.is_report_due:
            return False
        self.check_time()
        self._is_outcome_told = True
        self._turn()
        return not (self._is_new_trial or self.is_terminated or self._announced is not None)

    def _enter(self, i: int) -> bool:
        self._set.current = i
        self._set.used[i] += 1
        self._set.n_shots_before = self._set.n_shots
        self._scene = State.PLAYING
        return True

    def _turn(self) -> bool:
        """Leave a set that is over or interrupted, once the outcome of its last level has been told."""
        if self._is_new_trial or self.is_terminated or self._announced is not None:
            return False
        if self._scene in ENDED and not self._is_outcome_told:
            return False
        if self._set.is_over:
            self._leave_set()
            return True
        if self._scene is not State.PLAYING and self._is_checkpoint():
            self._set.pause(self._clock())
            self._interrupted = self._set
            self._waiting = list(self._trial.tests)
            self._leave_set()
            return True
        return False

    def _is_checkpoint(self) -> bool:
        if self._set.levels.mode != TRAINING or not self._trial.tests:
            return False
        shots, seconds = self._set.n_shots, self._set.time(self._clock())
        trial, (last_shots, last_seconds) = self._trial, self._last_checkpoint
        if (trial.checkpoint_interactions and shots - last_shots >= trial.checkpoint_interactions) or (
            trial.checkpoint_time and seconds - last_seconds >= trial.checkpoint_time
        ):
            self._last_checkpoint = shots, seconds
            return True
        return False

    def _leave_set(self) -> None:
        """To the next test set, back to training, or to the next trial."""
        self._scene = State.MAIN_MENU
        if self._waiting:
            self._set = _Progress(self._waiting.pop(0))
            self._announced = State.NEW_TEST_SET
        elif self._interrupted is not None:
            self._set, self._interrupted = self._interrupted, None
            self._announced = State.RESUME_TRAINING
        elif self._set.levels.mode == TRAINING and self._trial.tests:
            self._waiting = list(self._trial.tests)
            self._leave_set()
        else:
            self._begin_trial()

    def _begin_trial(self) -> None:
        self.evaluation += 1
        self._scene, self._is_outcome_told = State.MAIN_MENU, False
        following = next(self._trials, None)
        if following is None:
            self.is_terminated = True
            return
        self._trial, self._execution = following
        self._set = _Progress(self._trial.training)
        self._last_checkpoint = 0, 0.0
        self._is_new_trial = True
