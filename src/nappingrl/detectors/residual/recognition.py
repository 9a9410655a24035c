"""Recognition: is a changed world one that was met before, and is the original one back?"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nappingrl.detectors.residual.config import ResidualConfig
from nappingrl.snapshot import Expected, Sizes, flatten, restore_arrays, unflatten
from nappingrl.types import Flags, Rows, arrays_of
from nappingrl.world_model.action_encoding import ActionEncoding
from nappingrl.world_model.reference import Judged, Reference
from nappingrl.world_model.transitions import Transitions

MAX_WEIGHT = 1e15
STRONG = 0.5
"""Scaled continuous actions beyond this are strong."""
MAX_JOINT = 4
"""With more action dimensions, only the strongest one tells the kind of an action."""
N_JUDGED_EACH, JUDGED_EVERY = 64, 16
"""A return is judged after each of the first 64 calm steps, then after every 16th."""
MAX_DOUBT = 10
"""Each wrong return doubles the evidence that the next one needs, at most this often."""


@dataclass(slots=True)
class KnownContext:
    """How the world moves in a context that was left."""

    weights: Annotated[NDArray[np.float64], Expected(("f", "q"), -MAX_WEIGHT, MAX_WEIGHT)]
    """Of the model of the home mode."""
    level: Annotated[float, Expected(low=0)]
    """The usual surprise of its own steps."""


@dataclass(slots=True)
class KnownContexts:
    """The contexts that one trial has left, by number."""

    known: dict[int, KnownContext] = field(default_factory=dict)

    def check(self, sizes: Sizes) -> None:
        """Raise if there are too many."""
        if len(self.known) > sizes["max_contexts"]:
            raise ValueError(f"{len(self.known)} contexts; at most {sizes['max_contexts']} are remembered")


class Recognition:
    """Identifies contexts by their models, and the way back by a run of calm steps."""

    saved: ClassVar[Mapping[str, Expected]] = {
        "n_known": Expected(low=0), "calm": Expected(low=0), "rate": Expected(low=0, high=1),
        "usual": Expected(low=0), "n_hasty": Expected(low=0),
    }  # fmt: skip

    def __init__(self, n: int, encoding: ActionEncoding, config: ResidualConfig) -> None:
        self.n, self.config = n, config
        self._contexts = [KnownContexts() for _ in range(n)]
        self.n_known = np.zeros(n, np.int64)
        """Contexts met so far."""
        self._n_actions, self._k = encoding.n_actions, len(encoding.low)
        n_kinds = encoding.n_actions or (3**self._k if self._k <= MAX_JOINT else 2 * self._k + 1)
        self.calm, self.rate = np.zeros((n, n_kinds), np.int64), np.zeros((n, n_kinds))
        """By kind of executed action: judged steps since the latest surprise, the rate of surprises until then."""
        self.usual = np.zeros(n)
        """The median surprise of a step of the original world."""
        self.n_hasty = np.zeros(n, np.int64)
        """Times that the original world seemed to be back and was not."""

    def start(self, rows: Rows) -> None:
        """No context is known."""
        self.n_known[rows] = self.n_hasty[rows] = self.calm[rows] = 0
        self.rate[rows] = 0.0
        for row in rows.tolist():
            self._contexts[row] = KnownContexts()

    def calibrate(self, row: int, held_out: Judged) -> None:
        """Note what is usual in the original world."""
        self.usual[row] = np.median(np.abs(held_out.residuals).max(axis=1))

    def count(self, rows: Rows, actions: NDArray[np.float64], is_beyond: Flags, is_judged: Flags) -> None:
        """Count a step with encoded actions (m, size)."""
        columns = self._kinds(actions)
        self.calm[rows, columns] += is_judged & ~is_beyond
        if is_beyond.any():
            surprised, column, left = rows[is_beyond], columns[is_beyond], 1 - 1 / self.config.rate_window
            self.rate[surprised] *= left ** self.calm[surprised]
            self.rate[surprised, column] = 1 - left * (1 - self.rate[surprised, column])
            self.calm[surprised] = 0

    def _kinds(self, actions: NDArray[np.float64]) -> Rows:
        """(m,) the kinds of encoded actions: each discrete one, or which dimensions are strongly positive or negative.

        An engine that is off behaves in the changed world as before, so that such steps do not speak for a return.
        """
        if self._n_actions:
            return np.asarray(actions.argmax(axis=1))
        scaled = actions[:, 1 : 1 + self._k]
        levels = (scaled > STRONG).astype(np.int64) - (scaled < -STRONG) + 1
        if self._k <= MAX_JOINT:
            return np.asarray(levels @ 3 ** np.arange(self._k))
        strongest = np.abs(scaled).argmax(axis=1)
        level = levels[np.arange(len(levels)), strongest]
        return np.where(level == 1, 0, 1 + 2 * strongest + level // 2)

    def recognise(self, row: int, reference: Reference, latest: Transitions) -> int:
        """The known context that explains the latest steps; 0: none does."""
        config = self.config
        steps = latest.at(slice(-config.n_recognition_steps, None))
        original = _median_surprise(reference, steps)
        explained: dict[int, float] = {}
        for number, context in self._contexts[row].known.items():
            surprise = _median_surprise(reference, steps, context.weights)
            limit = max(config.max_relative_surprise * original, config.max_own_surprise * context.level)
            if surprise < min(limit, original):
                explained[number] = surprise
        return min(explained, key=lambda number: explained[number], default=0)

    def new_context(self, row: int) -> int:
        """The number of a context that was never met."""
        self.n_known[row] += 1
        return int(self.n_known[row])

    def is_back(self, rows: Rows) -> Flags:
        """Whether the changed world would hardly have stayed calm for so long, given the actions executed since.

        After many calm steps only now and then: where they do not fit the original world, the next one hardly will.
        """
        log_probability = (self.calm[rows] * np.log1p(-np.clip(self.rate[rows], 0.0, 0.95))).sum(axis=1)
        doubt = 2.0 ** np.minimum(self.n_hasty[rows], MAX_DOUBT)
        n_calm = self.calm[rows].sum(axis=1)
        is_due = (n_calm <= N_JUDGED_EACH) | (n_calm % JUDGED_EVERY == 0)
        return np.asarray(is_due & (log_probability < doubt * np.log(self.config.max_calm_probability)))

    def n_calm(self, row: int) -> int:
        """How many of the latest judged steps were not surprising."""
        return int(self.calm[row].sum())

    def fits_original(self, row: int, reference: Reference, current: Transitions) -> bool:
        """Whether the calm steps are also nearer to the original world's usual ones than to the changed world's."""
        n = max(1, self.n_calm(row))
        calm, usual = _median_surprise(reference, current.at(slice(-n, None))), float(self.usual[row])
        changed = _median_surprise(reference, current.at(slice(0, max(0, current.n - n))))
        return calm <= max(self.config.max_calm_surprise * usual, float(np.sqrt(usual * changed)))

    def learn(self, row: int, context: int, reference: Reference, transitions: Transitions) -> None:
        """Model a context that is left, so that it can be recognised."""
        weights = reference.corrected(transitions, self.config.context_ridge, self.config.n_recognition_steps)
        if weights is not None:
            known = self._contexts[row].known
            known[context] = KnownContext(weights, _median_surprise(reference, transitions, weights))
            for old in sorted(known)[: -self.config.max_contexts]:
                del known[old]

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything learned, as named arrays."""
        state = arrays_of(self)
        for row, contexts in enumerate(self._contexts):
            state |= flatten(contexts, f"contexts.{row}")
        return state

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from what `state` returned."""
        restore_arrays(self, state)
        sizes = {"max_contexts": self.config.max_contexts}
        self._contexts = [unflatten(KnownContexts, state, f"contexts.{row}", sizes) for row in range(self.n)]

    def fit(self, row: int, reference: Reference | None) -> None:
        """Drop saved contexts whose weights are not those of this reference."""
        known = self._contexts[row].known
        shape = None if reference is None else reference.model.weights.shape
        self._contexts[row].known = {n: context for n, context in known.items() if context.weights.shape == shape}


def _median_surprise(reference: Reference, steps: Transitions, weights: NDArray[np.float64] | None = None) -> float:
    """The median surprise of the judged steps of the home mode."""
    steps = steps.at(reference.home.keeps(steps))
    residuals, is_judged = reference.residuals(steps, weights)
    return float(np.median(np.abs(residuals[is_judged]).max(axis=1))) if is_judged.any() else 0.0
