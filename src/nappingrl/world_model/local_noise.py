"""How large residuals usually are where: small at rest, large in a swing that the model only approximates."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.types import Floats

Matrix = NDArray[np.float64]
N_PLACES = 64
N_NEIGHBOURS = 25
MAX_STEPS = 2000
"""Held-out steps that are used."""


class LocalNoise(NamedTuple):
    """Usual residuals at a few places of the state space; elsewhere those of the nearest place count."""

    places: Matrix
    """(places, q) standardised states."""
    sizes: Matrix
    """(places, d)"""

    def at(self, states: Matrix) -> Matrix:
        """(m, d) usual residuals at standardised states (m, q)."""
        return np.asarray(self.sizes[nearest_places(self.places, states)])


@kernel(allocates=False)
def nearest_place(places: Matrix, state: Floats) -> int:
    """The number of the place nearest to a standardised state (q,); the first of equals."""
    nearest, least = 0, np.inf
    for p in range(len(places)):
        distance = 0.0
        for k in range(len(state)):
            distance += (places[p, k] - 2 * state[k]) * places[p, k]  # less the square of the state, which all share
        if distance < least:
            nearest, least = p, distance
    return nearest


@kernel()
def nearest_places(places: Matrix, states: Matrix) -> NDArray[np.int64]:
    """(m,) the number of the place nearest to each state."""
    out = np.empty(len(states), np.int64)
    for m in range(len(states)):
        out[m] = nearest_place(places, states[m])
    return out


def find_local_noise(states: Matrix, errors: Matrix) -> LocalNoise:
    """The noise of held-out errors (m, d) at standardised states (m, q)."""
    some = np.linspace(0, len(states) - 1, min(len(states), MAX_STEPS)).astype(np.int64)
    states, errors = states[some], np.abs(errors[some])
    places = _spread_out(states)
    distances = (states**2).sum(axis=1) - 2 * places @ states.T
    n = min(N_NEIGHBOURS, len(states))
    nearest = np.argpartition(distances, n - 1, axis=1)[:, :n]
    middle, outer = np.quantile(errors[nearest], [0.5, 0.9], axis=1)
    return LocalNoise(places, np.maximum(1.48 * middle, outer / 1.645))


@kernel()
def _spread_out(states: Matrix) -> Matrix:
    """A few of the states, each as far as possible from those before it; the first one is nearest to zero."""
    m, q = states.shape
    distances, places = np.zeros(m), np.empty((N_PLACES, q))
    for s in range(m):
        for k in range(q):
            distances[s] -= states[s, k] ** 2
    n = 0
    while n < N_PLACES and (n == 0 or distances.max() > 0):
        places[n] = states[distances.argmax()]
        for s in range(m):
            distance = 0.0
            for k in range(q):
                distance += (states[s, k] - places[n, k]) ** 2
            distances[s] = min(distances[s], distance) if n else distance
        n += 1
    return places[:n].copy()
