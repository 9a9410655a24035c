"""Linear layers with one activation function between them, in compiled kernels."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.agents.activations import relu, tanh
from nappingrl.agents.base import Layer, Network
from nappingrl.types import Floats, Observation

Inputs = NDArray[np.floating[Any]]  # (m, n_inputs)
ACTIVATIONS = ("tanh", "relu")
TILE = 4
"""Rows per pass of the matrix product; batches are padded to a multiple of it."""


class Perceptron:
    """Float32 layers; a row has the same bits in any batch."""

    def __init__(self, layers: list[Layer], activation: str) -> None:
        self._hidden = layers[:-1]
        self._is_tanh = activation == "tanh"
        weight, self._output_bias = layers[-1]
        self._n_inputs = layers[0][0].shape[0]
        self._live = np.empty(max(weight.shape[0] for weight, _ in layers), np.int64)
        self._output_weight = np.ascontiguousarray(weight.T)

    def run(self, inputs: Inputs, layer: int = 0) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The activations (m, d) of a hidden layer (0: the inputs), and the outputs (m, n)."""
        m = len(inputs)
        n_padded = math.ceil(m / TILE) * TILE
        values = np.zeros((n_padded, self._n_inputs), np.float32)
        values[:m] = inputs
        activations = values
        for number, (weight, bias) in enumerate(self._hidden, 1):
            out = np.empty((n_padded, len(bias)), np.float32)
            _layer(values, weight, bias, self._is_tanh, self._live, out)
            values = out
            if number == layer:
                activations = values
        outputs = np.empty((m, len(self._output_bias)), np.float32)
        _outputs(values, self._output_weight, self._output_bias, outputs)
        return activations[:m], outputs

    def arrays(self, layer: int, mean: NDArray[np.float64], scale: NDArray[np.float64], clip: float) -> Network:
        """The network as `forward` takes it; `layer` is that of the model states, 1 = the first."""
        weights, biases = zip(*self._hidden, strict=True)
        return Network(
            weights, biases, self._output_weight, self._output_bias, self._is_tanh, layer - 1, mean, scale, clip,
            self._live,
        )  # fmt: skip


def contiguous(layers: list[Layer]) -> list[Layer]:
    """The layers as the kernels need them."""
    return [(np.ascontiguousarray(weight, np.float32), np.asarray(bias, np.float32)) for weight, bias in layers]


@kernel(allocates=False)
def standardise(observation: Observation, mean: Floats, scale: Floats, clip: float, out: NDArray[np.float32]) -> None:
    """Write (observation - mean) / scale, clipped to +-clip."""
    for k in range(out.shape[0]):
        out[k] = min(max((observation[k] - mean[k]) / scale[k], -clip), clip)


@kernel(allocates=False)
def forward(
    network: Network,
    inputs: NDArray[np.float32],
    activations: tuple[NDArray[np.float32], ...],
    outputs: NDArray[np.float32],
) -> None:
    """`Perceptron.run` of TILE rows in a kernel: writes the activations of each hidden layer, and the outputs."""
    x = inputs
    for i in range(len(activations)):
        _layer(x, network.weights[i], network.biases[i], network.is_tanh, network.live, activations[i])
        x = activations[i]
    _outputs(x, network.output_weight, network.output_bias, outputs)


@kernel(allocates=False, fastmath={"contract"})
def _layer(
    x: NDArray[np.float32],
    weight: NDArray[np.float32],
    bias: NDArray[np.float32],
    is_tanh: bool,
    live: NDArray[np.int64],
    out: NDArray[np.float32],
) -> None:
    """Write activation(x @ weight + bias) to `out`; each number is summed in one fixed order.

    With BLAS the bits of a row depend on the batch size and on the row's place in the batch, because its kernels
    change the order of summation near an edge. Here each number is a chain of multiply-adds over its inputs in their
    order, so a row has the same bits in any batch. Four rows share each load of four weights. Inputs that are zero in
    all four rows (most of a ReLU layer) are skipped, which changes no bit; `live` has space for the others.
    """
    for r in range(0, x.shape[0], TILE):
        out0, out1, out2, out3 = out[r], out[r + 1], out[r + 2], out[r + 3]
        for j in range(bias.shape[0]):
            out0[j] = out1[j] = out2[j] = out3[j] = bias[j]
        n = 0
        for k in range(x.shape[1]):
            live[n] = k
            n += x[r, k] != 0 or x[r + 1, k] != 0 or x[r + 2, k] != 0 or x[r + 3, k] != 0
        for i in range(0, n - 3, 4):
            k0, k1, k2, k3 = live[i], live[i + 1], live[i + 2], live[i + 3]
            w0, w1, w2, w3 = weight[k0], weight[k1], weight[k2], weight[k3]
            a0, a1, a2, a3 = x[r, k0], x[r, k1], x[r, k2], x[r, k3]
            b0, b1, b2, b3 = x[r + 1, k0], x[r + 1, k1], x[r + 1, k2], x[r + 1, k3]
            c0, c1, c2, c3 = x[r + 2, k0], x[r + 2, k1], x[r + 2, k2], x[r + 2, k3]
            d0, d1, d2, d3 = x[r + 3, k0], x[r + 3, k1], x[r + 3, k2], x[r + 3, k3]
            for j in range(bias.shape[0]):
                u0, u1, u2, u3 = w0[j], w1[j], w2[j], w3[j]
                out0[j] = (((out0[j] + a0 * u0) + a1 * u1) + a2 * u2) + a3 * u3
                out1[j] = (((out1[j] + b0 * u0) + b1 * u1) + b2 * u2) + b3 * u3
                out2[j] = (((out2[j] + c0 * u0) + c1 * u1) + c2 * u2) + c3 * u3
                out3[j] = (((out3[j] + d0 * u0) + d1 * u1) + d2 * u2) + d3 * u3
        for i in range(n // 4 * 4, n):
            w0 = weight[live[i]]
            a0, b0, c0, d0 = x[r, live[i]], x[r + 1, live[i]], x[r + 2, live[i]], x[r + 3, live[i]]
            for j in range(bias.shape[0]):
                u0 = w0[j]
                out0[j] += a0 * u0
                out1[j] += b0 * u0
                out2[j] += c0 * u0
                out3[j] += d0 * u0
        for i in range(r, r + TILE):
            if is_tanh:
                tanh(out[i])
            else:
                relu(out[i])


@kernel(allocates=False, fastmath={"contract", "reassoc", "nsz"})
def _outputs(
    x: NDArray[np.float32], weight: NDArray[np.float32], bias: NDArray[np.float32], out: NDArray[np.float32]
) -> None:
    """Write x @ weight.T + bias to `out`: one dot product per output, with the same instructions for every row."""
    for i in range(out.shape[0]):
        for a in range(out.shape[1]):
            total = np.float32(0)
            for k in range(weight.shape[1]):
                total += x[i, k] * weight[a, k]
            out[i, a] = total + bias[a]
