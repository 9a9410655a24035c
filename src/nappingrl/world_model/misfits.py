"""How badly residuals in the home mode fit: the negative logarithm of a Cauchy density, up to a constant."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.types import Floats
from nappingrl.world_model.local_model import LocalModel, Matrix
from nappingrl.world_model.local_noise import LocalNoise, nearest_place

MAX_MISFIT = 4.0
"""The most that one observation adds to a step's misfit, about seven times the tolerance: outliers decide nothing."""


class Usual(NamedTuple):
    """Which residuals are usual where; arrays (q,) are of the observations that are modelled."""

    centre: Floats
    scale: Floats
    noise: LocalNoise
    """Sizes (places, q)."""
    least: Floats
    """Residuals that are too small to matter."""
    tolerance: Floats
    """On average."""


class Levels(NamedTuple):
    """Misfits of the reference."""

    usual: float
    """Mean misfit of a held-out step."""
    high: float
    """Mean misfit that few stretches of the reference exceed."""


@kernel(allocates=False)
def write_tolerances(
    usual: Usual, entries: NDArray[np.int64], state: Floats, z: Floats, out: Floats, logs: Floats
) -> None:
    """(q,) residuals that are usual in a state, or too small to matter, and the logarithms of their shares."""
    for k in range(len(entries)):
        z[k] = (state[entries[k]] - usual.centre[k]) / usual.scale[k]
    place = nearest_place(usual.noise.places, z)
    for k in range(len(entries)):
        out[k] = usual.least[k] + usual.noise.sizes[place, k]
        logs[k] = np.log(out[k] / usual.tolerance[k])


@kernel(allocates=False)
def misfit(tolerances: Floats, logs: Floats, residuals: Floats) -> float:
    """How badly residuals (q,) fit, in nats, where `write_tolerances` has written tolerances and logarithms."""
    total = 0.0
    for k in range(len(tolerances)):
        each = np.log1p((residuals[k] / tolerances[k]) ** 2)
        total += min(each, MAX_MISFIT) + logs[k]
    return total


@kernel()
def misfits(usual: Usual, entries: NDArray[np.int64], residuals: Matrix, states: Matrix) -> Floats:
    """(m,) how badly residuals (m, d) fit in these states."""
    q = len(entries)
    out, z, tolerances, logs, own = np.empty(len(states)), np.empty(q), np.empty(q), np.empty(q), np.empty(q)
    for m in range(len(states)):
        write_tolerances(usual, entries, states[m], z, tolerances, logs)
        for k in range(q):
            own[k] = residuals[m, entries[k]]
        out[m] = misfit(tolerances, logs, own)
    return out


@kernel(allocates=False)
def write_change(model: LocalModel, x: Floats, out: Floats) -> None:
    """(q,) by how much a step with these features changes the observations."""
    for k in range(len(out)):
        out[k] = 0.0
    for f in range(len(x)):
        for k in range(len(out)):
            out[k] += model.weights[f, k] * x[f]
