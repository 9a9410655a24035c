"""Perceptrons with all parameters in one flat vector, and the kernels of a gradient update.

The vector holds the layers in order, each as its (inputs, outputs) weight followed by its bias; gradients and Adam's
moments have the same layout. A kernel handles one trial at a time, with matrix products of fixed shapes, so a trial's
bits do not depend on the other trials of the batch.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.agents.activations import relu, tanh
from nappingrl.agents.base import Layer
from nappingrl.types import Flags, Keys, Rows

Flat = NDArray[np.float32]  # (parameters,)
Sizes = NDArray[np.int64]  # (layers + 1,): inputs, the width of each hidden layer, outputs
Spans = NDArray[np.int64]  # (k, 2): start and stop of the parameters that are trained


class Network(NamedTuple):
    """The architecture of a perceptron."""

    sizes: Sizes
    is_tanh: bool
    """The activation function: tanh, otherwise ReLU."""
    first_trained: int
    """The first layer that is trained."""
    n_parameters: int


class TrainState(NamedTuple):
    """What training changes, one row per trial."""

    parameters: NDArray[np.float32]
    """(n, p) weights of the trained networks; the acting network comes first."""
    first_moments: NDArray[np.float32]
    """(n, p) Adam's running mean of the gradient."""
    second_moments: NDArray[np.float32]
    """(n, p) Adam's running mean of the squared gradient."""
    adam_steps: Rows
    """(n,) updates so far."""
    is_diverged: Flags
    """(n,) trials that stopped learning because a gradient was not finite."""
    keys: Keys
    draws: Keys
    """(n,) key and counter of each trial's random stream."""


class Optimiser(NamedTuple):
    """Adam's hyperparameters, and the parameters that it updates."""

    learning_rate: float
    epsilon: float
    max_grad_norm: float
    spans: Spans


def make_network(layers: list[Layer], is_tanh: bool, is_last_only: bool) -> Network:
    """The architecture of a network with these layers."""
    sizes = np.array([layers[0][0].shape[0], *(len(bias) for _, bias in layers)], np.int64)
    return Network(sizes, is_tanh, len(layers) - 1 if is_last_only else 0, n_parameters(sizes))


def flatten(layers: list[Layer]) -> Flat:
    """The layers as one vector."""
    return np.concatenate([np.ravel(part) for layer in layers for part in layer]).astype(np.float32)


def n_parameters(sizes: Sizes, layers: slice = slice(None)) -> int:
    """The number of parameters of a network, or of some of its layers."""
    return int(((sizes[:-1] + 1) * sizes[1:])[layers].sum())


def trained_spans(networks: list[Network], is_last_only: bool) -> Spans:
    """The trained parameters of networks that follow one another in one vector: all, or those of each last layer."""
    stops = np.cumsum([network.n_parameters for network in networks]).tolist()
    if not is_last_only:
        return np.array([[0, stops[-1]]], np.int64)
    trained = [n_parameters(network.sizes, slice(-1, None)) for network in networks]
    return np.array([[stop - n, stop] for stop, n in zip(stops, trained, strict=True)], np.int64)


@kernel()
def forward(flat: Flat, network: Network, x: NDArray[np.float32], activations: Flat) -> None:
    """Write the outputs of every layer for observations x (m, inputs) to `activations`, one (m, width) block each."""
    sizes = network.sizes
    m, at, to = x.shape[0], 0, 0
    inputs = x
    for layer in range(sizes.shape[0] - 1):
        n_in, n_out = sizes[layer], sizes[layer + 1]
        weight = flat[at : at + n_in * n_out].reshape(n_in, n_out)
        bias = flat[at + n_in * n_out : at + n_in * n_out + n_out]
        values = activations[to : to + m * n_out]
        out = values.reshape(m, n_out)
        np.dot(inputs, weight, out)
        for i in range(m):
            for j in range(n_out):
                out[i, j] += bias[j]
        if layer < sizes.shape[0] - 2:
            if network.is_tanh:
                tanh(values)
            else:
                relu(values)
        inputs, at, to = out, at + (n_in + 1) * n_out, to + m * n_out


@kernel()
def backward(
    flat: Flat, network: Network, x: NDArray[np.float32], activations: Flat, deltas: Flat, scratch: Flat,
    gradient: Flat,
) -> None:  # fmt: skip
    """Write the derivative of the loss by the trained parameters to `gradient`.

    `activations` is the output of `forward`; `deltas` starts with the derivative of the loss by the outputs
    (m, outputs). `deltas` and `scratch` are overwritten; each holds m rows of the widest layer.
    """
    sizes = network.sizes
    m, at, to = x.shape[0], flat.shape[0], n_activations(network) * x.shape[0]
    for layer in range(sizes.shape[0] - 2, network.first_trained - 1, -1):
        n_in, n_out = sizes[layer], sizes[layer + 1]
        at, to = at - (n_in + 1) * n_out, to - m * n_out
        delta = deltas[: m * n_out].reshape(m, n_out)
        inputs = x if layer == 0 else activations[to - m * n_in : to].reshape(m, n_in)
        np.dot(inputs.T, delta, gradient[at : at + n_in * n_out].reshape(n_in, n_out))
        bias = gradient[at + n_in * n_out : at + n_in * n_out + n_out]
        bias[:] = 0
        for i in range(m):
            for j in range(n_out):
                bias[j] += delta[i, j]
        if layer > network.first_trained:
            below, values = scratch[: m * n_in], activations[to - m * n_in : to]
            np.dot(delta, flat[at : at + n_in * n_out].reshape(n_in, n_out).T, below.reshape(m, n_in))
            if network.is_tanh:
                for i in range(m * n_in):
                    below[i] *= np.float32(1) - values[i] * values[i]
            else:
                for i in range(m * n_in):
                    below[i] = np.float32(0) if values[i] <= 0 else below[i]
            deltas, scratch = scratch, deltas


@kernel()
def n_activations(network: Network) -> int:
    """The number of values that `forward` writes per observation."""
    total = 0
    for layer in range(1, network.sizes.shape[0]):
        total += network.sizes[layer]
    return total


@kernel()
def outputs_of(activations: Flat, network: Network, m: int) -> Flat:
    """The part of `activations` that holds the outputs (m * n,) of the last layer."""
    end = m * n_activations(network)
    return activations[end - m * network.sizes[-1] : end]


@kernel()
def update(state: TrainState, row: int, gradient: Flat, optimiser: Optimiser) -> bool:
    """Update one trial's parameters; if the gradient is not finite, only set `is_diverged` and return False."""
    steps = state.adam_steps[row] + 1
    is_finite = _adam(
        state.parameters[row], gradient, state.first_moments[row], state.second_moments[row], steps, optimiser
    )
    if is_finite:
        state.adam_steps[row] = steps
    else:
        state.is_diverged[row] = True
    return is_finite


@kernel(error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def _norm(gradient: Flat, spans: Spans) -> np.float32:
    """The length of the gradient over the trained parameters."""
    total = np.float32(0)
    for k in range(spans.shape[0]):
        part = gradient[spans[k, 0] : spans[k, 1]]
        for i in range(part.shape[0]):
            total += part[i] * part[i]
    return np.float32(np.sqrt(total))


@kernel(error_model="numpy", fastmath={"contract"})
def _adam(flat: Flat, gradient: Flat, first: Flat, second: Flat, steps: int, optimiser: Optimiser) -> bool:
    """Clip the gradient and take Adam's step number `steps`; False, and no step, if the gradient is not finite.

    Same as torch's clip_grad_norm_ and Adam with betas .9 and .999.
    """
    spans = optimiser.spans
    length = _norm(gradient, spans)
    if not np.isfinite(length):
        return False
    clip = np.float32(min(1.0, float(optimiser.max_grad_norm / (length + 1e-6))))
    size = np.float32(optimiser.learning_rate / (1 - 0.9**steps))
    root, eps = np.float32(1 / np.sqrt(1 - 0.999**steps)), np.float32(optimiser.epsilon)
    b1, b2, c2 = np.float32(0.1), np.float32(0.999), np.float32(0.001)
    for k in range(spans.shape[0]):
        low, high = spans[k]
        p, g, m, v = flat[low:high], gradient[low:high], first[low:high], second[low:high]
        for i in range(p.shape[0]):
            d = g[i] * clip
            m[i] += b1 * (d - m[i])
            v[i] = b2 * v[i] + c2 * (d * d)
            p[i] -= size * m[i] / (np.sqrt(v[i]) * root + eps)
    return True


@kernel()
def polyak(flats: NDArray[np.float32], targets: NDArray[np.float32], rows: Rows, tau: float) -> None:
    """Write (1 - tau) * targets + tau * flats to `targets`, in some rows."""
    keep, give = np.float32(1 - tau), np.float32(tau)
    for row in rows:
        target, flat = targets[row], flats[row]
        if tau == 1:
            target[:] = flat
        else:
            for i in range(flat.shape[0]):
                target[i] = keep * target[i] + give * flat[i]


@kernel()
def forward_each(
    flats: NDArray[np.float32], network: Network, rows: Rows, x: NDArray[np.float32], states: NDArray[np.float32],
    outputs: NDArray[np.float32],
) -> None:  # fmt: skip
    """Pass one observation through the network of each row; write the last layer's inputs and outputs."""
    sizes = network.sizes
    a, b = np.empty(sizes.max(), np.float32), np.empty(sizes.max(), np.float32)
    last = sizes.shape[0] - 2
    for i in range(rows.shape[0]):
        flat, at = flats[rows[i]], 0
        a[: sizes[0]] = x[i]
        for layer in range(last + 1):
            n_in, n_out = sizes[layer], sizes[layer + 1]
            if layer == last:
                states[i] = a[:n_in]
            weight = flat[at : at + n_in * n_out].reshape(n_in, n_out)
            at += n_in * n_out
            out = b[:n_out]
            _affine(a[:n_in], weight, flat[at : at + n_out], out)
            at += n_out
            if layer == last:
                outputs[i] = out
            elif network.is_tanh:
                tanh(out)
            else:
                relu(out)
            a, b = b, a


@kernel(fastmath={"contract"})
def _affine(x: Flat, weight: NDArray[np.float32], bias: Flat, out: Flat) -> None:
    """Write x @ weight + bias to `out` for one observation; weights of zero inputs are not loaded."""
    live = np.empty(x.shape[0], np.int64)
    n = 0
    for k in range(x.shape[0]):
        live[n] = k
        n += x[k] != 0
    for j in range(out.shape[0]):
        out[j] = bias[j]
    for i in range(0, n - 3, 4):
        k0, k1, k2, k3 = live[i], live[i + 1], live[i + 2], live[i + 3]
        w0, w1, w2, w3 = weight[k0], weight[k1], weight[k2], weight[k3]
        x0, x1, x2, x3 = x[k0], x[k1], x[k2], x[k3]
        for j in range(out.shape[0]):
            out[j] = (((out[j] + x0 * w0[j]) + x1 * w1[j]) + x2 * w2[j]) + x3 * w3[j]
    for i in range(n // 4 * 4, n):
        w0, x0 = weight[live[i]], x[live[i]]
        for j in range(out.shape[0]):
            out[j] += x0 * w0[j]
