"""Agents whose actions are numbers in a box: SB3's Gaussian policies (PPO, A2C), SAC, TD3 and DDPG."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nappingrl.agents.activations import tanh
from nappingrl.agents.base import Layer, Trainable
from nappingrl.agents.mlp import MlpAgent, Normaliser, Weights
from nappingrl.errors import BadAgentError
from nappingrl.types import Decision, Observations

CLIP_MEAN = 2.0
"""SB3's limit of the mean of a SAC policy with state-dependent noise."""


@dataclass(frozen=True, slots=True)
class ActionBox:
    """The box of an agent's actions, and how the outputs of its network come to lie in it."""

    low: NDArray[np.float32]
    high: NDArray[np.float32]
    is_squashed: bool
    """Whether outputs go through tanh and are then spread over the box; if not, they are clipped to it."""
    clip_mean: float = np.inf
    """Limit of the outputs before the tanh."""

    @classmethod
    def make(cls, kind: str, low: ArrayLike, high: ArrayLike, options: Mapping[str, Any]) -> "ActionBox":
        """By the kind of policy that `policy_layers` found, and what its keyword arguments in SB3 are."""
        is_squashed = kind != "gaussian" or options.get("squash_output") is True
        clip_mean = float(options.get("clip_mean", CLIP_MEAN)) if kind == "sac-sde" else np.inf
        box = cls(np.array(low, np.float32), np.array(high, np.float32), is_squashed, clip_mean)
        if box.low.ndim != 1 or box.low.shape != box.high.shape or not (box.low < box.high).all():
            limits = f"{low!s:.80} and {high!s:.80}"
            raise BadAgentError(f"its actions lie between {limits}; only one row of numbers is supported")
        if not np.isfinite([box.low, box.high]).all():
            raise BadAgentError("its actions have no limits; only boxes with finite limits are supported")
        return box

    @classmethod
    def of_card(cls, content: Mapping[str, Any]) -> "ActionBox":
        """As `card` wrote it."""
        clip_mean = np.inf if content["clip_mean"] is None else float(content["clip_mean"])
        low, high = (np.array(content[name], np.float32) for name in ("low", "high"))
        return cls(low, high, bool(content["is_squashed"]), clip_mean)

    def card(self) -> dict[str, Any]:
        """As entries of a card."""
        clip_mean = self.clip_mean if np.isfinite(self.clip_mean) else None
        limits = {"low": self.low.tolist(), "high": self.high.tolist()}
        return limits | {"is_squashed": self.is_squashed, "clip_mean": clip_mean}

    def of_outputs(self, outputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Actions (m, k) of a network's outputs (m, k)."""
        if self.is_squashed:
            outputs = np.clip(outputs, np.float32(-self.clip_mean), np.float32(self.clip_mean))
            tanh(outputs.reshape(-1))
        return self.rescale(outputs)

    def rescale(self, actions: NDArray[np.float32]) -> NDArray[np.float32]:
        """From -1..1 to the box where actions are squashed, else clipped to it."""
        if not self.is_squashed:
            return np.clip(actions, self.low, self.high)
        scaled = self.low + np.float32(0.5) * (actions + np.float32(1)) * (self.high - self.low)
        return scaled.astype(np.float32)


class BoxMlpAgent(MlpAgent):
    """A perceptron whose outputs are the numbers of an action."""

    def __init__(
        self, name: str, layers: list[Layer], activation: str, box: ActionBox, normaliser: Normaliser | None = None,
        weights: Weights | None = None, hyperparameters: Mapping[str, Any] | None = None, source: str | None = None,
        observation_shape: tuple[int, ...] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name, layers, activation, normaliser, weights, hyperparameters, source, observation_shape)
        n_outputs = layers[-1][0].shape[1]
        if n_outputs != len(box.low):
            raise BadAgentError(f"its network has {n_outputs} outputs for actions of {len(box.low)} numbers")
        self.box, self.n_actions = box, 0
        self.action_low, self.action_high = box.low, box.high
        limits = np.concatenate([box.low, box.high, [box.is_squashed, box.clip_mean]])
        self.sha256 = hashlib.sha256(self.sha256.encode() + limits.astype(np.float32).tobytes()).hexdigest()

    def forward(self, observations: Observations) -> Decision:
        """Wanted actions (m, k) and model states; a box has no preferences."""
        model_states, outputs = self.run(observations)
        return Decision(self.box.of_outputs(outputs), model_states, np.zeros((len(outputs), 0), np.float32))

    def trainable(self) -> Trainable:
        """Only agents with discrete actions can be trained further."""
        raise BadAgentError(
            f"agent {self.name} cannot be trained further: its actions are continuous, learners need discrete ones"
        )
