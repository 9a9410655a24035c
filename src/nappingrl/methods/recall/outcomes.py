"""Outcomes of tried actions, and what they say about every action in another state."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from nappingrl.snapshot import Expected
from nappingrl.types import Floats

N_PARTS = 3
"""Parts of an action's name that count; further ones belong to the last."""


@dataclass(frozen=True, slots=True)
class RecallConfig:
    """Constants of the estimate."""

    max_steps: int = 20
    """Episodes may have this many steps: every action of an episode is credited with all that came after it."""
    max_outcomes: int = 512
    """Outcomes that are remembered per context; the oldest are forgotten."""
    prior_weight: float = 1.0
    """What the agent's own preference counts, in outcomes."""
    width: float = 0.7
    """Width of the kernel over model states, in median squared distances to the remembered ones."""
    shared: tuple[float, ...] = (0.0, 0.1, 0.5, 1.0)
    """Weight of an outcome by the number of leading parts that two names share."""
    n_starts: int = 10
    """Latest episodes over which a forecast is the mean."""


CONFIG = RecallConfig()
Names = NDArray[np.uint32]
"""Checksums of the parts of names, (..., N_PARTS)."""


def split_name(name: str) -> Names:
    """The parts of a name, separated by commas, from the general to the particular."""
    parts = name.split(", ", N_PARTS - 1)
    return np.array([crc32(part.encode()) for part in parts] + [0] * (N_PARTS - len(parts)), np.uint32)


@dataclass(slots=True)
class Outcomes:
    """What was tried in one context, in the order in which it ended."""

    observations: Annotated[NDArray[np.float32], Expected(("k", "d"))]
    actions: Annotated[NDArray[np.int64], Expected(("k",), low=0, below="n_actions")]
    returns: Annotated[NDArray[np.float64], Expected(("k",))]
    """From the action to the end of the episode; in an unfinished episode, the reward of the step."""
    is_first: Annotated[NDArray[np.bool_], Expected(("k",))]
    """Whether an episode began there."""

    @classmethod
    def none(cls, d: int) -> "Outcomes":
        """Nothing was tried yet."""
        return cls(np.zeros((0, d), np.float32), np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.bool_))

    @property
    def n(self) -> int:
        """How many there are."""
        return len(self.actions)

    def joined(self, other: "Outcomes") -> "Outcomes":
        """These and later ones, as many of the latest as are kept."""
        return Outcomes(*map(_latest, self._arrays(), other._arrays()))

    def _arrays(self) -> tuple[NDArray[Any], ...]:
        return self.observations, self.actions, self.returns, self.is_first


@dataclass(slots=True)
class Recollection:
    """Outcomes with what follows from them: model states and names, which are not saved."""

    outcomes: Outcomes
    embed: Callable[[NDArray[np.float32]], NDArray[np.float32]]
    name: Callable[[NDArray[np.float32], int], str]
    model_states: NDArray[np.float32] = field(init=False)
    names: Names = field(init=False)

    def __post_init__(self) -> None:
        o = self.outcomes
        self.model_states = self.embed(o.observations)
        named = [split_name(self.name(*step)) for step in zip(o.observations, o.actions.tolist(), strict=True)]
        self.names = np.array(named, np.uint32).reshape(-1, N_PARTS)

    def add(self, outcomes: Outcomes) -> None:
        """Remember a finished episode."""
        new = Recollection(outcomes, self.embed, self.name)
        self.outcomes = self.outcomes.joined(outcomes)
        self.model_states = _latest(self.model_states, new.model_states)
        self.names = _latest(self.names, new.names)

    def values(self, model_state: NDArray[np.float32], names: Names, prior: Floats) -> Floats:
        """(k,) what k named actions should return: the prior, corrected by outcomes of like actions in like states."""
        if not self.outcomes.n:
            return prior
        weights = _shared(names, self.names) * self._closeness(model_state)
        c = CONFIG.prior_weight
        values: Floats = (c * prior + weights @ self.outcomes.returns) / (c + weights.sum(axis=1))
        return values

    def _closeness(self, model_state: NDArray[np.float32]) -> Floats:
        """(n,) how much the remembered model states are like this one, 0 to 1."""
        distances = ((self.model_states.astype(np.float64) - model_state) ** 2).sum(axis=1)
        width = CONFIG.width * float(np.median(distances))
        return np.asarray(np.exp(-distances / width) if width > 0 else distances == 0, np.float64)


def _latest(old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
    """Both, as many of the latest rows as are kept."""
    return np.concatenate([old, new])[-CONFIG.max_outcomes :]


def _shared(names: Names, others: Names) -> Floats:
    """(k, n) how much names have in common, 0 to 1."""
    n_leading = np.cumprod(names[:, None] == others[None], axis=2).sum(axis=2)
    return np.asarray(np.array(CONFIG.shared)[n_leading])


def prior_values(preferences: NDArray[np.float32], low: float, usual: float) -> Floats:
    """What actions should return by the agent's preferences alone: the usual return for the best, less for others.

    Preferences may be logits or Q values: their spread is the unit.
    """
    gaps = preferences.max() - preferences.astype(np.float64)
    spread = float(gaps.std())
    closeness = np.exp(-gaps / spread) if spread > 0 else np.ones(len(gaps))
    values: Floats = low + max(usual - low, 1e-9) * closeness
    return values
