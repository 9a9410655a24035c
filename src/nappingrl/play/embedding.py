"""A map of the agent's embedding: two principal components of its model states, with regions and the present state."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.play.pane import Pane

if TYPE_CHECKING:
    from nappingrl.play.match import Match

MAX_SITES = 400
"""Sites that are shown; the most visited ones."""
N_STATES = 100
"""States from which the plane is found."""


class EmbeddingMap:
    """Projects model states on the plane in which those of the unchanged world vary most."""

    def __init__(self, match: "Match") -> None:
        self._agent = match.agent
        self._plane: NDArray[np.float64] | None = None
        self._states = list(match.states_before)
        self._mean: NDArray[np.float64] = np.zeros(0)
        if len(self._states) >= N_STATES and len(self._states[0]) > 1:
            self._fit()

    def point(self, pane: Pane) -> list[float] | None:
        """Where the present state is; None until enough states were met, or where there is no embedding."""
        if pane.wanted is None or pane.wanted.model_states.shape[1] < 2:
            return None
        state = pane.wanted.model_states[0]
        if self._plane is None:
            self._states.append(state.copy())
            if len(self._states) >= N_STATES:
                self._fit()
            return None
        return [round(float(x), 3) for x in (state - self._mean) @ self._plane]

    def _fit(self) -> None:
        states = np.array(self._states, np.float64)
        self._mean = states.mean(axis=0)
        _, sizes, axes = np.linalg.svd(states - self._mean, full_matrices=False)
        spread = max(float(sizes[0]) / np.sqrt(len(states)), 1e-9)
        self._plane, self._states = axes[:2].T / spread, []

    def regions(self, pane: Pane, table: dict[str, Any]) -> list[list[float]]:
        """The regions: x, y, what the agent wants there, and what is done; -1: several actions are being tried."""
        if self._plane is None or not table or not len(table["situation"]) or pane.world.domain.is_continuous:
            return []
        kept = np.argsort(-table["visits"], kind="stable")[:MAX_SITES]
        situations = np.asarray(table["situation"], np.float32)[kept]
        if situations.shape[1:] != pane.observations.shape[1:]:
            return []
        places = (self._agent.forward(situations).model_states - self._mean) @ self._plane
        candidates = np.asarray(table["candidates"], np.bool_)[kept]
        done = np.where(candidates.sum(axis=1) == 1, candidates.argmax(axis=1), -1)
        wanted = np.asarray(table["wanted"])[kept]
        return [
            [round(float(x), 3), round(float(y), 3), int(w), int(d)]
            for (x, y), w, d in zip(places, wanted, done, strict=True)
        ]
