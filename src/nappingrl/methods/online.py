"""Online: go on training the agent, as SB3 would, from the first episode of a trial."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from nappingrl.agents.base import Agent, check_observations
from nappingrl.agents.observations import merge_decisions, take_transition
from nappingrl.learners import make_learner
from nappingrl.methods.base import Method, MethodInfo
from nappingrl.options import Option
from nappingrl.types import Actions, Decision, Flags, Keys, Observations, Rows, Transition


class Online(Method):
    """Learns and explores from the first step on; each trial has its own weights."""

    needs_discrete = True
    needs_alarm = False
    options: ClassVar[Mapping[str, Option]] = {
        "learning_rate": Option(None, "Adam's learning rate; default: the agent's own"),
        "layers": Option("all", "which layers learn: all, or the last one of each network", ("all", "last")),
        "exploration": Option(None, "share of random actions of a DQN agent; default: the agent's own", high=1.0),
    }
    learns_at_once: ClassVar[bool] = True
    """Whether learning begins with the trial; if not, with the first step after the detection."""

    def __init__(self, agent: Agent, info: MethodInfo, n: int) -> None:
        super().__init__(agent, info, n)
        self._trainable = agent.trainable()
        is_last_only = self.option("layers") == "last"
        self.learner = make_learner(
            self._trainable, n, self.option("learning_rate"), self.option("exploration"), is_last_only
        )
        self._is_learning = np.zeros(n, np.bool_)

    def start(self, rows: Rows, keys: Keys) -> None:
        """Back to the agent as it was shipped."""
        self.learner.start(rows, keys)
        self._is_learning[rows] = self.learns_at_once

    def forward(self, rows: Rows, observations: Observations) -> Decision:
        """What the trials' own networks want; the agent's wish where learning has not begun."""
        at = self._is_learning[rows]
        if not at.any():
            return self.agent.forward(observations)
        check_observations(observations, self.info.domain.observation_low.shape)
        if at.all():
            return self.learner.forward(rows, observations)
        frozen, own = self.agent.forward(observations[~at]), self.learner.forward(rows[at], observations[at])
        return merge_decisions(at, own, frozen)

    def act(self, rows: Rows, observations: Observations, decision: Decision) -> Actions:
        """Explored actions where learning has begun."""
        at = self._is_learning[rows]
        if not at.any():
            return decision.actions
        actions = decision.actions.copy()
        actions[at] = self.learner.explore(rows[at], actions[at], decision.preferences[at])
        return actions

    def learn(self, rows: Rows, transition: Transition, detected: Flags) -> None:
        """One step, for the rows that had begun when it was taken; detection lets the others begin with the next."""
        at = self._is_learning[rows]
        if at.any():
            self.learner.learn(rows[at], transition if at.all() else take_transition(transition, at))
        if not at.all():
            self._watch(rows[~at], take_transition(transition, ~at))
            self._is_learning[rows] |= detected

    def _watch(self, rows: Rows, transition: Transition) -> None:
        """A step of rows that have not begun to learn."""

    def diverged(self, rows: Rows) -> Flags:
        """Where learning stopped because a gradient was not finite."""
        return self.learner.state.is_diverged[rows].copy()

    def status(self, row: int) -> str:
        """Whether learning stopped."""
        return "its learning diverged and stopped" if self.learner.state.is_diverged[row] else ""

    def acting(self, row: int) -> str:
        """The network of the trial, once it learns."""
        return self.name if self._is_learning[row] else ""

    def notes(self) -> list[str]:
        """What starts fresh, and what differs from the training that made the agent."""
        fresh = [] if self._trainable.moments is not None else ["Adam's moments (not in the agent's file)"]
        fresh += ["replay buffer"] if self._trainable.kind == "q" and not self._keeps_buffer() else []
        fresh += ["reward statistics"] if self.learner.reward_scale.is_active else []
        name = type(self).__name__.lower()
        lines = [f"starts fresh: {', '.join(fresh)}"] if fresh else []
        return [f"{name} {line}" for line in [*lines, *self.learner.notes]]

    def _keeps_buffer(self) -> bool:
        return False
