"""Agents with continuous actions: SB3's Gaussian policies (PPO, A2C), SAC, TD3 and DDPG."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import override

from nappingrl.agents.activations import tanh
from nappingrl.agents.base import Layer, Trainable
from nappingrl.agents.mlp import MlpAgent, Normaliser
from nappingrl.agents.state_dict import Weights
from nappingrl.errors import BadAgentError
from nappingrl.types import Decision, Observations

CLIP_MEAN = 2.0
"""SB3's default limit of the mean of SAC with state-dependent noise."""


@dataclass(frozen=True, slots=True)
class ActionBox:
    """The bounds of an agent's actions, and how they are applied to the outputs of its network."""

    low: NDArray[np.float32]
    high: NDArray[np.float32]
    is_squashed: bool
    """Whether outputs pass through tanh and are scaled to the bounds; otherwise they are clipped to them."""
    clip_mean: float = np.inf
    """Outputs are clipped to +-clip_mean before the tanh."""

    @classmethod
    def make(cls, kind: str, low: ArrayLike, high: ArrayLike, options: Mapping[str, Any]) -> "ActionBox":
        """The box of a policy of this kind (see `policy_layers`) with these keyword arguments of SB3's policy class."""
        is_squashed = kind != "gaussian" or options.get("squash_output") is True
        clip_mean = float(options.get("clip_mean", CLIP_MEAN)) if kind == "sac-sde" else np.inf
        box = cls(np.array(low, np.float32), np.array(high, np.float32), is_squashed, clip_mean)
        if box.low.ndim != 1 or box.low.shape != box.high.shape or not (box.low < box.high).all():
            limits = f"{low!s:.80} and {high!s:.80}"
            raise BadAgentError(f"its actions lie between {limits}; only one row of numbers is supported")
        if not np.isfinite([box.low, box.high]).all():
            raise BadAgentError("its actions are unbounded; only finite bounds are supported")
        return box

    @classmethod
    def from_card(cls, content: Mapping[str, Any]) -> "ActionBox":
        """The box that `to_card` wrote."""
        return cls(
            low=np.array(content["low"], np.float32),
            high=np.array(content["high"], np.float32),
            is_squashed=bool(content["is_squashed"]),
            clip_mean=np.inf if content["clip_mean"] is None else float(content["clip_mean"]),
        )

    def to_card(self) -> dict[str, Any]:
        """The box as entries of a card."""
        return {
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "is_squashed": self.is_squashed,
            "clip_mean": self.clip_mean if np.isfinite(self.clip_mean) else None,
        }

    def to_actions(self, outputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """The actions (m, k) for the outputs (m, k) of a network."""
        return self.rescale(self.squash(outputs) if self.is_squashed else outputs)

    def squash(self, outputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """The outputs of a network after the tanh, in -1..1."""
        squashed = np.clip(outputs, np.float32(-self.clip_mean), np.float32(self.clip_mean))
        tanh(squashed.reshape(-1))
        return squashed

    def rescale(self, actions: NDArray[np.float32]) -> NDArray[np.float32]:
        """Scale actions in -1..1 to the bounds if they are squashed, otherwise clip them."""
        if not self.is_squashed:
            return np.clip(actions, self.low, self.high)
        scaled = self.low + np.float32(0.5) * (actions + np.float32(1)) * (self.high - self.low)
        return scaled.astype(np.float32)


class BoxMlpAgent(MlpAgent):
    """A perceptron whose outputs are a continuous action."""

    def __init__(
        self, name: str, layers: list[Layer], activation: str, box: ActionBox, normaliser: Normaliser | None = None,
        weights: Weights | None = None, hyperparameters: Mapping[str, Any] | None = None, source: str | None = None,
        observation_shape: tuple[int, ...] | None = None, reward_scale: float | None = 1.0,
    ) -> None:  # fmt: skip
        super().__init__(
            name, layers, activation, normaliser, weights, hyperparameters, source, observation_shape,
            reward_scale=reward_scale,
        )  # fmt: skip
        n_outputs = layers[-1][0].shape[1]
        if n_outputs != len(box.low):
            raise BadAgentError(f"its network has {n_outputs} outputs for actions of {len(box.low)} numbers")
        self.box = box
        self.n_actions = 0
        self.action_low = box.low
        self.action_high = box.high
        limits = np.concatenate([box.low, box.high, [box.is_squashed, box.clip_mean]])
        self.sha256 = hashlib.sha256(self.sha256.encode() + limits.astype(np.float32).tobytes()).hexdigest()

    @override
    def forward(self, observations: Observations) -> Decision:
        model_states, outputs = self.run(observations)
        no_preferences = np.zeros((len(outputs), 0), np.float32)
        return Decision(self.box.to_actions(outputs), model_states, no_preferences)

    @override
    def squash(self, outputs: NDArray[np.float32]) -> NDArray[np.float32]:
        return self.box.squash(outputs)

    @override
    def trainable(self) -> Trainable:
        raise BadAgentError(
            f"agent {self.name} cannot be trained further: its actions are continuous, learners need discrete ones"
        )
