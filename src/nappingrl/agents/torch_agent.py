"""Agents that run in torch: any module with a named layer as embedding."""

import hashlib
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from nappingrl.agents.base import Agent, check_observations
from nappingrl.agents.torch_threads import one_thread
from nappingrl.errors import BadAgentError, BadObservationError, check_name
from nappingrl.types import Decision

BLOCK = 8
"""Rows of one pass. As in the numpy agents it is constant, so that a row's bits do not depend on its batch."""

Batch = NDArray[Any] | dict[str, NDArray[Any]]  # (m, *shape), or one such array per key


class TorchBackedAgent(Agent):
    """Runs a torch network on padded blocks of constant size, without gradients."""

    block: ClassVar[int] = BLOCK

    def forward(self, observations: Batch) -> Decision:
        """Wanted actions, model states and preferences of m observations (arrays, or a dictionary of them)."""
        self._check(observations)
        m = _length(observations)
        if m == 0:
            empty = (np.empty((0, n), np.float32) for n in (self.embedding_dim, self.n_actions))
            wanted = np.empty(0, np.int64) if self.action_low is None else np.empty((0, len(self.action_low)), "f4")
            return Decision(wanted, *empty)
        parts: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []
        with torch.no_grad(), one_thread():
            for first in range(0, m, self.block):
                tensors = self._pass(_block(observations, first, min(first + self.block, m), self.block))
                rows = min(self.block, m - first)
                actions, states, preferences = (tensor[:rows].detach().cpu().numpy() for tensor in tensors)
                parts.append((actions, states, preferences))
        actions, states, preferences = (np.concatenate(column) for column in zip(*parts, strict=True))
        kind = np.int64 if self.action_low is None else np.float32
        return Decision(actions.astype(kind), states.astype(np.float32), preferences.astype(np.float32))

    @abstractmethod
    def _pass(self, block: Batch) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Actions (BLOCK,) or (BLOCK, k), model states (BLOCK, d) and preferences (BLOCK, n) of one block."""

    def _check(self, observations: Batch) -> None:
        """Raise in one line if the observations do not fit, or are not finite."""
        for values in observations.values() if isinstance(observations, dict) else [observations]:
            shape = values.shape[1:] if self.observation_shape is None else self.observation_shape
            check_observations(values, shape)


class TorchAgent(TorchBackedAgent):
    """A module that gives (m, n_actions) preferences; the output of one of its layers is the model state.

    Without `observation_shape`, n_actions and embedding_dim are 0 until the first forward pass.
    The module is put into evaluation mode.
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
        self.module, self.embedding, self.name = module, embedding, name
        self._layer = module.get_submodule(embedding)
        self.n_actions, self.embedding_dim, self.observation_shape = n_actions or 0, 0, observation_shape
        self.sha256 = hash_tensors(module.state_dict())
        if observation_shape is not None:
            self.forward(np.zeros((1, *observation_shape), np.float32))

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """The module's state dict."""
        return to_numpy(self.module.state_dict())

    def _pass(self, block: Batch) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        self.module.eval()
        with watched(self._layer) as seen:
            preferences = self.module(self._tensors(block))
        rows = _length(block)
        if not isinstance(preferences, torch.Tensor) or preferences.ndim != 2 or len(preferences) != rows:
            raise BadAgentError(
                f"agent {self.name}: the module gave {_describe(preferences)} for {rows} observations; "
                f"allowed: one tensor of shape ({rows}, n_actions)"
            )
        if self.n_actions not in (0, preferences.shape[1]):
            raise BadAgentError(
                f"agent {self.name}: the module gave {preferences.shape[1]} preferences, not {self.n_actions}"
            )
        state = seen.get("output")
        if not isinstance(state, torch.Tensor) or len(state) != rows:
            raise BadAgentError(
                f"agent {self.name}: layer '{self.embedding}' gave {_describe(state)}; "
                "allowed: a layer that runs in every pass and gives one row for each observation"
            )
        self.n_actions, self.embedding_dim = preferences.shape[1], state[0].numel()
        return preferences.argmax(dim=1), state.reshape(rows, -1), preferences

    def _tensors(self, block: Batch) -> Any:
        """Tensors on the module's device: floats in its precision, integers as they are."""
        if isinstance(block, dict):
            return {key: self._tensors(values) for key, values in block.items()}
        tensor = torch.as_tensor(block)
        like = next(self.module.parameters(), torch.zeros(()))
        return tensor.to(like.device, like.dtype if tensor.is_floating_point() else None)


@contextmanager
def watched(layer: torch.nn.Module) -> Iterator[dict[str, Any]]:
    """Notes the `input` and `output` of a layer while a network runs."""
    seen: dict[str, Any] = {}

    def note(_: torch.nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        seen["input"], seen["output"] = inputs[0] if inputs else None, output

    handle = layer.register_forward_hook(note)
    try:
        yield seen
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


def _length(observations: Batch) -> int:
    if not isinstance(observations, dict):
        return len(observations)
    lengths = {len(values) for values in observations.values()}
    if len(lengths) != 1:
        raise BadObservationError(f"the entries of a dictionary observation have lengths {sorted(lengths)}, not one")
    return lengths.pop()


def _block(observations: Batch, first: int, last: int, size: int) -> Batch:
    """Rows first..last, the last one repeated up to `size` rows."""
    if isinstance(observations, dict):
        return {key: np.asarray(_block(values, first, last, size)) for key, values in observations.items()}
    rows = np.minimum(np.arange(first, first + size), last - 1)
    return np.ascontiguousarray(observations[rows])


def _describe(value: Any) -> str:
    return f"a tensor of shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else f"a {type(value).__name__}"
