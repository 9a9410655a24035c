"""One agent in one world: drives the same `Adaptation` as the engine, a step at a time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from nappingrl.adaptation import Adaptation, AdaptationSpec
from nappingrl.agent.status import Journal, Status
from nappingrl.agents.base import Agent
from nappingrl.detectors.base import Gauge
from nappingrl.domains.canvas import Canvas, Sketch
from nappingrl.play.world import World
from nappingrl.types import Actions, Decision, Flags, Floats, Observations, Point, Transition

ROW = np.zeros(1, np.int64)
REEL_EVERY = 3
"""Ticks of a simulator per picture."""
MAX_EPISODES, MAX_ALARMS = 500, 50
"""The latest ones that a pane remembers: a match may go on for hours."""
Draws = Callable[[int], Floats]
"""The uniform numbers (1, n_reset_draws) from which an episode begins."""


@runtime_checkable
class Slingshot(Protocol):
    """A domain in which a person can shoot."""

    def shoot(self, row: int, release: Point, tap_ms: int = 0) -> tuple[float, bool]:
        """One shot: draw the bird to a point of the screen; reward, and whether it is over."""
        ...


@dataclass(frozen=True, slots=True)
class Episode:
    """An episode that is over."""

    number: int
    """Negative: before the match began, in the unchanged world."""
    total: float
    """Its return."""
    length: int
    is_detected: bool
    world: int
    """Number of the world in which it ended."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """The moment at which the detector believed in a change."""

    episode: int
    step: int
    after: int
    """Steps since the latest change of the world."""
    why: str


class Pane:
    """An agent with a method in a world; the owner steps it."""

    def __init__(self, world: World, spec: AdaptationSpec, agent: Agent, draws: Draws, key: int, n_before: int) -> None:
        self.world, self.spec, self.agent = world, spec, agent
        self.adaptation: Adaptation = spec.build(agent, world.plain if spec.method == "oracle" else world.domain, 1)
        self.journal = Journal(self.adaptation)
        self.domain = world.domain.make(1)
        self.reel: list[Callable[[Canvas], None]] = []
        """What is still to be shown of the latest step, where a step takes long."""
        self._draws, self._n_before = draws, n_before
        self.world_number = 0
        self.changes: dict[str, float] = {}
        self.episode, self.step_number, self.total, self.since_change = -n_before, 0, 0.0, 0
        self.episodes: list[Episode] = []
        """The latest ones that ended."""
        self.alarms: list[Alarm] = []
        self.gauge: Gauge | None = None
        self.human: int | None = None
        """The action that a person gives instead of the method; None: the method acts."""
        self.release: Point | None = None
        """Where a person lets the bird go at the next step, on the screen."""
        self.seen: Observations = np.zeros((1, 0), np.float32)
        """What was observed before the latest step."""
        self.wanted: Decision | None = None
        """What the trained agent wanted at the latest step, for what it observed there."""
        self.executed: Actions | None = None
        self.adaptation.start(ROW, np.array([key], np.uint64), -n_before)
        self._enter_world()
        self._begin_episode()

    # ------------------------------------------------------------------------------------------------- the world

    def change_world(self, changes: Mapping[str, float], number: int) -> None:
        """Other parameters, in the middle of an episode too."""
        self.changes, self.world_number, self.since_change = dict(changes), number, 0
        self._enter_world()

    def _enter_world(self) -> None:
        self.domain.apply(ROW, self.changes)
        self.adaptation.begin_phase(ROW, bool(self.changes))
        if self.adaptation.is_privileged and self.changes:
            n_plain = len(self.world.plain.parameters)
            self.adaptation.method.reveal(ROW, self.domain.parameters_of(ROW)[:, :n_plain])

    def _begin_episode(self) -> None:
        self.step_number, self.total = 0, 0.0
        alarmed = self.adaptation.begin_episode(ROW)
        self.journal.begin_episode(ROW, alarmed, np.array([self.episode]))
        if len(alarmed):
            self._note_alarm()
        self.domain.reset(ROW, self._draws(self.episode + self._n_before))
        self.observations = self.domain.observe(ROW)

    def restart_episode(self) -> None:
        """Abandon the episode and begin it again."""
        self.adaptation.discard_episode(ROW)
        self.journal.discard_episode(0)
        self._begin_episode()

    # ------------------------------------------------------------------------------------------------- stepping

    def step(self) -> Episode | None:
        """One step, and the beginning of the next episode where this one ends; returns the episode that ended."""
        adaptation, domain = self.adaptation, self.domain
        actions, decision = adaptation.act(ROW, self.observations)
        if self.human is not None:
            actions = np.full_like(decision.actions, self.human)
        rewards, terminated = self._step_domain(actions)
        following = domain.observe(ROW)
        self.step_number += 1
        self.since_change += 1
        truncated = np.array([self.step_number >= domain.spec.horizon]) & ~terminated
        step = Transition(self.observations, decision, actions, following, rewards, terminated, truncated)
        alarmed = adaptation.observe(ROW, step)
        self.journal.step(ROW, alarmed, np.array([self.episode]))
        self.wanted = decision if self.agent.is_stateful else self.agent.forward(self.observations)
        self.executed, self.gauge = actions, adaptation.detector.gauge(0)
        if len(alarmed):
            self._note_alarm()
        self.seen, self.observations = self.observations, following
        self.total += float(rewards[0])
        return self._end_episode() if terminated[0] or truncated[0] else None

    def _step_domain(self, actions: Actions) -> tuple[Floats, Flags]:
        if self.release is not None and isinstance(self.domain, Slingshot):
            reward, is_over = self.domain.shoot(0, self.release)
            self.release = None
            rewards, terminated = np.array([reward]), np.array([is_over])
        else:
            rewards, terminated = self.domain.step(ROW, actions)
        self.reel = self.domain.reel(0)
        return rewards, terminated

    def keep_reels(self) -> None:
        """From now on, show steps that take long as they happen."""
        self.domain.reel_every = REEL_EVERY
        self.reel = []

    def _end_episode(self) -> Episode:
        is_detected = bool(self.adaptation.contexts[0])
        ended = Episode(self.episode, self.total, self.step_number, is_detected, self.world_number)
        self.episodes.append(ended)
        del self.episodes[:-MAX_EPISODES]
        self.episode += 1
        self.journal.end_episode(ROW)
        self.adaptation.end_episode(ROW, np.array([self.episode]))
        self._begin_episode()
        return ended

    def _note_alarm(self) -> None:
        why = self.adaptation.detector.explain(0)
        self.alarms.append(Alarm(self.episode, self.step_number, self.since_change, why))
        del self.alarms[:-MAX_ALARMS]

    # ------------------------------------------------------------------------------------------------- telling

    @property
    def status(self) -> Status:
        """What the detector believes and what acts."""
        return self.journal.status(0)

    @property
    def is_overriding(self) -> bool:
        """Whether the latest action is not the one that the trained agent wanted."""
        if self.wanted is None or self.executed is None:
            return False
        return bool((self.executed != self.wanted.actions).any())

    @property
    def action_words(self) -> tuple[str, str]:
        """The latest action that was wanted and the one that was done, in words; empty: their names say it."""
        name = self.world.plain.name_action
        if name is None or self.wanted is None or self.executed is None:
            return "", ""
        return name(self.seen[0], int(self.wanted.actions[0])), name(self.seen[0], int(self.executed[0]))

    def imagine(self, n_steps: int) -> Floats | None:
        """The observations that the method's model predicts from now on; None: it has none, or does not act by it."""
        return self.adaptation.method.imagine(0, self.observations[0], n_steps)

    def sketch(self) -> Sketch:
        """A drawing of the world now."""
        sketch = Sketch()
        if self.reel:
            self.reel[0](sketch)
        else:
            self.domain.draw(0, sketch)
        return sketch
