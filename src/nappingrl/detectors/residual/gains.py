"""Kernels of `Exchange`: by how many nats steps fit better under other actions, and how that adds up."""

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.types import Floats
from nappingrl.world_model.local_model import LocalModel, Matrix, n_features, write_action_features, write_features
from nappingrl.world_model.misfits import Levels, Usual, misfit, write_change, write_tolerances
from nappingrl.world_model.reference_stack import Stack, stacked_model, stacked_usual

MAX_GAIN = 2.0
"""The most nats that one step counts."""
UNUSUAL_PRICE = 0.25
"""What an alternative pays for each nat by which steps are unusual under it, too."""


@kernel(allocates=False)
def _write_alternative(number: int, n_actions: int, action: Floats, out: Floats) -> None:
    """The encoded action that may have taken effect: another discrete one, or with one dimension reversed, or all."""
    if n_actions:
        out[:] = 0.0
        out[number] = 1.0
        return
    k = (len(action) - 1) // 2
    for i in range(len(action)):
        is_reversed = 1 <= i <= k and (number == i - 1 or number >= k)
        out[i] = -action[i] if is_reversed else action[i]


@kernel(allocates=False)
def _shifted_misfit(tolerances: Floats, logs: Floats, errors: Floats, own: Floats, end: Floats, left: Floats) -> float:
    """The misfit if `end` had been predicted instead of `own`."""
    for k in range(len(errors)):
        left[k] = errors[k] + own[k] - end[k]
    return misfit(tolerances, logs, left)


@kernel()
def gains(
    model: LocalModel, usual: Usual, levels: Levels, n_alternatives: int, states: Matrix, actions: Matrix,
    ends: Matrix, errors: Matrix,
) -> NDArray[np.float64]:  # fmt: skip
    """(m, alternatives) by how many nats unusual steps fit better, less what is still unusual then.

    `errors` (m, d): by how much steps differ from what was predicted; if it has no rows, `ends` (m, d), where steps
    led, tells.
    """
    entries, n_actions = model.features.entries, model.features.n_actions
    q, size = len(entries), actions.shape[1]
    z, x, other, at_rest = np.empty(q + 1), np.empty(n_features(model.features)), np.empty(size), np.zeros(size)
    own, error, left, tolerances, logs = np.empty(q), np.empty(q), np.empty(q), np.empty(q), np.empty(q)
    changes, nothing, without = np.empty((n_alternatives, q)), np.zeros(q), np.empty(q)
    at_rest[0] = 1.0
    out = np.empty((len(states), n_alternatives))
    for m in range(len(states)):
        write_features(model.features, states[m], actions[m], z, x)
        write_change(model, x, own)
        for a in range(n_alternatives):
            _write_alternative(a, n_actions, actions[m], other)
            write_action_features(model.features, other, z, x)
            write_change(model, x, changes[a])
        if n_actions:
            for k in range(q):
                without[k] = changes[:, k].mean()
        else:
            write_action_features(model.features, at_rest, z, x)
            write_change(model, x, without)
        for k in range(q):
            entry = entries[k]
            error[k] = errors[m, entry] if len(errors) else ends[m, entry] - states[m, entry] - own[k]
        write_tolerances(usual, entries, states[m], z[:q], tolerances, logs)
        # On the ground the world stands still, or actions have no effect: neither is an exchange.
        before = _shifted_misfit(tolerances, logs, error, own, own, left)
        still = _shifted_misfit(tolerances, logs, error, own, nothing, left)
        if still <= levels.high:
            before = min(before, still)
        before = min(before, _shifted_misfit(tolerances, logs, error, own, without, left))
        before = max(before, levels.usual)
        for a in range(n_alternatives):
            after = _shifted_misfit(tolerances, logs, error, own, changes[a], left)
            gain = before - max(after, levels.usual) - UNUSUAL_PRICE * max(after - levels.high, 0.0)
            out[m, a] = min(max(gain, -MAX_GAIN), MAX_GAIN)
    return out


@kernel()
def accumulate(evidence: Matrix, executed: NDArray[np.int64], each: Matrix) -> float:
    """Add up gains (m, alternatives) of steps by their executed actions (CUSUM); returns the highest sum on the way."""
    highest = 0.0
    for m in range(len(each)):
        for a in range(each.shape[1]):
            evidence[executed[m], a] = max(evidence[executed[m], a] + each[m, a], 0.0)
        highest = max(highest, evidence.max())
    return highest


@kernel()
def judge_blocks(
    stack: Stack, rows: NDArray[np.int64], states: NDArray[np.float64], actions: NDArray[np.float64],
    ends: NDArray[np.float64], evidence: NDArray[np.float64], is_blamed: NDArray[np.bool_], against: Floats,
) -> None:  # fmt: skip
    """Add up the gains of the steps (n, steps, ...) kept of these rows, and what speaks against the blamed actions."""
    nothing = np.empty((0, states.shape[2]))
    for row in rows:
        sizes, values = stack.sizes[row], stack.values[row]
        model, (usual, levels) = stacked_model(sizes, values, 0), stacked_usual(sizes, values)
        each = gains(model, usual, levels, evidence.shape[2], states[row], actions[row], ends[row], nothing)
        executed = np.zeros(len(each), np.int64)
        if model.features.n_actions:
            for m in range(len(each)):
                executed[m] = actions[row, m].argmax()
        if is_blamed[row].any():
            for m in range(len(each)):
                gain = 0.0
                for a in range(each.shape[1]):
                    gain += each[m, a] * is_blamed[row, executed[m], a]
                against[row] = max(against[row] - gain, 0.0)
        accumulate(evidence[row], executed, each)
