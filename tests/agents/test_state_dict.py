"""Layers from SB3's state dicts; `test_zip` and `test_live` compare whole agents with SB3."""

import numpy as np
import pytest
from numpy.typing import NDArray

from nappingrl.agents.state_dict import policy_layers, trainable_networks
from nappingrl.errors import BadAgentError

Weights = dict[str, NDArray[np.float32]]


def linear(prefix: str, *sizes: int) -> Weights:
    """A chain of linear layers with activations between them, as torch names them."""
    weights: Weights = {}
    for i in range(len(sizes) - 1):
        weights[f"{prefix}.{2 * i}.weight"] = np.full((sizes[i + 1], sizes[i]), i + 1, np.float32)
        weights[f"{prefix}.{2 * i}.bias"] = np.zeros(sizes[i + 1], np.float32)
    return weights


def test_layers_are_sorted_by_number() -> None:
    weights = linear("q_net.q_net", 2, *[3] * 6, 4)
    shuffled = dict(sorted(weights.items()))  # "10" comes before "2"
    kind, layers = policy_layers(shuffled)
    assert kind == "q"
    assert [int(weight[0, 0]) for weight, _ in layers] == [1, 2, 3, 4, 5, 6, 7]
    assert layers[0][0].shape == (2, 3)


def test_quantiles_are_averaged() -> None:
    weights = linear("quantile_net.quantile_net", 2, 6)
    weights["quantile_net.quantile_net.0.bias"] = np.arange(6, dtype=np.float32)
    kind, layers = policy_layers(weights, 2)
    assert kind == "quantile"
    np.testing.assert_array_equal(layers[0][1], [2.0, 3.0])  # the means of 0, 2, 4 and of 1, 3, 5
    with pytest.raises(BadAgentError, match="6 outputs does not fit 4 actions"):
        policy_layers(weights, 4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lstm_actor.weight": np.zeros((1, 1), np.float32)}, "recurrent"),
        ({"features_extractor.cnn.0.weight": np.zeros((1, 1), np.float32)}, "feature extractor"),
        ({"q_net.q_net.2.weight": np.zeros((4, 5), np.float32)}, "layer 1 takes 5 inputs, layer 0 has 3"),
        ({"q_net.q_net.4.weight": np.zeros((4, 4), np.float32)}, "has no bias"),
        ({"q_net.q_net.0.bias": np.full(3, np.nan, np.float32)}, "NaN"),
    ],
)
def test_other_networks_are_refused(change: Weights, message: str) -> None:
    with pytest.raises(BadAgentError, match=message):
        policy_layers(linear("q_net.q_net", 2, 3, 4) | change)


def test_networks_that_do_not_fit_each_other() -> None:
    acting = linear("q_net.q_net", 2, 3, 4)
    with pytest.raises(BadAgentError, match="no target network"):
        trainable_networks(acting, "q")
    with pytest.raises(BadAgentError, match="do not fit each other"):
        trainable_networks(acting | linear("q_net_target.q_net", 2, 5, 4), "q")
    assert trainable_networks(acting | linear("q_net_target.q_net", 2, 3, 4), "q").keys() == {"q", "target"}
