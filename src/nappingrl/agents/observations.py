"""Observations as users give them: alone or in batches, as arrays or dictionaries of arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.base import Agent
from nappingrl.errors import BadObservationError, BadSpecError


def as_batch(agent: Agent, observation: Any) -> tuple[Any, bool]:
    """The observation with a batch axis, and whether it came without one."""
    if isinstance(observation, tuple) and len(observation) == 2 and isinstance(observation[1], dict):
        raise BadObservationError(
            "a tuple (observation, info) was given: unpack it first, `observation, info = env.reset()`"
        )
    if isinstance(observation, dict):
        batch = {name: np.asarray(value) for name, value in observation.items()}
        shapes = agent.key_shapes
        is_single = all(value.ndim == len(shapes.get(name, ())) for name, value in batch.items())
        return ({name: value[None] for name, value in batch.items()} if is_single else batch), is_single
    array = np.asarray(observation)
    shape = agent.observation_shape
    if shape is not None and array.ndim not in (len(shape), len(shape) + 1):
        raise BadObservationError(
            f"observation of shape {array.shape} given; the agent was trained on {shape}, alone or (n, *shape)"
        )
    is_single = shape is None or array.ndim == len(shape)
    return (array[None] if is_single else array), is_single


def as_column(name: str, value: Any, kind: Any, n: int) -> Any:
    """One value for each of n observations; raises in one line otherwise."""
    column = np.atleast_1d(np.asarray(value, kind))
    if column.shape != (n,):
        raise BadSpecError(f"{name} of shape {column.shape} given for {n} observations; one for each is needed")
    return column


def length_of(batch: Any) -> int:
    """How many observations a batch has."""
    return len(next(iter(batch.values()))) if isinstance(batch, dict) else len(batch)


def are_equal(a: Any, b: Any) -> bool:
    """Whether two batches of observations are the same."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)
    return np.array_equal(a, b)


def in_signs(observation: NDArray[np.floating[Any]]) -> str:
    """Words for observations that have no names."""
    if not len(observation):
        return "anywhere"
    return ", ".join(f"obs[{i}] {'>' if value > 0 else '<='} 0" for i, value in enumerate(observation[:8]))
