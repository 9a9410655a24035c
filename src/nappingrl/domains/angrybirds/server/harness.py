"""The trial harness: which state an agent is told, which level comes next, when a set or a trial is over.

It is independent of physics and sockets: the game reports shots and outcomes, and a clock gives the time.
"""

from collections.abc import Callable
from dataclasses import dataclass

from nappingrl.domains.angrybirds.server.protocol import State
from nappingrl.domains.angrybirds.server.set_progress import SetProgress
from nappingrl.domains.angrybirds.server.trial_plan import TRAINING, LevelSet, Plan, Source

Clock = Callable[[], float]
"""Seconds of the wall clock."""

ENDED = (State.WON, State.LOST)
NOT_ALLOWED, NOT_BEGUN, HAS_BEGUN = -1, 0, 1
"""Answers to the question whether the novelty has begun."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry into a level."""

    evaluation: int
    """Number of the execution of a trial, from 0."""
    trial: str
    execution: int
    """Number of the execution within this trial, from 0."""
    mode: str
    is_informed: bool
    number: int
    """Number of the level in its set, from 1."""
    attempt: int
    """Number of the entry into this level, from 1."""
    source: Source


class Harness:
    """One agent's way through an evaluation.

    Attributes:
        trial: The current trial, or the last one.
        is_report_due: Whether a novelty likelihood must be reported before anything else.
        evaluation: Number of the execution of a trial, from 0; rises when one is over.
    """

    def __init__(self, plan: Plan, clock: Clock) -> None:
        self._plan = plan
        self._clock = clock
        self.is_report_due = False
        self.evaluation = -1
        self._executions = ((trial, i) for trial in plan.trials for i in range(trial.n_executions))
        self.trial = plan.trials[0]
        self._execution = 0
        self._set = SetProgress(self.trial.training)
        self._pending_tests: list[LevelSet] = []
        """Test sets to play before training resumes or the trial ends."""
        self._interrupted: SetProgress | None = None
        """The training set that resumes after them."""
        self._last_checkpoint = 0, 0.0
        self._scene = State.MAIN_MENU
        self._announced: State | None = None
        """A new trial or set that waits for the agent to be ready, or the end of the evaluation."""
        self._is_outcome_told = False
        self._begin_trial()

    # State -----------------------------------------------------------------------------------------------------------

    @property
    def levels(self) -> LevelSet:
        """The current or announced level set."""
        return self._set.levels

    @property
    def n_shots(self) -> int:
        """Accepted shots in this set."""
        return self._set.n_shots

    @property
    def best_scores(self) -> list[int]:
        """Best score per level of this set."""
        return self._set.best

    @property
    def is_terminated(self) -> bool:
        """Whether the evaluation is over."""
        return self._announced is State.EVALUATION_TERMINATED

    @property
    def is_in_level(self) -> bool:
        """Whether a level is loaded: being played, won or lost."""
        return self._scene in (State.PLAYING, *ENDED)

    @property
    def is_playing(self) -> bool:
        """Whether the harness allows a shot."""
        return self._scene is State.PLAYING and not self.is_report_due and not self._set.is_over

    @property
    def is_set_over(self) -> bool:
        """Whether the set allows no more shots and levels."""
        return self._set.is_over

    @property
    def is_untouched(self) -> bool:
        """Whether no shot was made in the current level: an agent that leaves it by being ready may come back."""
        return self._scene is State.PLAYING and self._set.is_untouched

    @property
    def entry(self) -> Entry | None:
        """The last entry of this set; None if the level was left since."""
        i = self._set.current
        if i is None or not self.is_in_level:
            return None
        levels, trial = self._set.levels, self.trial
        return Entry(
            self.evaluation, trial.name, self._execution, levels.mode, trial.is_informed, i + 1, self._set.entries[i],
            levels.sources[i],
        )  # fmt: skip

    def novelty_info(self) -> int:
        """Whether the novelty has begun, if agents may know it."""
        if not self.trial.is_informed:
            return NOT_ALLOWED
        entry = self.entry
        return HAS_BEGUN if entry is not None and entry.source.is_novel else NOT_BEGUN

    # Requests of the agent -------------------------------------------------------------------------------------------

    def poll(self) -> State:
        """The state to tell. The outcome of the last level of a set is told once, then what comes next."""
        self.check_time()
        if self.is_report_due:
            return State.REQUEST_NOVELTY_LIKELIHOOD
        self._leave_finished_set()
        if self._announced is not None:
            return self._announced
        self._is_outcome_told = self._scene in ENDED
        return self._scene

    def ready(self) -> tuple[int, int, int, int, int, int, int]:
        """The agent is ready for a new set: take the next announced step, or leave the level. Returns the set's limits.

        An untouched level gets its entry back: a published agent does this with the first level that it loads.
        """
        self._is_outcome_told = True
        has_left_set = not self.is_report_due and self._leave_finished_set()
        if has_left_set or self.is_terminated:
            pass  # the agent has not been told yet what comes next
        elif self._announced is State.NEW_TRIAL:
            self._announced = State.NEW_TRAINING_SET
        else:
            if self._announced is not None:
                self._announced = None
                self._set.begun_at = self._clock()
            elif self.is_untouched and self._set.current is not None:
                self._set.entries[self._set.current] -= 1
            self._scene = State.MAIN_MENU
        levels = self._set.levels
        return (
            levels.time_limit, levels.interaction_limit, len(levels.sources), levels.attempts,
            int(levels.mode == TRAINING), int(levels.is_selectable), int(self.trial.is_informed),
        )  # fmt: skip

    def enter_next(self) -> bool:
        """Enter the next level; if none is left, the set is over."""
        if not self._can_enter():
            return False
        i = self._set.next_level()
        if i is None:
            self._set.is_over = True
            self._leave_finished_set()
            return False
        return self._enter(i)

    def enter(self, number: int) -> bool:
        """Enter a level by its number from 1: any with entries left if levels are selectable, else only the next."""
        if not self._can_enter() or not 1 <= number <= len(self._set.entries):
            return False
        i = number - 1
        is_allowed = self._set.has_entries(i) if self._set.levels.is_selectable else i == self._set.next_level()
        return is_allowed and self._enter(i)

    def enter_again(self) -> bool:
        """Restart the level, which takes one more of its entries."""
        i = self._set.current
        if not self.is_in_level or not self._can_enter() or i is None or not self._set.has_entries(i):
            return False
        return self._enter(i)

    def report(self) -> bool:
        """Accept a novelty likelihood; refused only after the end of the evaluation."""
        self.is_report_due = False
        return not self.is_terminated

    # Reports of the game ---------------------------------------------------------------------------------------------

    def on_shot(self) -> None:
        """A shot was accepted."""
        progress, plan = self._set, self._plan
        progress.n_shots += 1
        limit = progress.levels.interaction_limit
        if limit and progress.n_shots >= limit:
            progress.is_over = True
        is_asked = plan.is_asked_in_training if progress.levels.mode == TRAINING else plan.is_asked_in_tests
        if is_asked and not self.trial.is_informed and plan.report_step and progress.n_shots % plan.report_step == 0:
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
        """End the set if its time is up."""
        limit = self._set.levels.time_limit
        if limit and self._set.time(self._clock()) >= limit:
            self._set.is_over = True

    # Transitions -----------------------------------------------------------------------------------------------------

    def _can_enter(self) -> bool:
        """Whether levels can be entered now; an agent that asks for a level need not be told the last outcome."""
        if self.is_report_due:
            return False
        self.check_time()
        self._is_outcome_told = True
        self._leave_finished_set()
        return self._announced is None

    def _enter(self, i: int) -> bool:
        self._set.enter(i)
        self._scene = State.PLAYING
        return True

    def _leave_finished_set(self) -> bool:
        """Leave a set that is over or at a checkpoint, once the outcome of its last level has been told."""
        if self._announced is not None or (self._scene in ENDED and not self._is_outcome_told):
            return False
        if self._set.is_over:
            self._leave_set()
            return True
        if self._scene is not State.PLAYING and self._is_checkpoint():
            self._set.pause(self._clock())
            self._interrupted = self._set
            self._pending_tests = list(self.trial.tests)
            self._leave_set()
            return True
        return False

    def _is_checkpoint(self) -> bool:
        trial = self.trial
        if self._set.levels.mode != TRAINING or not trial.tests:
            return False
        shots, seconds = self._set.n_shots, self._set.time(self._clock())
        last_shots, last_seconds = self._last_checkpoint
        if (trial.checkpoint_interactions and shots - last_shots >= trial.checkpoint_interactions) or (
            trial.checkpoint_time and seconds - last_seconds >= trial.checkpoint_time
        ):
            self._last_checkpoint = shots, seconds
            return True
        return False

    def _leave_set(self) -> None:
        """Go to the next test set, back to training, or to the next trial."""
        self._scene = State.MAIN_MENU
        if self._pending_tests:
            self._set = SetProgress(self._pending_tests.pop(0))
            self._announced = State.NEW_TEST_SET
        elif self._interrupted is not None:
            self._set, self._interrupted = self._interrupted, None
            self._announced = State.RESUME_TRAINING
        elif self._set.levels.mode == TRAINING and self.trial.tests:
            self._pending_tests = list(self.trial.tests)
            self._leave_set()
        else:
            self._begin_trial()

    def _begin_trial(self) -> None:
        self.evaluation += 1
        self._scene = State.MAIN_MENU
        self._is_outcome_told = False
        following = next(self._executions, None)
        if following is None:
            self._announced = State.EVALUATION_TERMINATED
            return
        self.trial, self._execution = following
        self._set = SetProgress(self.trial.training)
        self._last_checkpoint = 0, 0.0
        self._announced = State.NEW_TRIAL
