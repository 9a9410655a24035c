"""The space of the regions: the agent's embedding, or the standardised observation."""

import math

import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.base import Agent
from nappingrl.errors import BadAgentError, BadSpecError, check_name
from nappingrl.types import Decision, DomainSpec, Observations

SPACES = {
    "embedding": "the last hidden layer of the agent's network",
    "raw": "the observation, standardised by the bounds of the domain",
}
MAX_SITUATION = 512
"""Larger observations (images) are not stored with the regions."""


class Space:
    """Maps observations and decisions of one agent to points."""

    def __init__(self, agent: Agent, domain: DomainSpec, space: str) -> None:
        self._centre, self._scale = domain.centre, domain.scale
        self._is_raw = check_name("space", space, SPACES) == "raw"
        shape = domain.observation_low.shape
        observation_dim = math.prod(shape) if shape else 0
        if not self._is_raw and not agent.embedding_dim:
            raise BadAgentError(f"agent {agent.name} has no embedding; space='embedding' needs one; use space='raw'")
        if self._is_raw and not observation_dim:
            raise BadSpecError("space='raw' needs observations that are a single array; use space='embedding'")
        self.dim = observation_dim if self._is_raw else agent.embedding_dim
        self.situation_dim = observation_dim if observation_dim <= MAX_SITUATION else 0
        """Length of the observations stored with the regions; 0: none are."""

    @property
    def standardisation(self) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
        """What `points` subtracts from observations and divides them by; None: points are model states."""
        return (self._centre, self._scale) if self._is_raw else (None, None)

    def points(self, observations: Observations, decision: Decision) -> NDArray[np.float32]:
        """Points of m observations, (m, dim)."""
        if not self._is_raw:
            return decision.model_states
        centred = (observations - self._centre) / self._scale
        return centred.reshape(len(observations), -1).astype(np.float32)

    def situations(self, observations: Observations) -> Observations | None:
        """The observations as stored with the regions, (m, situation_dim); None if they are not."""
        return observations.reshape(len(observations), -1) if self.situation_dim else None
