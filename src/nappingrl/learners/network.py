"""Perceptrons with all parameters in one flat vector, and the kernels of one gradient update.

A trial's parameters are the layers one behind the other, each as its (inputs, outputs) weight and its bias; gradients
and Adam's moments lie in the same order. Every kernel works on one trial at a time with products of the same shapes,
so a trial's bits do not depend on the trials beside it.
"""

import numpy as np
import scipy.linalg  # noqa: F401  (numba's np.dot calls its BLAS, which must be loaded before threads are limited)
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.agents.activations import relu, tanh
from nappingrl.agents.base import Layer
from nappingrl.types import Rows

Flat = NDArray[np.float32]  # (parameters,)
Sizes = NDArray[np.int64]  # (layers + 1,): inputs, the width of each hidden layer, outputs
Spans = NDArray[np.int64]  # (k, 2): first and last + 1 of the parameters that learn


def sizes_of(layers: list[Layer]) -> Sizes:
    """The widths of a network."""
    return np.array([layers[0][0].shape[0], *(len(bias) for _, bias in layers)], np.int64)


def flatten(layers: list[Layer]) -> Flat:
    """The layers as one vector."""
    return np.concatenate([np.ravel(part) for layer in layers for part in layer]).astype(np.float32)


def unflatten(flat: Flat, sizes: Sizes) -> list[Layer]:
    """The layers in a vector."""
    layers, at = [], 0
    for n_in, n_out in zip(sizes[:-1].tolist(), sizes[1:].tolist(), strict=True):
        last = at + n_in * n_out
        layers.append((flat[at:last].reshape(n_in, n_out), flat[last : last + n_out]))
        at = last + n_out
    return layers


def n_parameters(sizes: Sizes, layers: slice = slice(None)) -> int:
    """How many parameters a network has, or some of its layers."""
    return int(((sizes[:-1] + 1) * sizes[1:])[layers].sum())


def learning_spans(networks: list[Sizes], is_last_only: bool) -> Spans:
    """The parameters that learn where several networks lie behind one another: all, or those of each last layer."""
    ends = np.cumsum([n_parameters(sizes) for sizes in networks])
    if not is_last_only:
        return np.array([[0, ends[-1]]], np.int64)
    last = [n_parameters(sizes, slice(-1, None)) for sizes in networks]
    return np.array([[end - n, end] for end, n in zip(ends.tolist(), last, strict=True)], np.int64)


@kernel()
def forward(flat: Flat, sizes: Sizes, x: NDArray[np.float32], is_tanh: bool, flows: Flat) -> None:
    """Flows <- what every layer gives for the observations x (m, inputs), one (m, width) block behind the other."""
    m, at, to = x.shape[0], 0, 0
    flow = x
    for layer in range(sizes.shape[0] - 1):
        n_in, n_out = sizes[layer], sizes[layer + 1]
        weight = flat[at : at + n_in * n_out].reshape(n_in, n_out)
        bias = flat[at + n_in * n_out : at + n_in * n_out + n_out]
        values = flows[to : to + m * n_out]
        out = values.reshape(m, n_out)
        np.dot(flow, weight, out)
        for i in range(m):
            for j in range(n_out):
                out[i, j] += bias[j]
        if layer < sizes.shape[0] - 2:
            if is_tanh:
                tanh(values)
            else:
                relu(values)
        flow, at, to = out, at + (n_in + 1) * n_out, to + m * n_out


@kernel()
def backward(
    flat: Flat, sizes: Sizes, x: NDArray[np.float32], is_tanh: bool, flows: Flat, deltas: Flat, spare: Flat,
    lowest: int, gradient: Flat,
) -> None:  # fmt: skip
    """Gradient <- the loss's derivative by the parameters of the layers from `lowest` up.

    `flows` is what `forward` wrote; `deltas` begins with the loss's derivative by the outputs (m, outputs). `deltas`
    and `spare` are overwritten; each has room for m rows of the widest layer.
    """
    m, at, to = x.shape[0], flat.shape[0], flow_width(sizes) * x.shape[0]
    for layer in range(sizes.shape[0] - 2, lowest - 1, -1):
        n_in, n_out = sizes[layer], sizes[layer + 1]
        at, to = at - (n_in + 1) * n_out, to - m * n_out
        delta = deltas[: m * n_out].reshape(m, n_out)
        flow = x if layer == 0 else flows[to - m * n_in : to].reshape(m, n_in)
        np.dot(flow.T, delta, gradient[at : at + n_in * n_out].reshape(n_in, n_out))
        bias = gradient[at + n_in * n_out : at + n_in * n_out + n_out]
        bias[:] = 0
        for i in range(m):
            for j in range(n_out):
                bias[j] += delta[i, j]
        if layer > lowest:
            below, values = spare[: m * n_in], flows[to - m * n_in : to]
            np.dot(delta, flat[at : at + n_in * n_out].reshape(n_in, n_out).T, below.reshape(m, n_in))
            if is_tanh:
                for i in range(m * n_in):
                    below[i] *= np.float32(1) - values[i] * values[i]
            else:
                for i in range(m * n_in):
                    below[i] = np.float32(0) if values[i] <= 0 else below[i]
            deltas, spare = spare, deltas


@kernel()
def flow_width(sizes: Sizes) -> int:
    """Numbers that `forward` writes for each observation."""
    total = 0
    for layer in range(1, sizes.shape[0]):
        total += sizes[layer]
    return total


@kernel(error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def norm(gradient: Flat, spans: Spans) -> np.float32:
    """The gradient's length over the parameters that learn."""
    total = np.float32(0)
    for k in range(spans.shape[0]):
        part = gradient[spans[k, 0] : spans[k, 1]]
        for i in range(part.shape[0]):
            total += part[i] * part[i]
    return np.float32(np.sqrt(total))


@kernel(error_model="numpy", fastmath={"contract"})
def adam(
    flat: Flat, gradient: Flat, first: Flat, second: Flat, spans: Spans, steps: int, learning_rate: float,
    epsilon: float, max_grad_norm: float,
) -> bool:  # fmt: skip
    """Clip the gradient to its greatest length and take Adam's step number `steps`; False, and no step, if not finite.

    As torch's clip_grad_norm_ and Adam do it, with the usual betas .9 and .999.
    """
    length = norm(gradient, spans)
    if not np.isfinite(length):
        return False
    clip = np.float32(min(1.0, float(max_grad_norm / (length + 1e-6))))
    size = np.float32(learning_rate / (1 - 0.9**steps))
    root, eps = np.float32(1 / np.sqrt(1 - 0.999**steps)), np.float32(epsilon)
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
    """Targets <- (1 - tau) * targets + tau * flats, in some rows."""
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
    flats: NDArray[np.float32], sizes: Sizes, is_tanh: bool, rows: Rows, x: NDArray[np.float32],
    states: NDArray[np.float32], outputs: NDArray[np.float32],
) -> None:  # fmt: skip
    """What the networks of some rows give for one observation each: the input of the last layer, and the outputs."""
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
            elif is_tanh:
                tanh(out)
            else:
                relu(out)
            a, b = b, a


@kernel(fastmath={"contract"})
def _affine(x: Flat, weight: NDArray[np.float32], bias: Flat, out: Flat) -> None:
    """Out <- x @ weight + bias for one observation; weights of inputs that are zero are not even loaded."""
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
