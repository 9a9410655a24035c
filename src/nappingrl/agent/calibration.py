"""Calibration: the frozen agent in the unchanged environment, as the reference for what comes later."""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from rich.console import Console
from rich.progress import Progress

from nappingrl.agents.observations import as_actions, as_batch, as_column, check_alike, take
from nappingrl.agents.observing import ObservingWrapper
from nappingrl.errors import BadSpecError, check_whole
from nappingrl.snapshot.file import MAX_SEED
from nappingrl.types import Decision, OnProgress, Transition

if TYPE_CHECKING:
    from nappingrl.adaptation import Adaptation
    from nappingrl.agent import NappingAgent

MAX_EPISODES = 10_000
MAX_STEPS = 100_000
"""Of one episode: an environment without a time limit might never end."""
BAR_AFTER = 2.0
"""Seconds after which a progress bar appears."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What the frozen agent did in the unchanged environment."""

    steps: int
    returns: tuple[float, ...]
    """Of its episodes."""

    def __str__(self) -> str:
        """One line."""
        return f"{len(self.returns)} episodes, {self.steps} steps, mean return {np.mean(self.returns):.5g}"


def calibrate(agent: "NappingAgent", source: Any, episodes: int, seed: int | None) -> Calibration:
    """Let method and detector observe episodes as those before the change; `NappingAgent.calibrate` explains them."""
    _check_untouched(agent)
    is_env = isinstance(source, gymnasium.Env)
    if not is_env and (isinstance(source, str | bytes | dict) or not isinstance(source, Iterable)):
        raise BadSpecError(
            f"calibrate takes an unchanged gymnasium.Env or a list of transitions, not {type(source).__name__}"
        )
    if is_env:
        source = _bare_env(source)
        check_whole("episodes", episodes, 1, MAX_EPISODES)
        if seed is not None:
            check_whole("seed", seed, 0, MAX_SEED)
        agent.meet(source)
    elif seed is not None:
        raise BadSpecError("seed has no effect on recorded transitions; leave it out")
    else:
        source = [_as_step(number, step) for number, step in enumerate(source)]
        episodes = _count_episodes(source)
    adaptation = agent.adaptation
    rows = np.arange(agent.n_envs)
    try:
        agent.restart(-episodes)
        adaptation.begin_phase(rows, False)
        recorder = _Recorder(adaptation)
        with _late_bar("calibrating") as on_progress:
            if is_env:
                _play(recorder, source, episodes, seed, on_progress)
            else:
                _replay(recorder, source, episodes, on_progress)
    except BaseException:
        agent.restart()
        raise
    adaptation.discard_episode(rows)  # recorded steps may end within an episode
    if adaptation.memory is not None:
        for row in rows.tolist():
            adaptation.memory.seal(row)
    adaptation.begin_phase(rows, True)  # what follows may have changed; only the detector `given` listens
    adaptation.begin_episode(rows)
    return recorder.result()


def _check_untouched(agent: "NappingAgent") -> None:
    """Raise if the agent has begun: the reference comes first."""
    if agent.calibration is not None:
        raise BadSpecError(
            f"the agent is calibrated already ({agent.calibration}); make a new agent to calibrate again"
        )
    if agent.has_begun:
        alarmed = ", and its detector has raised an alarm" if agent.detected.any() else ""
        raise BadSpecError(
            f"calibrate comes before the first step: this agent has begun, with {agent.episodes.max()} episodes so far"
            f"{alarmed}; make a new agent"
        )


def _play(
    recorder: "_Recorder", env: gymnasium.Env[Any, Any], episodes: int, seed: int | None, on_progress: OnProgress
) -> None:
    """Play episodes with the frozen agent; the seed is that of the first reset, as gymnasium recommends."""
    for episode in range(episodes):
        observation, _ = env.reset(seed=seed if episode == 0 else None)
        for _ in range(MAX_STEPS):
            batch, decision = recorder.decide(observation)
            action = decision.actions[0]  # a number: FrozenLake cannot look arrays up
            observation, reward, terminated, truncated, _ = env.step(action)
            recorder.observe(batch, decision, np.array(action), observation, reward, terminated, truncated)
            if terminated or truncated:
                break
        else:
            raise BadSpecError(
                f"an episode did not end within {MAX_STEPS:,} steps; give the environment a time limit "
                "(gymnasium.wrappers.TimeLimit)"
            )
        recorder.end_episode(episode + 1 - episodes)
        on_progress(episode + 1, episodes)


def _replay(recorder: "_Recorder", steps: list[tuple[Any, ...]], episodes: int, on_progress: OnProgress) -> None:
    """Observe recorded steps."""
    for observation, action, *rest in steps:
        recorder.observe(*recorder.decide(observation), action, *rest)
        if rest[2] or rest[3]:
            done = len(recorder.returns) + 1
            recorder.end_episode(done - episodes)
            on_progress(done, episodes)


def _bare_env(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """The environment without the agent that observes it; the frozen agent's own steps are observed here."""
    if isinstance(env, ObservingWrapper):
        return env.env
    inner: Any = env
    while isinstance(inner, gymnasium.Wrapper):
        inner = inner.env
        if isinstance(inner, ObservingWrapper):
            raise BadSpecError("calibrate takes the environment as it was before agent.wrap(env)")
    return env


def _count_episodes(steps: list[tuple[Any, ...]]) -> int:
    """The number of complete episodes."""
    episodes = sum(bool(step[4] or step[5]) for step in steps)
    if not 1 <= episodes <= MAX_EPISODES:
        raise BadSpecError(
            f"the transitions hold {episodes} complete episodes; allowed: 1 to {MAX_EPISODES:,}, each with a last step "
            "that is terminated or truncated"
        )
    return episodes


class _Recorder:
    """Feeds the steps of one environment to all rows of an adaptation, and adds up their rewards."""

    def __init__(self, adaptation: "Adaptation") -> None:
        self._adaptation, self._agent = adaptation, adaptation.method.agent
        self._rows = np.arange(adaptation.method.n)
        self._same = np.zeros(adaptation.method.n, np.int64)
        self.returns: list[float] = []
        self._total, self._steps = 0.0, 0

    def decide(self, observation: Any) -> tuple[Any, Decision]:
        """The observation as a batch of one, and what the frozen agent wants, for all rows."""
        batch, is_single = as_batch(self._agent, observation)
        if not is_single:
            raise BadSpecError("a batch of observations given; calibrate takes the steps of one environment in turn")
        return batch, self._adaptation.act(self._rows, take(batch, self._same))[1]

    def observe(
        self, batch: Any, decision: Decision, action: Any, following: Any, reward: Any, terminated: Any, truncated: Any
    ) -> None:
        """One step."""
        next_batch, _ = as_batch(self._agent, following)
        check_alike(batch, next_batch)
        rewards = as_column("reward", reward, np.float64, 1)
        columns = (
            as_actions(self._agent, action, 1),
            next_batch,
            rewards,
            as_column("terminated", terminated, np.bool_, 1),
            as_column("truncated", truncated, np.bool_, 1),
        )
        actions, next_batch, rewards, is_terminated, is_truncated = (take(column, self._same) for column in columns)
        observations = take(batch, self._same)
        step = Transition(observations, decision, actions, next_batch, rewards, is_terminated, is_truncated)
        self._adaptation.observe(self._rows, step)
        self._total, self._steps = self._total + float(rewards[0]), self._steps + 1

    def end_episode(self, next_episode: int) -> None:
        """An episode ended; the next one has this number (0: the first that may be changed)."""
        self.returns.append(self._total)
        self._total = 0.0
        self._adaptation.end_episode(self._rows, np.full(len(self._rows), next_episode))
        self._adaptation.begin_episode(self._rows)

    def result(self) -> Calibration:
        """What was recorded."""
        return Calibration(self._steps, tuple(self.returns))


def _as_step(number: int, step: Any) -> tuple[Any, ...]:
    """A recorded step with six entries."""
    if not isinstance(step, tuple | list) or len(step) not in (5, 6):
        raise BadSpecError(
            f"step {number} is {step!r:.60}; allowed: (observation, action, next_observation, reward, terminated) and, "
            "optionally, truncated"
        )
    return (*step, False) if len(step) == 5 else tuple(step)


@contextmanager
def _late_bar(text: str) -> Iterator[OnProgress]:
    """Show a progress bar on standard error, if that is a terminal and the work takes longer than a moment."""
    started, bar = time.monotonic(), Progress(console=Console(stderr=True), transient=True)
    task, is_shown = bar.add_task(text, total=None), False

    def update(done: int, total: int) -> None:
        nonlocal is_shown
        bar.update(task, completed=done, total=total)
        if not is_shown and sys.stderr.isatty() and time.monotonic() - started > BAR_AFTER:
            is_shown = True
            bar.start()

    try:
        yield update
    finally:
        if is_shown:
            bar.stop()
