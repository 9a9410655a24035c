"""Fit the model of one mode, so that outliers and contacts do not bend it; choose its features by held-out error."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl.types import Floats
from nappingrl.world_model.action_encoding import ActionEncoding
from nappingrl.world_model.local_model import (
    N_WAVES,
    USUAL_LEVERAGE,
    Features,
    LocalModel,
    Matrix,
    design,
    leverages,
    n_affine,
    n_features,
)
from nappingrl.world_model.transitions import Transitions

RIDGE = 1e-2
N_ROUNDS = 3
"""Rounds of reweighting; Cauchy weights settle quickly."""
N_FOLDS = 4
MAX_STEPS, MAX_CHOICE_STEPS = 3000, 1500
"""Steps that a model is fitted to, and by which its features are chosen; more hardly change it."""
MAX_FEATURES = 400
STEPS_PER_FEATURE = 4
MIN_ACTION_STEPS = 8
"""Steps with a discrete action below which its effect is unknown."""
LEAST_NOISE = 5e-3
"""Residuals below this share of an observation's usual change do not matter."""
LEAST_BEND = 0.02
N_LEVELS, MIN_LEVEL_STEPS = 4, 10
"""Levels of leverage at which the growth of errors is measured, and the steps that each needs."""
LEAST_GAIN = 0.05
"""Features join if they lower the logarithm of the held-out error by this much on average."""


class HeldOut(NamedTuple):
    """The steps of a mode as models predict them that were not fitted to their episodes."""

    errors: Matrix
    """(m, q)"""
    leverages: Floats


def _smallest(entries: NDArray[np.int64], encoding: ActionEncoding) -> Features:
    """Affine in observations and action; not scaled yet."""
    empty, no_waves = np.zeros(0), np.zeros((0, len(entries) + 1))
    return Features(
        entries, empty, empty, empty, empty, encoding.n_actions, encoding.size, False, False, False, no_waves
    )


def affine_width(n_entries: int, encoding: ActionEncoding) -> int:
    """The number of features of the smallest model."""
    return int(n_features(_smallest(np.zeros(n_entries, np.int64), encoding)))


def fit_mode(
    transitions: Transitions, is_modelled: NDArray[np.bool_], encoding: ActionEncoding, like: Features | None = None
) -> tuple[LocalModel, HeldOut]:
    """The model of these transitions, which all stay in one mode, and their held-out errors.

    `like`: the features of another mode, which need not be chosen anew.
    """
    entries = np.flatnonzero(is_modelled)
    change = (transitions.next_states - transitions.states)[:, entries]
    folds = _folds(transitions)
    is_fitted = np.arange(transitions.n) % max(1, -(-transitions.n // MAX_STEPS)) == 0
    if like is not None and n_features(like) * STEPS_PER_FEATURE <= is_fitted.sum():
        features = _rescaled(like, transitions.states[:, entries])
    else:
        features = _choose(transitions.at(is_fitted), change[is_fitted], folds[is_fitted], encoding, entries)
    x = design(features, transitions.states, transitions.actions)
    weights, trust = robust_fit(x[is_fitted], change[is_fitted])
    errors = np.empty_like(change)
    for fold in range(N_FOLDS):
        is_other = folds[is_fitted] != fold
        fitted = np.flatnonzero(is_fitted)[is_other]
        held = folds == fold
        errors[held] = change[held] - x[held] @ _solve(x[fitted], change[fitted], trust[is_other])
    inverse_gram = _inverse_gram(features, transitions)
    held_out = HeldOut(errors, leverages(features, inverse_gram, transitions.states))
    noise = _noise(errors, transitions.actions, encoding) + LEAST_NOISE * change.std(axis=0) + 1e-9
    actions = transitions.actions.argmax(axis=1) if encoding.n_actions else np.zeros(transitions.n, np.int64)
    first = n_affine(features)
    outside = (x[:, first:] @ weights[first:]).std(axis=0) / noise
    return LocalModel(features, weights, noise, _bend(held_out, noise[actions]), outside, inverse_gram), held_out


def _folds(transitions: Transitions) -> NDArray[np.int64]:
    """(m,) which part of the cross-validation a step belongs to: that of its episode, if there are enough of them."""
    numbers = np.unique(transitions.episodes, return_inverse=True)[1]
    if numbers[-1] + 1 < N_FOLDS:
        numbers = np.arange(transitions.n) * 2 * N_FOLDS // transitions.n
    return np.asarray(numbers % N_FOLDS)


def usual_size(errors: Matrix) -> Floats:
    """(q,) the usual size of errors, whose tails may be heavy."""
    middle, outer = np.quantile(np.abs(errors), [0.5, 0.9], axis=0)
    return np.asarray(np.maximum(1.48 * middle, outer / 1.645))


def _noise(errors: Matrix, actions: Matrix, encoding: ActionEncoding) -> Matrix:
    """(actions, q) the usual size of errors by discrete action, infinite where it is unknown; else (1, q)."""
    of_all = usual_size(errors)[None]
    if not encoding.n_actions:
        return of_all
    noise = np.tile(of_all, (encoding.n_actions, 1))
    for action in range(encoding.n_actions):
        its = errors[actions[:, action] > 0]
        if len(its) < MIN_ACTION_STEPS:
            noise[action] = np.inf
        else:
            noise[action] = np.maximum(noise[action] if len(its) < 100 else 0.3 * noise[action], usual_size(its))
    return noise


def robust_fit(x: Matrix, y: Matrix) -> tuple[Matrix, Floats]:
    """Weights (features, outputs) by ridge regression, and how much each step counts: outlying ones little."""
    trust = np.ones(len(x))
    weights = _solve(x, y, trust)
    for _ in range(N_ROUNDS):
        errors = y - x @ weights
        scale = usual_size(errors) + 1e-9 + 1e-6 * y.std(axis=0)
        trust = 1 / (1 + ((errors / (2 * scale)) ** 2).mean(axis=1))
        weights = _solve(x, y, trust)
    return weights, trust


def _solve(x: Matrix, y: Matrix, trust: Floats) -> Matrix:
    weighted = x * trust[:, None]
    penalty = RIDGE * trust.mean() * np.eye(x.shape[1])
    return np.asarray(np.linalg.solve(weighted.T @ x + penalty, weighted.T @ y))


def _candidates(transitions: Transitions, entries: NDArray[np.int64], encoding: ActionEncoding) -> list[Features]:
    """Sets of features that may be fitted, the smallest first."""
    base = _rescaled(_smallest(entries, encoding), transitions.states[:, entries])
    more = [
        base._replace(is_per_action=per_action, has_curves=curves, has_products=products)
        for per_action, curves, products in (
            (True, False, False), (False, True, False), (True, True, False), (True, False, True), (True, True, True),
        )
    ]  # fmt: skip
    more += [features._replace(waves=_waves(len(entries))) for features in more[-2:]]
    limit = min(MAX_FEATURES, transitions.n // STEPS_PER_FEATURE)
    return [base, *(features for features in more if n_features(features) <= limit)]


def _rescaled(features: Features, states: Matrix) -> Features:
    """The same features of other states (m, q)."""
    centre, scale = states.mean(axis=0), states.std(axis=0) + 1e-9
    z = (states - centre) / scale
    return features._replace(centre=centre, scale=scale, low=z.min(axis=0), high=z.max(axis=0))


def _waves(n_entries: int) -> Matrix:
    """Directions and phases, the same for every fit."""
    random = np.random.Generator(np.random.Philox(n_entries))
    directions = random.normal(size=(N_WAVES, n_entries)) / np.sqrt(n_entries)
    return np.column_stack([directions, random.uniform(0, 2 * np.pi, N_WAVES)])


def _choose(
    transitions: Transitions, change: Matrix, folds: NDArray[np.int64], encoding: ActionEncoding,
    entries: NDArray[np.int64],
) -> Features:  # fmt: skip
    """The smallest set of features that no larger one clearly beats on the first fold."""
    candidates = _candidates(transitions, entries, encoding)
    few = slice(None, None, -(-transitions.n // MAX_CHOICE_STEPS))
    transitions, change, folds = transitions.at(few), change[few], folds[few]
    trust = robust_fit(design(candidates[0], transitions.states, transitions.actions), change)[1]
    fitted, judged, deviation = folds != 0, folds == 0, change.std(axis=0) + 1e-12
    best, least = candidates[0], np.inf
    for features in candidates:
        x = design(features, transitions.states, transitions.actions)
        weights = _solve(x[fitted], change[fitted], trust[fitted])
        errors = np.abs(change[judged] - x[judged] @ weights) / deviation
        size = np.median(errors, axis=0) + np.quantile(errors, 0.95, axis=0) / 4
        error = float(np.log(size + 1e-3).mean())
        if error < least - LEAST_GAIN:
            best, least = features, error
        if size.max() < LEAST_NOISE:
            break
    return best


def _inverse_gram(features: Features, transitions: Transitions) -> Matrix:
    z = (transitions.states[:, features.entries] - features.centre) / features.scale
    affine = np.column_stack([z, np.ones(len(z))])
    q = affine.shape[1]
    return np.asarray(np.linalg.inv((affine.T @ affine + RIDGE * np.eye(q)) / len(z)) / q)


def _bend(held_out: HeldOut, noise: Matrix) -> Floats:
    """(q,) by how much errors grow with the leverage; `noise` (m, q): of each step."""
    is_far = (held_out.leverages > USUAL_LEVERAGE) & np.isfinite(noise[:, 0])
    order = np.flatnonzero(is_far)[np.argsort(held_out.leverages[is_far], kind="stable")]
    bend = np.full(noise.shape[1], LEAST_BEND if len(order) >= N_LEVELS * MIN_LEVEL_STEPS else 5 * LEAST_BEND)
    for level in np.array_split(order, N_LEVELS):
        if len(level) >= MIN_LEVEL_STEPS:
            growth = np.quantile(np.abs(held_out.errors[level] / noise[level]), 0.9, axis=0) / 1.645 - 1
            bend = np.maximum(bend, growth / (held_out.leverages[level].mean() - USUAL_LEVERAGE))
    return bend
