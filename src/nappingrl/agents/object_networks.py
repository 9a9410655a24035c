"""Q networks over the objects in an observation, which mask impossible actions: dueling, relational, convolutional."""

from dataclasses import dataclass
from math import prod
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
    """Layout of observations (slots of equal size, shared numbers, which actions are possible, a picture) and actions.

    Actions are blocks of `per_object`, one for each slot.
    """

    slots: int
    per_slot: int
    shared: int
    per_object: int
    picture: tuple[int, ...] = ()
    """Channels, rows and columns of a picture of zeros and ones; empty: there is none."""
    centre: tuple[int, ...] = ()
    """Where a slot has the centre of its object, as shares of the picture's width and height; with a picture."""

    @property
    def n_features(self) -> int:
        """Length of an observation up to the actions that are possible."""
        return self.slots * self.per_slot + self.shared

    @property
    def n_observations(self) -> int:
        """Length of an observation."""
        return self.n_features + self.n_actions + self.n_pixels

    @property
    def n_pixels(self) -> int:
        """Length of the picture at the end of an observation."""
        return prod(self.picture) if self.picture else 0

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
        is_possible = observations[:, self.n_features : self.n_features + self.n_actions] > 0
        return values.masked_fill(~is_possible, MASKED_VALUE)

    def pictures(self, observations: Tensor) -> Tensor:
        """The pictures (m, channels, rows, columns)."""
        return observations[:, self.n_features + self.n_actions :].reshape(-1, *self.picture)


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


class ResidualBlock(nn.Module):
    """Two convolutions around which the picture is also passed on unchanged."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, pictures: Tensor) -> Tensor:
        """Pictures of the same size."""
        return torch.relu(pictures + self.second(torch.relu(self.first(pictures))))


class Convolutional(nn.Module):
    """A residual network over the picture, whose features at an object's place give the values of the shots at it.

    Of the objects, only the centres are used. The embedding is the input of the last layer, as in `Relational`.
    """

    def __init__(
        self, layout: Layout, channels: int = 16, blocks: int = 2, width: int = 64, embedding: int = 32
    ) -> None:
        super().__init__()
        self.layout = layout
        depth, rows, columns = layout.picture
        self.enter = nn.Conv2d(depth + 2, channels, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(*(ResidualBlock(channels) for _ in range(blocks)))
        n_features = channels * ((rows + 1) // 2) * ((columns + 1) // 2)
        self.around = nn.Sequential(nn.Flatten(), nn.Linear(n_features, width), nn.ReLU())
        self.each = nn.Sequential(
            nn.Linear(channels + width, width), nn.ReLU(), nn.Linear(width, embedding), nn.ReLU()
        )  # fmt: skip
        self.embedding = nn.Flatten()
        self.head = nn.Linear(embedding, layout.per_object)
        across, down = torch.linspace(-1, 1, columns), torch.linspace(-1, 1, rows)
        places = torch.stack([across.expand(rows, columns), down[:, None].expand(rows, columns)])
        self.register_buffer("places", places, persistent=False)

    def forward(self, observations: Tensor) -> Tensor:
        """Values of all actions."""
        objects, _, is_present = self.layout.split(observations)
        pictures = self.layout.pictures(observations)
        with_places = torch.cat([pictures, self.get_buffer("places").expand(len(pictures), -1, -1, -1)], dim=1)
        features = self.blocks(torch.relu(self.enter(with_places)))
        around = self.around(features)[:, None, :].expand(-1, self.layout.slots, -1)
        at_objects = self._read(features, objects[:, :, list(self.layout.centre)])
        each = self.each(torch.cat([at_objects, around], dim=2)).masked_fill(~is_present[:, :, None], 0.0)
        values = self.head(self.embedding(each).reshape(each.shape)).flatten(1)
        return self.layout.masked(values, observations)

    def _read(self, features: Tensor, centres: Tensor) -> Tensor:
        """Features (m, slots, channels) at places, interpolated between cells."""
        places = (2 * centres - 1)[:, :, None, :]
        read = nn.functional.grid_sample(features, places, padding_mode="border", align_corners=False)
        return read[:, :, :, 0].transpose(1, 2)


Network = Dueling | Relational | Convolutional
NETWORKS: dict[str, type[Network]] = {
    "dueling": Dueling, "relational": Relational, "convolutional": Convolutional
}  # fmt: skip


def make_network(about: dict[str, Any]) -> Network:
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
