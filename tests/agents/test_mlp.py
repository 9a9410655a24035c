"""The numpy perceptron: bits that do not depend on the batch, and refusals."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from nappingrl.agents.mlp import MlpAgent, Normaliser
from nappingrl.errors import BadAgentError, BadObservationError

RNG = np.random.default_rng(0)
BLOCK = 64
OBSERVATIONS = RNG.normal(size=(3 * BLOCK + 5, 4)).astype(np.float32)


def make(sizes: tuple[int, ...] = (4, 64, 64, 2), activation: str = "tanh", **options: object) -> MlpAgent:
    """A perceptron with random weights."""
    rng = np.random.default_rng(1)
    layers = [
        (rng.normal(size=(a, b)).astype(np.float32) / np.float32(np.sqrt(a)), rng.normal(size=b).astype(np.float32))
        for a, b in itertools.pairwise(sizes)
    ]
    return MlpAgent("test", layers, activation, **options)  # type: ignore[arg-type]


AGENTS = [
    make(),
    make((4, 256, 256, 2), "relu"),
    make((4, 31, 3), "relu"),
    make((4, 300, 200, 7)),
    make((4, 2)),
    make(normaliser=Normaliser(np.arange(4.0), np.arange(1.0, 5.0), clip=1.0)),
]


@pytest.mark.parametrize("agent", AGENTS)
@given(rows=st.lists(st.integers(0, len(OBSERVATIONS) - 1), min_size=1, max_size=2 * BLOCK + 3))
@settings(max_examples=30, deadline=None)
def test_a_row_has_the_same_bits_in_any_batch(agent: MlpAgent, rows: list[int]) -> None:
    """Alone, at any place, among any others."""
    whole, part = agent.forward(OBSERVATIONS), agent.forward(OBSERVATIONS[rows])
    np.testing.assert_array_equal(part.preferences, whole.preferences[rows])
    np.testing.assert_array_equal(part.model_states, whole.model_states[rows])
    np.testing.assert_array_equal(part.actions, whole.actions[rows])


def test_bits_do_not_depend_on_threads() -> None:
    """One BLAS thread or two."""
    for agent in AGENTS:
        with threadpool_limits(1):
            one = agent.forward(OBSERVATIONS)
        with threadpool_limits(2):
            two = agent.forward(OBSERVATIONS)
        np.testing.assert_array_equal(one.preferences, two.preferences)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_it_is_the_perceptron_it_says(activation: str) -> None:
    """Against plain numpy in double precision, panels and all."""
    agent = make((4, 300, 200, 7), activation)
    flow = OBSERVATIONS.astype(np.float64)
    for weight, bias in agent._layers[:-1]:
        flow = flow @ weight + bias
        flow = np.tanh(flow) if activation == "tanh" else np.maximum(flow, 0)
    decision = agent.forward(OBSERVATIONS)
    np.testing.assert_allclose(decision.model_states, flow, atol=1e-5)
    weight, bias = agent._layers[-1]
    np.testing.assert_allclose(decision.preferences, flow @ weight + bias, atol=2e-5)


def test_results_are_not_overwritten() -> None:
    """A decision stays as it is when the agent is used again."""
    agent = make()
    first = agent.forward(OBSERVATIONS)
    copy = first.model_states.copy()
    agent.forward(-OBSERVATIONS)
    np.testing.assert_array_equal(first.model_states, copy)


def test_no_rows() -> None:
    """An empty batch is a batch."""
    assert make().forward(OBSERVATIONS[:0]).model_states.shape == (0, 64)


def test_mistakes() -> None:
    """Wrong activations, shapes, normalisers and observations are refused in one line."""
    with pytest.raises(BadAgentError, match="'gelu' is not one of tanh, relu"):
        make(activation="gelu")
    with pytest.raises(BadAgentError, match="shape"):
        make(observation_shape=(3, 2))
    with pytest.raises(BadAgentError, match=r"normaliser is for observations of shape \(3,\)"):
        make(normaliser=Normaliser(np.zeros(3), np.ones(3)))
    with pytest.raises(BadObservationError, match="trained on"):
        make().forward(np.zeros((2, 5), np.float32))
    for value in (np.nan, np.inf):
        with pytest.raises(BadObservationError, match="finite"):
            make().forward(np.full((2, 4), value, np.float32))
