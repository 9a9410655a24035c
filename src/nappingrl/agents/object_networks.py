"""Q networks over the objects in an observation, dueling and relational; impossible actions are masked."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nappingrl.agents.torch_agent import TorchAgent
from nappingrl.errors import BadAgentError, check_name

MASKED_VALUE = -1e6
"""The value of an impossible action."""
N_HEADS = 4


@dataclass(frozen=True, slots=True)
class Layout:
    """Layout of observations (slots of equal size, shared numbers, which actions are possible) and actions (blocks)."""

    slots: int
    per_slot: int
    shared: int
    per_object: int

    @property
    def n_features(self) -> int:
        """Length of an observation without the actions that are possible."""
        return self.slots * self.per_slot + self.shared

    @property
    def n_observations(self) -> int:
        """Length of an observation."""
        return self.n_features + self.n_actions

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return self.slots * self.per_object

    def split(self, observations: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Objects (m, slots, per_slot), shared numbers (m, shared), and which objects are present (m, slots)."""
        objects = observations[:, : self.slots * self.per_slot].reshape(-1, self.slots, self.per_slot)
        return objects, observations[:, self.slots * self.per_slot : self.n_features], objects[:, :, 0] > 0

    def masked(self, values: Tensor, observations: Tensor) -> Tensor:
        """Values (m, n_actions) in which impossible actions have `MASKED_VALUE`."""
        return values.masked_fill(observations[:, self.n_features :] <= 0, MASKED_VALUE)


class Dueling(nn.Module):
    """A perceptron with separate streams for the state value and the advantages."""

    def __init__(self, layout: Layout, width: int = 256, embedding: int = 128) -> None:
        super().__init__()
        self.layout = layout
        self.embedding = nn.Sequential(
            nn.Linear(layout.n_features, width), nn.ReLU(), nn.Linear(width, embedding), nn.ReLU()
        )
        self.value = nn.Linear(embedding, 1)
        self.advantage = nn.Linear(embedding, layout.n_actions)

    def forward(self, observations: Tensor) -> Tensor:
        """Values of all actions."""
        state = self.embedding(observations[:, : self.layout.n_features])
        advantage = self.advantage(state)
        values: Tensor = self.value(state) + advantage - advantage.mean(dim=1, keepdim=True)
        return self.layout.masked(values, observations)


class Relational(nn.Module):
    """Objects attend to each other; each predicts the values of the shots at it.

    The embedding is the input of the last layer: `embedding` numbers of each object, zeros for those that are absent.
    """

    def __init__(self, layout: Layout, width: int = 64, embedding: int = 32) -> None:
        super().__init__()
        self.layout = layout
        self.enter = nn.Linear(layout.per_slot + layout.shared, width)
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.leave = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.around = nn.Sequential(nn.Linear(width, width), nn.ReLU())
        self.each = nn.Sequential(
            nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, embedding), nn.ReLU()
        )  # fmt: skip
        self.embedding = nn.Flatten()
        self.head = nn.Linear(embedding, layout.per_object)

    def forward(self, observations: Tensor) -> Tensor:
        """Values of all actions."""
        objects, shared, is_present = self.layout.split(observations)
        repeated = shared[:, None, :].expand(-1, self.layout.slots, -1)
        entities = torch.relu(self.enter(torch.cat([objects, repeated], dim=2)))
        entities = self.norm(entities + self.leave(self._attend(entities, is_present)))
        pooled = entities.masked_fill(~is_present[:, :, None], MASKED_VALUE).amax(dim=1)
        pooled = torch.where(is_present.any(dim=1, keepdim=True), pooled, torch.zeros_like(pooled))
        around = self.around(pooled)[:, None, :].expand(-1, self.layout.slots, -1)
        each = self.each(torch.cat([entities, around], dim=2)).masked_fill(~is_present[:, :, None], 0.0)
        values = self.head(self.embedding(each).reshape(each.shape)).flatten(1)
        return self.layout.masked(values, observations)

    def _attend(self, entities: Tensor, is_present: Tensor) -> Tensor:
        """Scaled dot-product attention over the present objects."""
        m, slots, width = entities.shape
        parts = self.queries_keys_values(entities).reshape(m, slots, 3, N_HEADS, width // N_HEADS)
        queries, keys, values = parts.permute(2, 0, 3, 1, 4)
        scores = queries @ keys.transpose(2, 3) / (width // N_HEADS) ** 0.5
        weights = torch.softmax(scores.masked_fill(~is_present[:, None, None, :], MASKED_VALUE), dim=3)
        attended: Tensor = (weights @ values).transpose(1, 2).reshape(m, slots, width)
        return attended


NETWORKS: dict[str, type[Dueling] | type[Relational]] = {"dueling": Dueling, "relational": Relational}


def make_network(about: dict[str, Any]) -> Dueling | Relational:
    """The network that a card describes by kind, layout and sizes."""
    network_class = NETWORKS[check_name("network", about["kind"], NETWORKS)]
    return network_class(Layout(**about["layout"]), **about.get("sizes", {}))


class NetworkAgent(TorchAgent):
    """A network over objects as a frozen agent; one observation per pass, so bits do not depend on the batch."""

    block = 1

    def __init__(self, name: str, about: dict[str, Any], weights: dict[str, NDArray[np.float32]]) -> None:
        network = make_network(about)
        try:
            network.load_state_dict({key: torch.as_tensor(value) for key, value in weights.items()})
        except RuntimeError as error:
            raise BadAgentError(f"agent {name}: the weights do not fit the network of its card: {error}") from None
        network.requires_grad_(False)
        super().__init__(network, "embedding", name=name, observation_shape=(network.layout.n_observations,))
