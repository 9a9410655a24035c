"""Maps between the changed world and the original one: of actions, of observations, and both with a delay."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from nappingrl.snapshot import Expected, Sizes
from nappingrl.types import Floats, Rows

Matrix = NDArray[np.float64]
MIN_GAIN = 0.05
"""An action dimension with a smaller gain has no effect."""
MAX_GAIN = 1e3
MAX_DELAY = 3
_MAX_SHIFT = 1e12


@dataclass(frozen=True)
class DiscreteMap:
    """Each executed action acts as an original one."""

    acts_as: Annotated[Rows, Expected(("n_actions",), low=0, below="n_actions")]
    """(n_actions,) the original action that an executed one acts as."""
    instead: Annotated[Rows, Expected(("n_actions",), low=0, below="n_actions")]
    """(n_actions,) what to execute instead of a wanted action."""

    @classmethod
    def identity(cls, n_actions: int) -> "DiscreteMap":
        """Actions are as they were."""
        return cls(np.arange(n_actions), np.arange(n_actions))

    @classmethod
    def of(cls, acts_as: Rows) -> "DiscreteMap":
        """The map with its inverse; a wanted action that nothing acts as stays itself."""
        instead = np.arange(len(acts_as))
        for wanted in range(len(acts_as)):
            same = np.flatnonzero(acts_as == wanted)
            if len(same) and acts_as[wanted] != wanted:
                instead[wanted] = same[0]
        return cls(np.asarray(acts_as, np.int64), instead)

    @cached_property
    def is_identity(self) -> bool:
        """Whether every action acts as itself."""
        return self.n_changes == 0

    @property
    def n_changes(self) -> int:
        """How many actions act as others."""
        return int((self.acts_as != np.arange(len(self.acts_as))).sum())

    @property
    def is_permutation(self) -> bool:
        """Whether no original action was lost."""
        return len(np.unique(self.acts_as)) == len(self.acts_as)

    def original(self, actions: Matrix) -> Matrix:
        """One-hot executed actions (m, n_actions) as the original ones."""
        out = np.zeros_like(actions)
        out[np.arange(len(actions)), self.acts_as[actions.argmax(axis=1)]] = 1.0
        return out


@dataclass(frozen=True)
class ContinuousMap:
    """Executed u acts as clip(gain * u[source] + offset), all scaled to [-1, 1]."""

    source: Annotated[Rows, Expected(("k",), low=0, below="k")]
    gain: Annotated[Floats, Expected(("k",), -MAX_GAIN, MAX_GAIN)]
    offset: Annotated[Floats, Expected(("k",), -1.0, 1.0)]

    def check(self, sizes: Sizes) -> None:
        """Raise if two dimensions have the same source."""
        _check_source(self.source)

    @classmethod
    def identity(cls, k: int) -> "ContinuousMap":
        """Actions are as they were."""
        return cls(np.arange(k), np.ones(k), np.zeros(k))

    @cached_property
    def is_identity(self) -> bool:
        """Whether every action is executed as wanted."""
        return self.n_changes == 0 and self.n_parameters == 0

    @property
    def n_changes(self) -> int:
        """How many dimensions are reversed or moved."""
        return int((self.source != np.arange(len(self.gain))).sum() + (self.gain < 0).sum())

    @property
    def n_parameters(self) -> int:
        """How many gains and offsets had to be estimated."""
        return int((np.abs(self.gain) != 1.0).sum() + (self.offset != 0.0).sum())

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

    def with_dimension(self, j: int, gain: float, offset: float) -> "ContinuousMap":
        """With another gain and offset of dimension j."""
        return replace(self, gain=_with(self.gain, j, gain), offset=_with(self.offset, j, offset))


ActionMap = DiscreteMap | ContinuousMap


@dataclass(frozen=True)
class SensorMap:
    """The original observation is (observed[source] - shift) / gain."""

    source: Annotated[Rows, Expected(("d",), low=0, below="d")]
    gain: Annotated[Floats, Expected(("d",), -MAX_GAIN, MAX_GAIN)]
    shift: Annotated[Floats, Expected(("d",), -_MAX_SHIFT, _MAX_SHIFT)]

    def check(self, sizes: Sizes) -> None:
        """Raise if it cannot be inverted."""
        _check_source(self.source)
        if (np.abs(self.gain) < 1 / MAX_GAIN).any():
            raise ValueError("an observation that is scaled by almost 0")

    @classmethod
    def identity(cls, d: int) -> "SensorMap":
        """Sensors are as they were."""
        return cls(np.arange(d), np.ones(d), np.zeros(d))

    @cached_property
    def is_identity(self) -> bool:
        """Whether observations are as they were."""
        return self.n_changes == 0 and self.n_parameters == 0

    @property
    def n_changes(self) -> int:
        """How many observations are negated or moved."""
        return int((self.source != np.arange(len(self.gain))).sum() + (self.gain < 0).sum())

    @property
    def n_parameters(self) -> int:
        """How many scales and shifts had to be estimated."""
        return int((np.abs(self.gain) != 1.0).sum() + (self.shift != 0.0).sum())

    @property
    def is_permutation(self) -> bool:
        """Whether observations only changed places and signs."""
        return self.n_parameters == 0

    def original(self, observed: NDArray[np.floating]) -> Matrix:
        """Observations (m, d) as the original sensors would show them."""
        return np.asarray((observed[:, self.source] - self.shift) / self.gain, np.float64)

    def observed(self, original: NDArray[np.floating]) -> Matrix:
        """Original observations (m, d) as the changed sensors show them."""
        out = np.empty(original.shape)
        out[:, self.source] = original * self.gain + self.shift
        return out

    def negated(self, i: int) -> "SensorMap":
        """With observation i negated."""
        return self.with_entry(i, -self.gain[i], self.shift[i])

    def with_entry(self, i: int, gain: float, shift: float) -> "SensorMap":
        """With another scale and shift of observation i."""
        return replace(self, gain=_with(self.gain, i, gain), shift=_with(self.shift, i, shift))

    def swapped(self, i: int, j: int) -> "SensorMap":
        """With two observations swapped."""
        source = self.source.copy()
        source[[i, j]] = source[[j, i]]
        return replace(self, source=source)


@dataclass(frozen=True)
class Grounding:
    """How the changed world relates to the original one."""

    sensors: SensorMap
    actions: ActionMap
    delay: Annotated[int, Expected(low=0, high=MAX_DELAY)] = 0
    """Steps after which an action takes effect."""

    @cached_property
    def is_identity(self) -> bool:
        """Whether nothing has to be translated."""
        return self.sensors.is_identity and self.actions.is_identity and not self.delay

    @property
    def signature(self) -> str:
        """Everything but the estimated numbers: groundings with the same one are the same hypothesis."""
        sensors, actions = self.sensors, self.actions
        parts = [sensors.source, np.sign(sensors.gain), np.abs(sensors.gain) != 1, sensors.shift != 0]
        parts += [actions.acts_as] if isinstance(actions, DiscreteMap) else [actions.source, np.sign(actions.gain)]
        return f"{self.delay} {[part.astype(int).tolist() for part in parts]}"

    def is_same(self, other: "Grounding") -> bool:
        """Whether it translates in exactly the same way."""
        return self.delay == other.delay and all(
            np.array_equal(getattr(a, field), getattr(b, field))
            for a, b in ((self.sensors, other.sensors), (self.actions, other.actions))
            for field in a.__dataclass_fields__
        )


def _with(values: Floats, i: int, value: float) -> Floats:
    changed = values.copy()
    changed[i] = value
    return changed


def _check_source(source: Rows) -> None:
    if len(np.unique(source)) < len(source):
        raise ValueError("two entries with the same source")
