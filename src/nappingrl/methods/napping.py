"""NAPPING: after detection, learn in the cells of the agent's embedding which action to take instead."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.base import Agent
from nappingrl.arrays import Actions, Decision, Flags, Floats, Keys, Observations, Rows, Transition, take
from nappingrl.errors import BadAgentError, BadSpecError
from nappingrl.methods.base import Info, Method, Option
from nappingrl.principles import Principles
from nappingrl.registry import check_name
from nappingrl.score import Score

SPACES = ("embedding", "raw")
MAX_SITUATION = 256
"""Observations with more numbers (images) are not kept with the principles."""


class Napping(Method):
    """Adaptation principles over `space`: the agent's embedding, or the standardised observation."""

    options: ClassVar[Mapping[str, Option]] = {
        "choice": Option(
            "paper",
            "how an open principle tries its candidates: as in the paper (at random, or in the order that the world "
            "has), at random, or in the agent's own order",
            ("paper", "random", "preference"),
        ),
        "search": Option(
            "any",
            "which sites the nearest one is sought among: all (the paper), or those with the agent's action",
            ("any", "same-key"),
        ),
        "layer": Option(
            None,
            "number of the hidden layer that is the embedding, 1 = the first; default: the last",
            low=1,
            is_whole=True,
        ),
    }

    def __init__(self, agent: Agent, info: Info, n: int) -> None:
        layer = info.options.get("layer")
        super().__init__(agent if layer is None else agent.at_layer(int(layer)), info, n)
        if not self.agent.embedding_dim and info.space == "embedding":
            raise BadAgentError(f"agent {agent.name} has no embedding; method napping needs one, or space=raw")
        agent = self.agent
        self._is_raw = check_name("space", info.space, SPACES) == "raw"
        self._choice = self.option("choice")
        observation_dim = math.prod(info.observation_shape) if info.observation_shape else 0
        if self._is_raw and not observation_dim:
            raise BadSpecError("space 'raw' needs observations that are one array; use space='embedding'")
        dim = observation_dim if self._is_raw else agent.embedding_dim
        self._situation_dim = observation_dim if observation_dim <= MAX_SITUATION else 0
        is_same_key = self.option("search") == "same-key"
        self.principles = Principles(n, agent.n_actions, dim, info.rule, self._situation_dim, is_same_key)
        self._regions = np.full(n, -1)

    def start(self, rows: Rows, keys: Keys) -> None:
        """Forget all principles of these rows."""
        self.principles.start(rows, keys)

    def act(self, rows: Rows, observations: Observations, decision: Decision) -> Actions:
        """Algorithm 1. The region found here is kept for `learn`: the search runs once a step."""
        if not self.principles.n_regions[rows].any():
            self._regions[rows] = -1
            return decision.actions
        points = self._points(observations, decision)
        order, mask = self._order(decision), self.info.mask(observations) if self.info.mask is not None else None
        actions, self._regions[rows] = self.principles.select(rows, points, decision.actions, order, mask)
        return actions

    def _order(self, decision: Decision) -> NDArray[np.int64] | None:
        """In which order candidates are tried, per row; None: at random."""
        if self._choice == "preference":
            return np.argsort(-decision.preferences, axis=1, kind="stable")
        if self._choice == "paper" and self.info.order is not None:
            return self.info.order[decision.actions]
        return None

    def learn(self, rows: Rows, transition: Transition, detected: Flags) -> None:
        """Algorithm 2, for the rows where the novelty was detected."""
        if not detected.any():
            return
        t, at = transition, slice(None) if detected.all() else detected
        observations = take(t.observations, at)
        scores = score_of(self.info.score, t, at)
        rows = rows[at]
        self.principles.update(
            rows,
            self._points(t.observations, t.decision)[at],
            t.decision.actions[at],
            t.actions[at],
            self._regions[rows],
            scores,
            self.info.score.threshold,
            self.info.score.suprema(observations),
            observations.reshape(len(rows), -1) if self._situation_dim else None,
        )

    def regions(self, rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Principles held, and open ones."""
        return self.principles.n_regions[rows], self.principles.n_open[rows]

    def _points(self, observations: Observations, decision: Decision) -> NDArray[np.float32]:
        if not self._is_raw:
            return decision.model_states
        centred = (observations - self.info.observation_centre) / self.info.observation_scale
        return centred.reshape(len(observations), -1).astype(np.float32)


def score_of(score: Score, transition: Transition, at: Any = slice(None)) -> Floats:
    """The scores of some rows of a transition."""
    t = transition
    return score(
        take(t.observations, at), t.actions[at], take(t.next_observations, at), t.rewards[at], t.terminated[at]
    )
