"""Novelty by one-step prediction: steps no longer lead where a model of the original world predicts.

The model, a `Reference`, is fitted to the episodes before the novelty, which the adaptation stores for detector and
methods. Five tests raise an alarm, each calibrated on those episodes as models predict them that were not fitted to
them: `Surprise` judges the largest residuals among the latest steps, `Drift` compares whole episodes, `Exchange` looks
for actions that act as others did, `Starts` at initial observations, and `Strangeness` at whole episodes in states that
the others excuse. A sixth, `Contradictions`, needs no model: it watches worlds in which outcomes always repeated.
`Recognition` tells which context the trial is in after an alarm, and when the original one is back.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from nappingrl.agents.base import Agent
from nappingrl.detectors.base import Detector, Gauge
from nappingrl.detectors.residual.blame import Blame
from nappingrl.detectors.residual.config import ResidualConfig
from nappingrl.detectors.residual.contradictions import Contradictions
from nappingrl.detectors.residual.drift import Drift
from nappingrl.detectors.residual.exchange import Exchange
from nappingrl.detectors.residual.recognition import Recognition
from nappingrl.detectors.residual.starts import Starts
from nappingrl.detectors.residual.strangeness import Strangeness
from nappingrl.detectors.residual.surprise import Surprise
from nappingrl.errors import BadSpecError
from nappingrl.snapshot import MAX_EPISODE, Expected, restore_arrays
from nappingrl.types import DomainSpec, Flags, Floats, Rows, Transition, arrays_of, with_prefix
from nappingrl.world_model.memory import TransitionMemory
from nappingrl.world_model.modes import first_steps
from nappingrl.world_model.reference import Reference
from nappingrl.world_model.transitions import Transitions

__all__ = ["Residual", "ResidualConfig"]

SURPRISE, DRIFT, STARTS, EXCHANGE, CONTRADICTION, STRANGENESS = 1, 2, 3, 4, 5, 6


class Residual(Detector):
    """Alarms when steps, episodes or their beginnings are not as they were in the unchanged world."""

    needs_domain = True
    uses_memory = True
    saved: ClassVar[Mapping[str, Expected]] = {
        **Detector.saved, "_first_episode": Expected(low=-MAX_EPISODE, high=MAX_EPISODE),
        "_episode": Expected(low=-MAX_EPISODE, high=MAX_EPISODE), "_cause": Expected(low=0, high=STRANGENESS),
        "_left": Expected(low=0), "_left_in": Expected(low=-MAX_EPISODE, high=MAX_EPISODE),
    }  # fmt: skip

    def __init__(self, n: int, domain: DomainSpec, config: ResidualConfig | None = None) -> None:
        super().__init__(n)
        self.domain, self.config = domain, config or ResidualConfig()
        d = _check_size(domain, self.config)
        if not 0 < self.config.false_alarms < 0.1:
            raise BadSpecError(
                f"false_alarms={self.config.false_alarms} given; allowed: a probability per episode in (0, 0.1)"
            )
        self.memory = TransitionMemory(n, domain)
        self._fills_memory = True
        size = self.memory.encoding.size
        self.surprise = Surprise(n, d, self.config)
        self.drift = Drift(n, d, size, self.config)
        self.starts = Starts(n, d, self.config)
        self.exchange = Exchange(n, d, self.memory.encoding, self.config)
        self.strangeness = Strangeness(n, self.config)
        self.contradictions = Contradictions(n)
        self.recognition = Recognition(n, self.memory.encoding, self.config)
        self.blame = Blame(n, domain)
        self._is_calibrated, self._has_repeats = np.zeros((2, n), np.bool_)
        """_has_repeats: where outcomes always repeated before the novelty."""
        self._cause = np.zeros(n, np.int64)
        """The test that raised the last alarm."""
        self._first_episode, self._episode = np.zeros((2, n), np.int64)
        self._left, self._left_in = np.zeros((2, n), np.int64)
        """The context that was left last (0: none), and the episode in which it was."""

    @override
    @classmethod
    def for_domain(cls, n: int, domain: DomainSpec) -> "Residual":
        return cls(n, domain)

    @override
    def connect(self, memory: TransitionMemory, agent: Agent) -> None:
        self.memory, self._fills_memory = memory, False

    @override
    def start(self, rows: Rows, episode: int) -> None:
        super().start(rows, episode)
        if self._fills_memory:
            self.memory.start(rows)
        for part in (*self._parts().values(), self.recognition):
            part.start(rows)
        self._is_calibrated[rows], self._has_repeats[rows], self._cause[rows] = False, False, 0
        self._first_episode[rows] = self._episode[rows] = episode
        self._left[rows] = 0

    def is_calibrated(self, rows: Rows) -> Flags:
        """Where it watches."""
        flags: Flags = self._is_calibrated[rows]
        return flags

    def why_blind(self, row: int) -> str:
        """Why it cannot alarm although it is calibrated, in words; empty: it can."""
        return "" if self._has_repeats[row] else self.memory.why_not(row)

    @override
    def step(self, rows: Rows, transition: Transition) -> None:
        before = self.context[rows].copy()
        if self._fills_memory:
            self.memory.add(rows, transition, before > 0)
        steps = self.memory.latest
        assert steps is not None
        is_calibrated = self._is_calibrated[rows]
        if is_calibrated.all():
            self._judge(rows, steps)
        elif is_calibrated.any():
            self._judge(rows[is_calibrated], steps.at(is_calibrated))
        self.starts.is_first[rows] = False
        if self._fills_memory:
            self._tell_memory(rows, before)

    def _tell_memory(self, rows: Rows, before: Rows) -> None:
        changed = self.context[rows] != before
        if changed.any():
            self.memory.enter(
                rows[changed], self.context[rows[changed]], list(map(self.n_leading, rows[changed].tolist()))
            )

    def _judge(self, rows: Rows, steps: Transitions) -> None:
        """Raise alarms, and notice when the original world is back."""
        if self._has_repeats[rows].any():
            self._judge_repeats(rows, steps)
        residuals, modes, is_main = self.memory.judge(rows, steps)
        sizes = np.abs(residuals)
        is_beyond = self.surprise.update(rows, sizes)
        if is_beyond.any():
            self.blame.add(rows, sizes * (sizes > self.surprise.limit[rows]), steps.actions)
        self.recognition.count(rows, steps.actions, is_beyond, modes >= 0)
        is_away = self.context[rows] > 0
        is_alarm = self.surprise.is_alarm(rows) & ~is_away
        if is_alarm.any():
            self._raise(rows, is_alarm, SURPRISE)
        away = rows[is_away & (self._cause[rows] == SURPRISE)]
        if len(away):
            is_back = self.recognition.is_back(away) & ~self.exchange.is_suspected(away)
            for row in away[is_back].tolist():
                reference = self.memory.reference(row)
                if reference is not None and self.recognition.fits_original(row, reference, self.memory.current(row)):
                    self._come_back(row, self.recognition.n_calm(row))
        deviations = self.drift.update(rows, residuals, is_main, steps.actions)
        is_drift = self.drift.is_alarm(rows, deviations) & (self.context[rows] == 0)
        if is_drift.any():
            self._raise_drift(rows[is_drift], deviations[is_drift])
        is_kept = (modes == 0) & ~steps.terminated
        if is_kept.any():
            kept = steps.at(is_kept)
            due = self.exchange.keep(rows[is_kept], kept.states, kept.actions, kept.next_states)
            if len(due):
                self._judge_exchange(due)
        is_first = self.starts.is_first[rows]
        if is_first.any():
            self._judge_starts(rows[is_first], steps.states[is_first].astype(np.float64))

    def _judge_repeats(self, rows: Rows, steps: Transitions) -> None:
        """Look for outcomes that always were others; such an alarm ends when they are as before again."""
        self.contradictions.update(rows, steps, self.memory)
        self._raise(rows, (self.context[rows] == 0) & self.contradictions.is_alarm(rows), CONTRADICTION)
        is_back = (self._cause[rows] == CONTRADICTION) & (self.context[rows] > 0) & self.contradictions.is_back(rows)
        for row in rows[is_back].tolist():
            self._come_back(row, int(self.contradictions.n_confirmed[row]))

    def _judge_exchange(self, rows: Rows) -> None:
        """Look for exchanged actions; from then on only the actions themselves can say that the world is back."""
        is_exchanged = self.exchange.judge(rows, self.memory.stack)
        is_back = (self.context[rows] > 0) & (self._cause[rows] == EXCHANGE) & self.exchange.is_back(rows)
        is_due = is_back | is_exchanged
        for row, has_returned in zip(rows[is_due].tolist(), is_back[is_due].tolist(), strict=True):
            reference = self.memory.reference(row)
            assert reference is not None
            if has_returned:
                self._come_back(row, self.exchange.n_since_back(row, reference, self.memory.current(row)))
                continue
            if not self.context[row]:
                self.blame.add_exchange(row, self.exchange.evidence[row], self.exchange.shares(row, reference))
                self._raise(np.array([row]), np.ones(1, np.bool_), EXCHANGE)
            self._cause[row] = EXCHANGE
            self.exchange.blame(row)

    def _raise(self, rows: Rows, where: Flags, cause: int) -> None:
        """Alarm in some rows."""
        for row in rows[where].tolist():
            reference, steps = self.memory.reference(row), self.memory.current(row)
            if cause == SURPRISE:  # a world that changed amid the episode: the steps before it are of the original one
                steps = steps.at(slice(-self.surprise.n_since_first(row), None))
            self.context[row] = 1 if reference is None else self._identify(row, reference, steps)
            self._cause[row] = cause
        self.drift.reset(rows[where], is_alarm=True)

    def _identify(self, row: int, reference: Reference, steps: Transitions) -> int:
        """The context after an alarm: a known one that explains the steps, or the one just left, or a new one."""
        was_hasty = bool(self._left[row]) and self._episode[row] - self._left_in[row] <= 1
        if was_hasty:  # a calm stretch misled: take longer next time
            self.recognition.n_hasty[row] += 1
        known = self.recognition.recognise(row, reference, steps)
        if known:
            return known
        return int(self._left[row]) if was_hasty else self.recognition.new_context(row)

    def _raise_drift(self, rows: Rows, evidence: NDArray[np.float64]) -> None:
        self.blame.add_drift(rows, evidence)
        self._raise(rows, np.ones(len(rows), np.bool_), DRIFT)

    def _judge_starts(self, rows: Rows, observations: NDArray[np.float64]) -> None:
        is_alarm = self.starts.judge(rows, observations) & (self.context[rows] == 0)
        if is_alarm.any():
            self.blame.add(rows[is_alarm], self.starts.evidence(rows[is_alarm]))
            self._raise(rows, is_alarm, STARTS)

    def _come_back(self, row: int, n_calm: int) -> None:
        """The original world is back since `n_calm` steps: model the context that is left."""
        transitions, reference = self.memory.current(row), self.memory.reference(row)
        if reference is not None:
            transitions = transitions.at(slice(0, max(0, transitions.n - n_calm)))
            self.recognition.learn(row, int(self.context[row]), reference, transitions)
        rows = np.array([row])
        self.drift.reset(rows, is_alarm=False)
        self.surprise.forget_episode(rows)  # its steps and those before were of the context that is left
        self.drift.forget_episode(rows)
        self.strangeness.forget_episodes(rows)
        self.exchange.reset(rows)
        self.contradictions.start(rows)
        self._left[row], self._left_in[row] = self.context[row], self._episode[row]
        self.context[row] = 0

    @override
    def end_episode(self, rows: Rows, returns: Floats, next_episodes: Rows) -> None:
        before = self.context[rows].copy()
        calibrated = rows[self._is_calibrated[rows]]
        if len(calibrated):
            is_drift = self.drift.end_episode(calibrated) & (self.context[calibrated] == 0)
            self._raise_drift(calibrated[is_drift], self.drift.evidence(calibrated[is_drift]))
            self._judge_strangeness(calibrated)
        self._return_after_episodes(rows[before > 0])
        self._episode[rows] = next_episodes
        first, n_episodes = self._first_episode[rows], self.config.n_calibration_episodes
        is_due = np.where(first < 0, next_episodes >= 0, next_episodes - first >= n_episodes)
        is_due |= self.memory.is_sealed(rows)
        for row in rows[is_due & ~self._is_calibrated[rows]].tolist():
            self._calibrate(row)
        if self._fills_memory:
            self._tell_memory(rows, before)
            self.memory.end_episode(rows)
        self._forget_episode(rows)

    def _judge_strangeness(self, rows: Rows) -> None:
        """Look at the episodes that are over as wholes, where that can raise or end an alarm."""
        rows = rows[(self.context[rows] == 0) | (self._cause[rows] == DRIFT) | (self._cause[rows] == STRANGENESS)]
        for row in rows[self.memory.n_current(rows) > 0].tolist():
            reference = self.memory.reference(row)
            if reference is not None:
                self.strangeness.end_episode(row, reference.strangeness(self.memory.latest_episode(row)))
        is_alarm = (self.context[rows] == 0) & self.strangeness.is_alarm(rows)
        for row in rows[is_alarm].tolist():
            self.blame.add(np.array([row]), self._mean_sizes(row))
        self._raise(rows, is_alarm, STRANGENESS)

    def _mean_sizes(self, row: int) -> NDArray[np.float64]:
        """(1, d) mean sizes of the residuals of the latest steps."""
        reference = self.memory.reference(row)
        assert reference is not None
        return np.asarray(np.abs(reference.residuals(self.memory.current(row))[0]).mean(axis=0, keepdims=True))

    def _return_after_episodes(self, rows: Rows) -> None:
        """Alarms by drift, starts or strangeness end when a whole episode is as usual."""
        is_calm = self.surprise.is_calm(rows)
        by_drift = (self._cause[rows] == DRIFT) & self.drift.is_usual(rows) & ~self.strangeness.is_strange(rows)
        by_starts = (self._cause[rows] == STARTS) & self.starts.is_usual(rows)
        by_strangeness = (self._cause[rows] == STRANGENESS) & self.strangeness.is_usual(rows)
        for row in rows[is_calm & (by_drift | by_starts | by_strangeness)].tolist():
            transitions = self.memory.current(row)
            self._come_back(row, int((transitions.episodes == transitions.episodes[-1]).sum()))

    def _calibrate(self, row: int) -> None:
        self.memory.seal(row)
        self._is_calibrated[row] = True
        self._has_repeats[row] = self.memory.repeats(row) is not None
        reference = self.memory.reference(row)
        if reference is None or reference.held_out is None:
            return
        self.surprise.calibrate(row, reference.held_out)
        self.recognition.calibrate(row, reference.held_out)
        self.exchange.calibrate(row, reference, reference.held_out)
        self.drift.calibrate(row, reference.held_out, reference.main)
        self.strangeness.calibrate(row, reference.held_out)
        reference.held_out = None
        before = self.memory.before(row)
        self.starts.calibrate(row, before.states[first_steps(before)], before.states)

    def _forget_episode(self, rows: Rows) -> None:
        self.surprise.forget_episode(rows)
        self.drift.forget_episode(rows)
        self.starts.is_first[rows] = True

    @override
    def discard_episode(self, rows: Rows) -> None:
        if self._fills_memory:
            self.memory.discard_episode(rows)
        self._forget_episode(rows)

    @override
    def n_leading(self, row: int) -> int:
        """Since the first of the surprising steps, if a good part of the episode was calm before it."""
        n_steps, n_since = int(self.surprise.n_seen[row]), self.surprise.n_since_first(row)
        is_amid = self._cause[row] == SURPRISE and n_steps - n_since >= self.config.min_calm_steps
        return n_since if is_amid else super().n_leading(row)

    @override
    def gauge(self, row: int) -> Gauge | None:
        """Of the latest steps; drift and starts are judged over whole episodes."""
        if not self._is_calibrated[row]:
            return None
        return Gauge("surprise of the latest steps", self.surprise.statistic(row), high=1.0)

    @override
    def status(self, row: int) -> str:
        if self._is_calibrated[row]:
            why = self.why_blind(row)
            return f"cannot alarm: {why}" if why else ""
        n_episodes = int(self._episode[row] - self._first_episode[row])
        n_needed = self.config.n_calibration_episodes if self._first_episode[row] >= 0 else -self._first_episode[row]
        return f"is calibrating: {n_episodes} of {n_needed} episodes, which it takes as unchanged"

    @override
    def explain(self, row: int) -> str:
        """Which observations changed, the most surprising first, and after which action."""
        return self.blame.explain(row)

    def _parts(self) -> dict[str, Surprise | Drift | Exchange | Starts | Strangeness | Contradictions | Blame]:
        return {
            "surprise": self.surprise,
            "drift": self.drift,
            "exchange": self.exchange,
            "starts": self.starts,
            "strangeness": self.strangeness,
            "contradictions": self.contradictions,
            "blame": self.blame,
        }

    @override
    def state(self) -> dict[str, NDArray[Any]]:
        state = super().state()
        for name, part in self._parts().items():
            state |= {f"{name}.{key}": array for key, array in arrays_of(part).items()}
        state |= {f"recognition.{key}": array for key, array in self.recognition.state().items()}
        if self._fills_memory:
            state |= {f"memory.{key}": array for key, array in self.memory.state().items()}
        return state

    @override
    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """The memory must have been restored before, if it is shared."""
        super().restore(state)
        for name, part in self._parts().items():
            restore_arrays(part, state, f"{name}.")
        self.recognition.restore(with_prefix("recognition.", state))
        if self._fills_memory:
            self.memory.restore(with_prefix("memory.", state))


def _check_size(domain: DomainSpec, config: ResidualConfig) -> int:
    """The number of observations; raise if they cannot be watched."""
    shape, instead = domain.observation_low.shape, "use detector 'ks' or 'cusum'"
    if len(shape) != 1:
        raise BadSpecError(f"detector 'residual' needs observations that are one row of numbers; {instead}")
    if shape[0] > config.max_observations:
        raise BadSpecError(
            f"detector 'residual' watches at most {config.max_observations} observations, and this domain has "
            f"{shape[0]}; {instead}"
        )
    return int(shape[0])
