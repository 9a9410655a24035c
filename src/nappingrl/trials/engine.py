"""The engine: many trials of one run advance together, by whole episodes in a kernel or by ticks, one step of each."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import polars as pl

from nappingrl.agents.base import Agent, check_fit
from nappingrl.methods.base import Method
from nappingrl.trials.episodes import DROPPED, TERMINATED, EpisodeKernel, make_episode_kernel
from nappingrl.trials.protocol import CHANGED, PRE, phases
from nappingrl.trials.rows import RowColumns
from nappingrl.trials.spec import RunSpec, TrialSpec
from nappingrl.types import Flags, Floats, Observations, Rows, Transition

SLOTS = 128
"""Trials that run at the same time. Measured with a thousand regions each: 128 take 0.8 of the time a step of 64."""

OnEpisodes = Callable[[int], None]


class Engine:
    """Runs the trials of one run. A trial's rows do not depend on the trials that run beside it."""

    def __init__(self, run: RunSpec, agent: Agent, slots: int = SLOTS, is_compiled: bool = True) -> None:
        spec = run.domain_spec
        check_fit(agent, spec)
        self.run = run
        self.domain = spec.make(slots)
        self.adaptation = run.adaptation.build(agent, spec, slots)
        self.method = self.adaptation.method
        self._kernel = make_episode_kernel(self.domain, self.adaptation) if is_compiled else None
        self._seen: Observations | None = None  # what the trials see before the next tick; None: to be asked for
        self._can_act = type(self.method).act is not Method.act or type(self.method).forward is not Method.forward
        self._acts_early = self.adaptation.is_privileged or not self.method.needs_alarm
        self.phase_names = [name for name, count in phases(run.protocol) for _ in range(count)]
        self.first_episode = -self.phase_names.count(PRE)
        self.slots = slots
        self._detected_step = np.full(slots, -1)
        self._episode = np.zeros(slots, np.int64)  # counted from 0
        self._first = np.zeros(slots, np.int64)  # the first episode of the trial
        self._trial = np.zeros(slots, np.int64)  # index into the trials of this call
        self._lengths = np.zeros(slots, np.int64)
        self._uniforms = np.zeros((slots, len(self.phase_names), spec.n_reset_draws))
        self._parameters: list[dict[str, float] | None] = [None] * slots
        self._settings: list[Mapping[str, float] | None] = [None] * slots

    @property
    def is_compiled(self) -> bool:
        """Whether whole episodes are played in a kernel."""
        return self._kernel is not None

    def run_trials(self, trials: list[TrialSpec], on_episodes: OnEpisodes | None = None) -> pl.DataFrame:
        """All episodes of these trials as rows, in the order of the trials."""
        columns = RowColumns(len(trials), len(self.phase_names), list(self.domain.spec.parameters))
        waiting = iter(range(len(trials)))
        rows = self._admit(np.arange(self.slots), waiting, trials)
        while len(rows):
            ended, terminated = self._tick(rows) if self._kernel is None else self._play(self._kernel, rows)
            if not len(ended):
                continue
            self._seen = None
            done = self._end_episodes(ended, terminated, columns)
            if len(done):
                rows = np.setdiff1d(rows, done, assume_unique=True)
                rows = np.concatenate([rows, self._admit(done, waiting, trials)])
            if on_episodes is not None:
                on_episodes(len(ended))
        return columns.frame(trials, self.phase_names, self.first_episode)

    def _play(self, kernel: EpisodeKernel, rows: Rows) -> tuple[Rows, Flags]:
        """Play the episodes of all rows to their ends; returns the rows, and which of them terminated."""
        stopped = kernel.play(rows, self._lengths)
        terminated = stopped == TERMINATED
        unfinished: Rows = rows[stopped == DROPPED]
        while len(unfinished):
            ended, are_terminated = self._tick(unfinished)
            if len(ended):
                self._seen = None
                terminated |= np.isin(rows, ended[are_terminated])
                unfinished = np.setdiff1d(unfinished, ended, assume_unique=True)
        return rows, terminated

    def _tick(self, rows: Rows) -> tuple[Rows, Flags]:
        """One step of each row; returns the rows whose episodes ended, and which of them terminated."""
        observations = self.domain.observe(rows) if self._seen is None else self._seen
        actions, decision = self.adaptation.act(rows, observations)
        rewards, terminated = self.domain.step(rows, actions)
        next_observations = self.domain.observe(rows)
        self._lengths[rows] += 1
        truncated = (self._lengths[rows] >= self.domain.spec.horizon) & ~terminated
        transition = Transition(observations, decision, actions, next_observations, rewards, terminated, truncated)
        alarmed = self.adaptation.observe(rows, transition)
        if len(alarmed):
            self._detected_step[alarmed] = self._lengths[alarmed]
        self._seen = next_observations
        ended = terminated | truncated
        return rows[ended], terminated[ended]

    def _admit(self, slots: Rows, waiting: Iterator[int], trials: list[TrialSpec]) -> Rows:
        """Give free slots to waiting trials; returns the slots that were taken."""
        taken = [(slot, trial) for slot, trial in zip(slots.tolist(), waiting, strict=False)]
        rows = np.array([slot for slot, _ in taken], np.int64)
        for slot, trial in taken:
            spec = trials[trial]
            self._trial[slot] = trial
            self._uniforms[slot] = spec.stream("reset").random(self._uniforms.shape[1:])
            self._parameters[slot], self._settings[slot] = spec.parameters(), spec.setting()
        self._first[rows] = [trials[trial].skipped() for _, trial in taken]
        self._episode[rows] = self._first[rows]
        self._detected_step[rows] = -1
        keys = np.array([trials[trial].key("choice") for _, trial in taken], np.uint64)
        self.adaptation.start(rows, keys, self.first_episode)
        self._begin_episodes(rows)
        return rows

    def _begin_episodes(self, rows: Rows) -> None:
        for row in rows:
            episode = self._episode[row]
            phase = self.phase_names[episode]
            if episode == self._first[row] or phase != self.phase_names[episode - 1]:
                self._begin_phase(row, phase in CHANGED)
        self._lengths[rows] = 0
        alarmed = self.adaptation.begin_episode(rows)
        self._detected_step[alarmed] = 0
        draws = self._uniforms[rows, self._episode[rows]]
        self.domain.reset(rows, draws)
        if self.adaptation.is_privileged:
            self.method.reveal_episode(rows, draws)

    def _begin_phase(self, row: int, is_novel: bool) -> None:
        rows = np.array([row])
        self.domain.apply(rows, self._parameters[row] if is_novel else self._settings[row])
        self.adaptation.begin_phase(rows, is_novel)
        if self.adaptation.is_privileged and is_novel:
            self.method.reveal(rows, self.domain.parameters_of(rows))

    def _end_episodes(self, rows: Rows, terminated: Flags, columns: RowColumns) -> Rows:
        """Write the ended episodes down and begin the next ones; returns the slots whose trial is over."""
        lengths, returns = self._lengths[rows], self.adaptation.returns[rows]
        regions, n_open = self.method.regions(rows)
        detected = self.adaptation.detected(rows) | (self._detected_step[rows] >= 0)
        columns.write(
            self._trial[rows], self._episode[rows], returns, lengths, self._won(lengths, terminated, returns), detected,
            self._detected_step[rows], regions, n_open, self.method.diverged(rows),
            self.adaptation.filter.n_dropped[rows], self.domain.parameters_of(rows),
        )  # fmt: skip
        if self._can_act:
            self._write_acted(rows if self._acts_early else rows[detected], columns)
        self._detected_step[rows] = -1
        self._episode[rows] += 1
        self.adaptation.end_episode(rows, self._episode[rows] + self.first_episode)
        over: Flags = self._episode[rows] == len(self.phase_names)
        self._begin_episodes(rows[~over])
        done: Rows = rows[over]
        return done

    def _write_acted(self, rows: Rows, columns: RowColumns) -> None:
        """Write down what acted in the ended episodes, or why only the frozen agent did."""
        at = zip(rows.tolist(), self._trial[rows].tolist(), self._episode[rows].tolist(), strict=True)
        for row, trial, episode in at:
            acted = columns.acted[trial, episode] = self.method.acting(row)
            if not acted and self.adaptation.contexts[row]:
                columns.why_not[trial, episode] = self.method.status(row)

    def _won(self, lengths: Rows, terminated: Flags, returns: Floats) -> Flags:
        won = self.domain.spec.won
        return np.zeros(len(lengths), np.bool_) if won is None else won(lengths, terminated, returns)
