"""Agents that run in torch: any module with a named layer as embedding."""

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from typing_extensions import override

from nappingrl.agents.base import Agent, check_observations
from nappingrl.agents.observations import length_of, take_padded
from nappingrl.errors import BadAgentError, check_name
from nappingrl.types import Decision

BLOCK = 8
"""Rows per pass. It is constant, as in the numpy agents, so that a row's bits do not depend on its batch."""

Batch = NDArray[Any] | dict[str, NDArray[Any]]  # (m, *shape), or one such array per key


class TorchBackedAgent(Agent):
    """Runs a torch network on padded blocks of constant size, without gradients."""

    block: ClassVar[int] = BLOCK

    @override
    def forward(self, observations: Batch) -> Decision:
        self._check(observations)
        if length_of(observations) == 0:
            return self._empty_decision()
        actions, states, preferences = self._in_blocks(self._pass, observations)
        dtype = np.int64 if self.action_low is None else np.float32
        return Decision(actions.astype(dtype), states.astype(np.float32), preferences.astype(np.float32))

    def _in_blocks(
        self, run: Callable[[Batch], tuple[torch.Tensor, ...]], observations: Batch
    ) -> tuple[NDArray[Any], ...]:
        """What a pass gives for blocks of constant size, put together."""
        m = length_of(observations)
        parts: list[tuple[NDArray[Any], ...]] = []
        with torch.no_grad(), one_thread():
            for first in range(0, m, self.block):
                tensors = run(take_padded(observations, first, self.block))
                rows = min(self.block, m - first)
                parts.append(tuple(tensor[:rows].detach().cpu().numpy() for tensor in tensors))
        return tuple(np.concatenate(column) for column in zip(*parts, strict=True))

    def _empty_decision(self) -> Decision:
        """The decision for no observations."""
        return Decision(
            actions=np.empty(0, np.int64) if self.action_low is None else np.empty((0, len(self.action_low)), "f4"),
            model_states=np.empty((0, self.embedding_dim), np.float32),
            preferences=np.empty((0, self.n_actions), np.float32),
        )

    @abstractmethod
    def _pass(self, block: Batch) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Actions (BLOCK,) or (BLOCK, k), model states (BLOCK, d) and preferences (BLOCK, n) of one block."""

    def _check(self, observations: Batch) -> None:
        """Raise if the observations do not fit, or are not finite."""
        for values in observations.values() if isinstance(observations, dict) else [observations]:
            shape = values.shape[1:] if self.observation_shape is None else self.observation_shape
            check_observations(values, shape)


class TorchAgent(TorchBackedAgent):
    """A torch module that returns preferences (m, n_actions); the output of one of its layers is the model state.

    Without `observation_shape`, n_actions and embedding_dim are 0 until the first forward pass. The module is set to
    evaluation mode.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        embedding: str,
        n_actions: int | None = None,
        name: str = "torch",
        observation_shape: tuple[int, ...] | None = None,
    ) -> None:
        check_name("layer", embedding, (layer for layer, _ in module.named_modules() if layer))
        self.module = module
        self.embedding = embedding
        self.name = name
        self._layer = module.get_submodule(embedding)
        self.n_actions = n_actions or 0
        self.embedding_dim = 0
        self.observation_shape = observation_shape
        self.sha256 = hash_tensors(module.state_dict())
        if observation_shape is not None:
            self.forward(np.zeros((1, *observation_shape), np.float32))

    @override
    def weights(self) -> dict[str, NDArray[np.float32]]:
        return to_numpy(self.module.state_dict())

    @override
    def _pass(self, block: Batch) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        self.module.eval()
        with captured(self._layer) as layer:
            preferences = self.module(self._tensors(block))
        rows = length_of(block)
        if not isinstance(preferences, torch.Tensor) or preferences.ndim != 2 or len(preferences) != rows:
            raise BadAgentError(
                f"agent {self.name}: the module gave {_describe(preferences)} for {rows} observations; "
                f"allowed: one tensor of shape ({rows}, n_actions)"
            )
        if self.n_actions not in (0, preferences.shape[1]):
            raise BadAgentError(
                f"agent {self.name}: the module gave {preferences.shape[1]} preferences, not {self.n_actions}"
            )
        state = layer.get("output")
        if not isinstance(state, torch.Tensor) or len(state) != rows:
            raise BadAgentError(
                f"agent {self.name}: layer '{self.embedding}' gave {_describe(state)}; "
                "allowed: a layer that runs in every pass and gives one row for each observation"
            )
        self.n_actions = preferences.shape[1]
        self.embedding_dim = state[0].numel()
        return preferences.argmax(dim=1), state.reshape(rows, -1), preferences

    def _tensors(self, block: Batch) -> Any:
        """Tensors on the module's device: floats in its precision, integers as they are."""
        if isinstance(block, dict):
            return {key: self._tensors(values) for key, values in block.items()}
        tensor = torch.as_tensor(block)
        like = next(self.module.parameters(), torch.zeros(()))
        return tensor.to(like.device, like.dtype if tensor.is_floating_point() else None)


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch to one thread: more are slower at these sizes, and their number changes the bits."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def captured(layer: torch.nn.Module) -> Iterator[dict[str, Any]]:
    """Capture the `input` and `output` of a layer while a network runs."""
    values: dict[str, Any] = {}

    def capture(_: torch.nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        values["input"] = inputs[0] if inputs else None
        values["output"] = output

    handle = layer.register_forward_hook(capture)
    try:
        yield values
    finally:
        handle.remove()


def to_numpy(tensors: Mapping[str, Any]) -> dict[str, NDArray[np.float32]]:
    """A state dict as float32 arrays."""
    return {
        name: tensor.detach().cpu().to(torch.float32).numpy().copy()
        for name, tensor in tensors.items()
        if isinstance(tensor, torch.Tensor)
    }


def hash_tensors(tensors: Mapping[str, Any]) -> str:
    """Hash of a state dict: names, shapes and values."""
    digest = hashlib.sha256()
    for name, tensor in tensors.items():
        if isinstance(tensor, torch.Tensor):
            values = tensor.detach().cpu().to(torch.float64).numpy()
            digest.update(f"{name}{values.shape}".encode() + values.tobytes())
    return digest.hexdigest()


def _describe(value: Any) -> str:
    return f"a tensor of shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else f"a {type(value).__name__}"
