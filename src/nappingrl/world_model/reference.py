"""The reference: how the world moved before the change, a model in each mode with enough steps.

`misfits` says how badly residuals in the home mode fit. `residuals` judges steps in every mode, for detection; so does
`strangeness`, which makes no allowance for unusual states.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.types import Flags, Floats
from nappingrl.world_model.action_encoding import ActionEncoding
from nappingrl.world_model.bounds import rows_unclipped
from nappingrl.world_model.local_model import (
    MAX_TOLERANCE,
    USUAL_LEVERAGE,
    LocalModel,
    Matrix,
    design,
    leverages,
    write_residuals,
)
from nappingrl.world_model.local_noise import LocalNoise, find_local_noise
from nappingrl.world_model.misfits import MAX_MISFIT, Levels, Usual, misfits
from nappingrl.world_model.modes import HomeMode, find_modes, first_steps
from nappingrl.world_model.reference_stack import JudgedModes
from nappingrl.world_model.robust_fit import MAX_FEATURES, HeldOut, affine_width, fit_mode
from nappingrl.world_model.transitions import Transitions

STEPS_PER_WEIGHT = 3
MIN_STEPS = 50
"""Steps that the model of a mode needs at least."""
SPREAD_SHARE = 0.1
"""Differences between actions below this share do not matter."""
TOLERATED_SHARE = 0.02
"""Residuals below this share of the usual change do not matter to costs."""
CHUNK = 32
LEVERAGE_TOLERANCE = 0.02
"""How much larger residuals may be per multiple of the mean leverage, beyond the usual one."""
MIN_UNCLIPPED = 0.3
"""Bounds are ignored if fewer steps than this share keep off them."""
MOVED = 100.0
"""The residual, in usual ones, of a flag that takes a value that it never had in the reference."""
N_START, MIN_START, MIN_EPISODES = 60, 10, 5
"""First steps of an episode that are compared with those of others, how many of them, and how many others."""
N_TIES = 3
"""An extreme value that comes this often exactly is a bound."""


class Starts(NamedTuple):
    """Where episodes began."""

    centre: Floats
    scale: Floats

    def cost(self, observations: Matrix) -> Matrix:
        """(m, d) how unusual initial observations are."""
        return np.log1p(((observations - self.centre) / self.scale) ** 2)


class Judged(NamedTuple):
    """Steps of the reference as models judge them that were not fitted to their episodes."""

    residuals: Matrix
    """(m, d) in usual ones; 0 where a step is not judged."""
    mode: NDArray[np.int64]
    """(m,) -1 where a step is not judged; one more than there are: a step that terminates."""
    actions: Matrix
    episodes: NDArray[np.int64]
    states: Matrix
    errors: Matrix
    """(m, d) of the home mode's predictions; 0 in other modes."""
    strangeness: Floats
    """(m,) NaN where a step is not judged."""


class Reference:
    """A model of the world before the change."""

    def __init__(
        self, transitions: Transitions, encoding: ActionEncoding, bounds: tuple[Floats, Floats] | None = None
    ) -> None:
        self._encoding = encoding
        self._bounds = _find_bounds(transitions, bounds)
        self._modes = find_modes(transitions)
        self.home: HomeMode = self._modes[0]
        self.is_modelled = ~self.home.is_flag
        d = transitions.states.shape[1]
        self._clips = np.ones(d, np.bool_)
        self._clips &= self._is_unclipped(transitions.next_states).mean() > MIN_UNCLIPPED
        self._prepare_judging(transitions)
        n_needed = _n_needed(int(self.is_modelled.sum()), encoding)
        self._models: list[LocalModel | None] = []
        residuals, modes = np.zeros((transitions.n, d)), np.full(transitions.n, -1)
        errors, strangeness = np.zeros((transitions.n, d)), np.full(transitions.n, np.nan)
        usable = self._is_unclipped(transitions.next_states)
        for mode in self._modes:
            where = np.flatnonzero(mode.keeps(transitions) & usable)
            if len(where) < n_needed and mode is not self.home:
                self._models.append(None)
                continue
            like = self.model.features if self._models else None
            model, held_out = fit_mode(transitions.at(where), self.is_modelled, encoding, like)
            self._models.append(model)
            modes[where] = len(self._models) - 1
            at = where[:, None], model.features.entries
            residuals[at] = _in_usual_ones(model, held_out, transitions.at(where))
            strangeness[where] = _strangeness(model, held_out.errors, transitions.actions[where])
            if mode is self.home:
                errors[at] = held_out.errors
                self._prepare_costs(transitions.at(where), model, held_out)
        last = np.flatnonzero(transitions.terminated)
        found, is_judged = self.residuals(transitions.at(last))
        residuals[last[is_judged]], modes[last[is_judged]] = found[is_judged], len(self._modes)
        self.held_out: Judged | None = Judged(
            residuals, modes, transitions.actions, transitions.episodes, transitions.states, errors, strangeness
        )
        """Until it is no longer needed."""
        self.strangest_start = _strangest_start(strangeness, transitions.episodes)
        """(N_START,) the highest mean strangeness of the first 1, 2, ... steps of an episode (of all, where there
        are fewer); infinite: unknown."""
        n_steps = np.bincount(modes[modes >= 0], minlength=len(self._modes))
        self.main = int(n_steps[: len(self._modes)].argmax())
        """The mode with the most steps."""
        starts = transitions.states[first_steps(transitions)]
        centre = np.median(starts, axis=0)
        scale = 1.48 * np.median(np.abs(starts - centre), axis=0) + 0.02 * self.scale + 1e-9
        self.starts = Starts(centre, 2 * scale)
        self.usual_start_cost = float(self.start_costs(starts).mean())

    def _prepare_judging(self, transitions: Transitions) -> None:
        """Arrays that the kernels take."""
        is_constant = (np.ptp(transitions.states, axis=0) < 1e-6) & (np.ptp(transitions.next_states, axis=0) < 1e-6)
        self._few = np.flatnonzero(self.home.is_flag)
        self._known = [np.unique(np.round(transitions.next_states[:, i], 6)) for i in self._few]
        self._flags = np.flatnonzero(self.home.is_flag & ~is_constant)
        values = np.array([mode.values for mode in self._modes]).reshape(len(self._modes), -1)
        self._values = np.ascontiguousarray(values[:, ~is_constant[self.home.is_flag]])
        with np.errstate(invalid="ignore"):
            span = self._bounds[1] - self._bounds[0]
        margin = 1e-6 * np.where(np.isfinite(span), span, 1.0)
        self._low = np.where(self._clips, self._bounds[0] + margin, -np.inf)
        self._high = np.where(self._clips, self._bounds[1] - margin, np.inf)

    def _prepare_costs(self, kept: Transitions, model: LocalModel, held_out: HeldOut) -> None:
        self.n_steps = kept.n
        self.centre, self.scale = kept.states.mean(axis=0), kept.states.std(axis=0) + 1e-9
        self.spread = self._spread(kept)
        self.usual = 1e-9 + SPREAD_SHARE * self.spread
        noise = np.where(np.isfinite(model.noise), model.noise, 0.0)
        self.usual[model.features.entries] += noise.max(axis=0)
        errors = np.zeros_like(kept.states)
        errors[:, model.features.entries] = held_out.errors
        self._local_noise = find_local_noise(self._standardised(kept.states), errors)
        change = (kept.next_states - kept.states).std(axis=0)
        self._least = TOLERATED_SHARE * change + SPREAD_SHARE * self.spread + 1e-9
        self.tolerance = np.exp(np.log(self.tolerances(kept.states)).mean(axis=0))
        """(d,) on average."""
        at = model.features.entries
        sizes = np.ascontiguousarray(self._local_noise.sizes[:, at])
        self.usual_residuals = Usual(
            self.centre[at], self.scale[at], LocalNoise(self._local_noise.places, sizes), self._least[at],
            self.tolerance[at],
        )  # fmt: skip
        each = self.misfits(errors, kept.states)
        self.levels = Levels(float(each.mean()), float(np.quantile(_chunk_means(each), 0.98)))

    def _standardised(self, states: Matrix) -> Matrix:
        return np.asarray(((states - self.centre) / self.scale)[:, self.is_modelled])

    @classmethod
    def why_not(cls, transitions: Transitions, encoding: ActionEncoding) -> str:
        """Why these transitions are too few to fit a model, in words; empty: they are enough."""
        if transitions.n < 1:
            return "no step was recorded before the change"
        home = find_modes(transitions)[0]
        d = int((~home.is_flag).sum())
        if d == 0:
            return "no observation takes more than a few values"
        width = affine_width(d, encoding)
        if width > MAX_FEATURES:
            return f"a model would have {width} weights per observation; at most {MAX_FEATURES} are fitted"
        n_steps, n_needed = int(home.keeps(transitions).sum()), _n_needed(d, encoding)
        return "" if n_steps >= n_needed else f"{n_steps} usable steps were recorded before the change, of {n_needed}"

    @classmethod
    def can_be_fitted(cls, transitions: Transitions, encoding: ActionEncoding) -> bool:
        """Whether there are enough steps in the home mode."""
        return not cls.why_not(transitions, encoding)

    def _is_unclipped(self, observations: Matrix) -> Flags:
        return rows_unclipped(observations, *self._bounds, self._clips)

    def _spread(self, kept: Transitions) -> Floats:
        """(d,) how far apart the predictions for different actions are."""
        states = kept.states[:: max(1, kept.n // 300)]
        actions = kept.actions[:: max(1, kept.n // 300)]
        if not self._encoding.is_continuous:
            every = [np.tile(one_hot, (len(states), 1)) for one_hot in np.eye(self._encoding.size)]
            return np.asarray(np.std([self.predict(states, action) for action in every], axis=0).mean(axis=0))
        spreads = []
        for j in range(1, 1 + len(self._encoding.low)):
            ends = []
            for quantile in (0.1, 0.9):
                moved = actions.copy()
                moved[:, j] = np.quantile(kept.actions[:, j], quantile)
                ends.append(self.predict(states, moved))
            spreads.append(np.abs(ends[1] - ends[0]).mean(axis=0) / 2)
        return np.asarray(np.max(spreads, axis=0))

    # ------------------------------------------------------------------------------------------------- home mode

    @property
    def model(self) -> LocalModel:
        """The model of the home mode."""
        model = self._models[0]
        assert model is not None
        return model

    def predict(self, states: Matrix, actions: Matrix) -> Matrix:
        """(m, d) where steps with encoded actions would have led."""
        model, predicted = self.model, np.array(states, np.float64)
        predicted[:, model.features.entries] += design(model.features, states, actions) @ model.weights
        return predicted

    def reach(self, states: Matrix) -> Floats:
        """(m,) tolerance of residuals: 1 where the reference knows its way, more in states far from it."""
        leverage = leverages(self.model.features, self.model.inverse_gram, states)
        return np.asarray(1 + LEVERAGE_TOLERANCE * np.maximum(leverage - USUAL_LEVERAGE, 0.0))

    def tolerances(self, states: Matrix) -> Matrix:
        """(m, d) residuals that are usual in these states, or too small to matter."""
        return np.asarray(self._least + self._local_noise.at(self._standardised(states)))

    def misfits(self, residuals: Matrix, states: Matrix) -> Floats:
        """(m,) how badly residuals (m, d) fit in these states, in nats."""
        residuals, states = (np.ascontiguousarray(part, np.float64) for part in (residuals, states))
        return np.asarray(misfits(self.usual_residuals, self.model.features.entries, residuals, states))

    def start_costs(self, observations: Matrix) -> Floats:
        """(m,) how unusual initial observations are."""
        return np.asarray(self.starts.cost(observations)[:, self.is_modelled].sum(axis=1))

    def corrected(self, steps: Transitions, ridge: float, n_needed: int) -> Matrix | None:
        """The home mode's weights, corrected by steps of another world; None: fewer than `n_needed` are usable."""
        steps = steps.at(self.home.keeps(steps) & self._is_unclipped(steps.next_states))
        if steps.n < n_needed:
            return None
        model = self.model
        x = design(model.features, steps.states, steps.actions)
        residuals = (steps.next_states - steps.states)[:, model.features.entries] - x @ model.weights
        return np.asarray(model.weights + np.linalg.solve(x.T @ x + ridge * np.eye(x.shape[1]), x.T @ residuals))

    # ------------------------------------------------------------------------------------------------- all modes

    @property
    def judged_modes(self) -> JudgedModes:
        """What judges single steps, for a `ReferenceStack`."""
        return JudgedModes(
            self._flags, self._values, self._low, self._high, self._models, self.model.features.entries, self.main,
            self.usual_residuals, self.levels,
        )  # fmt: skip

    @property
    def has_flags(self) -> bool:
        """Whether there are observations with few values."""
        return len(self._few) > 0

    def judge_flags(self, state: Floats, next_state: Floats, out: Floats) -> None:
        """Write residuals of flags that take a new value; one that only stays there says no more."""
        for k in np.flatnonzero(np.abs((next_state - state)[self._few]) > 1e-6):
            i = self._few[k]
            out[i] = 0.0 if np.abs(self._known[k] - next_state[i]).min() < 1e-5 else MOVED

    def residuals(self, steps: Transitions, weights: Matrix | None = None) -> tuple[Matrix, Flags]:
        """(m, d) residuals in usual ones, and which steps are judged: those within a modelled mode and off all bounds.

        `weights` take the place of the home mode's.
        """
        out, is_judged = np.zeros(steps.states.shape), np.zeros(steps.n, np.bool_)
        usable = self._is_unclipped(steps.next_states)
        for mode, model in zip(self._modes, self._models, strict=True):
            if model is None or not usable.any():
                continue
            where = np.flatnonzero(usable & mode.contains(steps.states) & mode.contains(steps.next_states))
            if len(where):
                found = np.empty((len(where), len(model.features.entries)))
                own = weights if weights is not None and mode is self.home else model.weights
                at = steps.at(where)
                write_residuals(model, own, at.states, at.actions, at.next_states, found)
                out[where[:, None], model.features.entries] = found
                is_judged[where] = True
        return out, is_judged

    def strangeness(self, steps: Transitions) -> Floats:
        """(m,) nats per observation by which steps of any modelled mode miss their predictions; NaN: not judged."""
        out, usable = np.full(steps.n, np.nan), self._is_unclipped(steps.next_states)
        for mode, model in zip(self._modes, self._models, strict=True):
            where = np.flatnonzero(usable & mode.keeps(steps))
            if model is not None and len(where):
                at = steps.at(where)
                change = (at.next_states - at.states)[:, model.features.entries]
                errors = change - design(model.features, at.states, at.actions) @ model.weights
                out[where] = _strangeness(model, errors, at.actions)
        return out


def _chunk_means(values: Floats) -> Floats:
    """The means of stretches of about `CHUNK` values; the first ones are longer by one value, as in `array_split`."""
    n_chunks = max(1, len(values) // CHUNK)
    size, n_longer = divmod(len(values), n_chunks)
    longer, others = np.split(values, [n_longer * (size + 1)])
    return np.concatenate([longer.reshape(-1, size + 1).mean(axis=1), others.reshape(-1, size).mean(axis=1)])


@kernel()
def _strangest_start(strangeness: Floats, episodes: NDArray[np.int64]) -> Floats:
    highest, means, n_episodes, first = np.full(N_START, -np.inf), np.zeros(N_START), 0, 0
    while first < len(episodes):
        total, n_judged, last = 0.0, 0, first
        while last < len(episodes) and episodes[last] == episodes[first]:
            if last - first < N_START:
                if not np.isnan(strangeness[last]):
                    total += strangeness[last]
                    n_judged += 1
                means[last - first :] = total / max(n_judged, 1)
            last += 1
        if n_judged >= MIN_START:
            n_episodes += 1
            highest = np.maximum(highest, means)
        first = last
    return highest if n_episodes >= MIN_EPISODES else np.full(N_START, np.inf)


def _strangeness(model: LocalModel, errors: Matrix, actions: Matrix) -> Floats:
    rows = actions.argmax(axis=1) if model.features.n_actions else np.zeros(len(actions), np.int64)
    return np.asarray(np.minimum(np.log1p((errors / model.noise[rows]) ** 2), MAX_MISFIT).mean(axis=1))


def _n_needed(n_entries: int, encoding: ActionEncoding) -> int:
    return max(MIN_STEPS, STEPS_PER_WEIGHT * affine_width(n_entries, encoding))


def _in_usual_ones(model: LocalModel, held_out: HeldOut, steps: Transitions) -> Matrix:
    excess = np.maximum(held_out.leverages - USUAL_LEVERAGE, 0.0)[:, None]
    rows = steps.actions.argmax(axis=1) if model.features.n_actions else np.zeros(steps.n, np.int64)
    return np.asarray(held_out.errors / (model.noise[rows] * np.minimum(1 + model.bend * excess, MAX_TOLERANCE)))


def _find_bounds(transitions: Transitions, known: tuple[Floats, Floats] | None) -> tuple[Floats, Floats]:
    """Bounds that clip observations: those of the space, else extreme values that come several times exactly."""
    states = transitions.next_states
    low, high = states.min(axis=0), states.max(axis=0)
    low = np.where((states == low).sum(axis=0) >= N_TIES, low, -np.inf)
    high = np.where((states == high).sum(axis=0) >= N_TIES, high, np.inf)
    if known is not None:
        low, high = (np.where(np.isfinite(a), a, b) for a, b in zip(known, (low, high), strict=True))
    return low, high
