"""Maps between the changed world and the original one: of actions, and of observations."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from nappingrl.types import Floats, Rows

Matrix = NDArray[np.float64]
PROBE = -1
"""Instead of an action: execute the least tried one."""
MIN_GAIN = 0.05
"""An action dimension with a smaller gain has no effect."""


@dataclass(frozen=True, slots=True)
class DiscreteMap:
    """Each executed action acts as an original one."""

    acts_as: Rows
    """(n_actions,) the original action that an executed one acts as."""
    instead: Rows
    """(n_actions,) what to execute instead of a wanted action; PROBE: not known yet."""

    @classmethod
    def identity(cls, n_actions: int) -> "DiscreteMap":
        """Actions are as they were."""
        return cls(np.arange(n_actions), np.arange(n_actions))

    @property
    def is_identity(self) -> bool:
        """Whether every action is executed as wanted."""
        return bool((self.instead == np.arange(len(self.instead))).all())

    def is_like(self, other: "ActionMap") -> bool:
        """Whether it differs in no structure."""
        return isinstance(other, DiscreteMap) and bool((self.acts_as == other.acts_as).all())

    def original(self, actions: Matrix) -> Matrix:
        """One-hot executed actions (m, n_actions) as the original ones."""
        out = np.zeros_like(actions)
        out[np.arange(len(actions)), self.acts_as[actions.argmax(axis=1)]] = 1.0
        return out


@dataclass(frozen=True, slots=True)
class ContinuousMap:
    """Executed u acts as clip(gain * u[source] + offset), all scaled to [-1, 1]."""

    source: Rows
    gain: Floats
    offset: Floats

    @classmethod
    def identity(cls, k: int) -> "ContinuousMap":
        """Actions are as they were."""
        return cls(np.arange(k), np.ones(k), np.zeros(k))

    @property
    def is_identity(self) -> bool:
        """Whether every action is executed as wanted."""
        is_same = (self.source == np.arange(len(self.gain))) & (self.gain == 1.0) & (self.offset == 0.0)
        return bool(is_same.all())

    def is_like(self, other: "ActionMap") -> bool:
        """Whether it differs in no structure."""
        if isinstance(other, DiscreteMap):
            return False
        is_same = (self.source == other.source) & (self.gain == other.gain)
        return bool((is_same & ((self.offset != 0) == (other.offset != 0))).all())

    def original(self, actions: Matrix) -> Matrix:
        """Encoded executed actions (m, 1 + 2 k) as the original ones."""
        k = len(self.gain)
        u = np.clip(self.gain * actions[:, 1 : 1 + k][:, self.source] + self.offset, -1.0, 1.0)
        return np.column_stack([np.ones(len(u)), u, u**2])

    def executed(self, wanted: Matrix) -> Matrix:
        """(m, k) what to execute so that it acts as the wanted actions."""
        out = np.zeros_like(wanted)
        is_felt = np.abs(self.gain) >= MIN_GAIN
        out[:, self.source] = np.where(is_felt, (wanted - self.offset) / np.where(is_felt, self.gain, 1.0), 0.0)
        return np.clip(out, -1.0, 1.0)

    def neighbours(self) -> Iterator["ContinuousMap"]:
        """Maps that differ in one respect: signs of one or two dimensions, a gain, an offset, two swapped."""
        k = len(self.gain)
        for n_signs in (1, 2):
            for which in combinations(range(k), n_signs):
                yield replace(self, gain=_scaled(self.gain, list(which), -1.0))
        for j in range(k):
            for factor in (0.5, 2.0, 0.25, 0.0):
                yield replace(self, gain=_scaled(self.gain, [j], factor))
            for amount in (-0.5, 0.5, -0.25, 0.25):
                yield replace(self, offset=_shifted(self.offset, j, amount))
        for i, j in combinations(range(k), 2):
            yield replace(self, source=_swapped(self.source, i, j))


ActionMap = DiscreteMap | ContinuousMap


@dataclass(frozen=True, slots=True)
class SensorMap:
    """The original observation is (observed[source] - shift) / gain."""

    source: Rows
    gain: Floats
    shift: Floats

    @classmethod
    def identity(cls, d: int) -> "SensorMap":
        """Sensors are as they were."""
        return cls(np.arange(d), np.ones(d), np.zeros(d))

    @property
    def is_identity(self) -> bool:
        """Whether observations are as they were."""
        is_same = (self.source == np.arange(len(self.gain))) & (self.gain == 1.0) & (self.shift == 0.0)
        return bool(is_same.all())

    def is_like(self, other: "SensorMap") -> bool:
        """Whether it differs in shifts only, not in which are shifted."""
        is_same = (self.source == other.source) & (self.gain == other.gain)
        return bool((is_same & ((self.shift != 0) == (other.shift != 0))).all())

    def original(self, observed: NDArray[np.floating]) -> Matrix:
        """Observations (m, d) as the original sensors would show them."""
        return np.asarray((observed[:, self.source] - self.shift) / self.gain, np.float64)

    @property
    def log_gain(self) -> float:
        """What a changed scale adds to the cost of a step, so that shrinking everything does not pay."""
        return float(np.log(np.abs(self.gain)).sum())

    def negated(self, i: int) -> "SensorMap":
        """With observation i negated."""
        return replace(self, gain=_scaled(self.gain, [i], -1.0))

    def scaled(self, i: int, factor: float) -> "SensorMap":
        """With observation i scaled."""
        return replace(self, gain=_scaled(self.gain, [i], factor))

    def with_shift(self, i: int, shift: float) -> "SensorMap":
        """With another shift of observation i."""
        changed = self.shift.copy()
        changed[i] = shift
        return replace(self, shift=changed)

    def swapped(self, i: int, j: int) -> "SensorMap":
        """With two observations swapped."""
        return replace(self, source=_swapped(self.source, i, j))


def _scaled(values: Floats, which: list[int], factor: float) -> Floats:
    changed = values.copy()
    changed[which] *= factor
    return changed


def _shifted(values: Floats, i: int, amount: float) -> Floats:
    changed = values.copy()
    changed[i] += amount
    return changed


def _swapped(values: Rows, i: int, j: int) -> Rows:
    changed = values.copy()
    changed[[i, j]] = changed[[j, i]]
    return changed
