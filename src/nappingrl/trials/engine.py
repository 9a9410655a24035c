"""The lock-step engine: many trials of one run advance together, one step of each per tick."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nappingrl.agents.base import Agent, check_fit
from nappingrl.detectors import Detector
from nappingrl.domains.base import Domain
from nappingrl.methods.base import Method, MethodInfo
from nappingrl.methods.guard import guarded
from nappingrl.registry import methods
from nappingrl.trials.protocol import CHANGED, PRE, phases
from nappingrl.trials.spec import RunSpec, TrialSpec
from nappingrl.types import Flags, Floats, Rows, Transition

SLOTS = 128
"""Trials that run at the same time. Measured with a thousand regions each: 128 take 0.8 of the time a step of 64."""

OnEpisodes = Callable[[int], None]


class Engine:
    """Runs the trials of one run. What a trial gives does not depend on which others run beside it."""

    def __init__(self, run: RunSpec, agent: Agent, slots: int = SLOTS) -> None:
        kind = run.kind
        facts = kind.facts()
        limits = facts.action_low, facts.action_high
        check_fit(agent, kind.name, facts.observation_low.shape, facts.n_actions, *limits)
        self.run = run
        self.domain = kind(slots)
        method: type[Method] = guarded(methods.get(run.method)) if run.guard else methods.get(run.method)
        self.method = method(agent, make_info(kind, run, method.privileged), slots)
        self.detector = kind.make_detector(run.detector, slots)
        self._watches_steps = type(self.detector).step is not Detector.step
        self.phase_names = [name for name, count in phases(run.protocol) for _ in range(count)]
        self.first_episode = -self.phase_names.count(PRE)
        self.slots = slots
        self._world = np.zeros(slots, np.int64)  # as the detector believes
        self._detected_step = np.full(slots, -1)
        self._episode = np.zeros(slots, np.int64)  # counted from 0
        self._first = np.zeros(slots, np.int64)  # where the trial begins
        self._trial = np.zeros(slots, np.int64)  # index into the trials of this call
        self._lengths = np.zeros(slots, np.int64)
        self._returns = np.zeros(slots)
        self._uniforms = np.zeros((slots, len(self.phase_names), kind.n_reset_draws))
        self._parameters: list[dict[str, float] | None] = [None] * slots
        self._settings: list[Mapping[str, float] | None] = [None] * slots

    def run_trials(self, trials: list[TrialSpec], on_episodes: OnEpisodes | None = None) -> pl.DataFrame:
        """All episodes of these trials as rows, in the order of the trials."""
        rows_out = _Columns(len(trials), len(self.phase_names), list(self.domain.parameters))
        waiting = iter(range(len(trials)))
        rows = self._admit(np.arange(self.slots), waiting, trials)
        observations = self.domain.observe(rows)
        while len(rows):
            decision = self.method.forward(rows, observations)
            actions = self.method.act(rows, observations, decision)
            rewards, terminated = self.domain.step(rows, actions)
            next_observations = self.domain.observe(rows)
            self._lengths[rows] += 1
            self._returns[rows] += rewards
            truncated = (self._lengths[rows] >= self.domain.horizon) & ~terminated
            transition = Transition(observations, decision, actions, next_observations, rewards, terminated, truncated)
            if self._watches_steps:
                self.detector.step(rows, transition)
                self._notice(rows, self._lengths[rows])
            self.method.learn(rows, transition, self._world[rows] > 0)
            observations = next_observations
            ended = terminated | truncated
            if ended.any():
                done = self._end_episodes(rows[ended], terminated[ended], rows_out)
                if len(done):
                    rows = np.setdiff1d(rows, done, assume_unique=True)
                    rows = np.concatenate([rows, self._admit(done, waiting, trials)])
                observations = self.domain.observe(rows)
                if on_episodes is not None:
                    on_episodes(int(ended.sum()))
        return rows_out.frame(trials, self.phase_names, self.first_episode)

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
        self.method.start(rows, np.array([trials[trial].key("choice") for _, trial in taken], np.uint64))
        self._world[rows], self._detected_step[rows] = 0, -1
        self.detector.start(rows, self.first_episode)
        self._begin_episodes(rows)
        return rows

    def _begin_episodes(self, rows: Rows) -> None:
        for row in rows:
            episode = self._episode[row]
            phase = self.phase_names[episode]
            if episode == self._first[row] or phase != self.phase_names[episode - 1]:
                one = np.array([row])
                is_novel = phase in CHANGED
                self.domain.apply(one, self._parameters[row] if is_novel else self._settings[row])
                self.detector.begin_phase(one, is_novel)
                if self.method.privileged and is_novel:
                    self.method.reveal(one, self.domain.parameters_of(one))
        self._lengths[rows] = 0
        self._returns[rows] = 0.0
        self._notice(rows, self._lengths[rows])
        self.domain.reset(rows, self._uniforms[rows, self._episode[rows]])

    def _end_episodes(self, rows: Rows, terminated: Flags, rows_out: "_Columns") -> Rows:
        """Write down what ended, judge it, begin the next episode; returns the slots whose trial is over."""
        lengths, returns = self._lengths[rows], self._returns[rows]
        won = self.domain.won(lengths, terminated, returns)
        regions, n_open = self.method.regions(rows)
        diverged = self.method.diverged(rows)
        detected = (self._world[rows] > 0) | (self._detected_step[rows] >= 0)
        rows_out.write(
            self._trial[rows], self._episode[rows], returns, lengths, won, detected,
            self._detected_step[rows], regions, n_open, diverged, self.domain.parameters_of(rows),
        )  # fmt: skip
        self._detected_step[rows] = -1
        self.method.end_episode(rows)
        self._episode[rows] += 1
        self.detector.end_episode(rows, returns, self._episode[rows] + self.first_episode)
        over: Flags = self._episode[rows] == len(self.phase_names)
        self._begin_episodes(rows[~over])
        done: Rows = rows[over]
        return done

    def _notice(self, rows: Rows, steps: Rows) -> None:
        """Tell the method where the detector has changed its mind; remember the step of the episode of an alarm."""
        worlds = self.detector.context[rows]
        new = worlds != self._world[rows]
        if new.any():
            at = rows[new]
            alarms = (worlds > 0)[new] & (self._world[at] == 0)
            self._detected_step[at[alarms]] = steps[new][alarms]
            self._world[at] = worlds[new]
            self.method.on_context_change(at, worlds[new])


class _Columns:
    """The rows of a chunk while they are being filled: one (trials, episodes) array per column."""

    def __init__(self, n_trials: int, n_episodes: int, parameters: list[str]) -> None:
        shape = (n_trials, n_episodes)
        self.parameters = parameters
        self.returns, self.lengths = np.zeros(shape), np.zeros(shape, np.int64)
        self.won, self.detected = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
        self.detected_step = np.full(shape, -1)
        self.regions, self.n_open = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self.diverged = np.zeros(shape, np.bool_)
        self.values = np.zeros((*shape, len(parameters)))
        self.is_played = np.zeros(shape, np.bool_)

    def write(
        self, trials: Rows, episodes: Rows, returns: Floats, lengths: Rows, won: Flags, detected: Flags,
        detected_step: Rows, regions: NDArray[np.int64], n_open: NDArray[np.int64], diverged: Flags, values: Floats,
    ) -> None:  # fmt: skip
        """One ended episode of some of the trials."""
        at = trials, episodes
        self.is_played[at] = True
        self.returns[at], self.lengths[at], self.won[at] = returns, lengths, won
        self.detected[at], self.detected_step[at] = detected, detected_step
        self.regions[at], self.n_open[at], self.diverged[at], self.values[at] = regions, n_open, diverged, values

    def frame(self, trials: list[TrialSpec], phase_names: list[str], first_episode: int) -> pl.DataFrame:
        """The rows as a table."""
        n_trials, n_episodes = self.returns.shape
        steps = pl.Series(self.detected_step.ravel().astype(np.int32))
        table = pl.DataFrame(
            {
                "trial": np.repeat([trial.id for trial in trials], n_episodes),
                "novelty": np.repeat([trial.novelty for trial in trials], n_episodes),
                "number": np.repeat(np.array([trial.number for trial in trials], np.int32), n_episodes),
                "phase": np.tile(phase_names, n_trials),
                "episode": np.tile(np.arange(n_episodes, dtype=np.int32) + first_episode, n_trials),
                "return": self.returns.ravel(),
                "length": self.lengths.ravel().astype(np.int32),
                "won": self.won.ravel(),
                "detected": self.detected.ravel(),
                "detected_step": steps.set(steps < 0, None),
                "regions": self.regions.ravel().astype(np.int32),
                "open_regions": self.n_open.ravel().astype(np.int32),
                "status": np.where(self.diverged.ravel(), "diverged", "ok"),
            }
            | {f"param_{name}": self.values[..., i].ravel() for i, name in enumerate(self.parameters)}
        )
        return table if self.is_played.all() else table.filter(pl.Series(self.is_played.ravel()))


def make_info(domain: type[Domain], run: RunSpec, privileged: bool) -> MethodInfo:
    """What a method may know of this run."""
    return MethodInfo(
        score=domain.scores[run.score],
        observation_shape=domain.observation_low.shape,
        observation_centre=domain.observation_centre,
        observation_scale=domain.observation_scale,
        rule=run.rule,
        space=run.space,
        options=run.options,
        expert=domain.expert() if privileged else None,
        mask=domain.mask,
        order=domain.order,
        won=domain.won,
        domain=domain.facts(),
    )
