"""Batches of observations: arrays (m, *shape), or dictionaries of such arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from nappingrl.agents.base import Agent
from nappingrl.errors import BadObservationError, BadSpecError
from nappingrl.types import Decision, Flags, Transition

_INTEGERS = 2.0**63  # the magnitudes that an int64 can hold are below


def as_batch(agent: Agent, observation: Any) -> tuple[Any, bool]:
    """The observation with a batch axis, and whether the axis was added here."""
    if isinstance(observation, tuple) and len(observation) == 2 and isinstance(observation[1], dict):
        raise BadObservationError(
            "a tuple (observation, info) was given: unpack it first, `observation, info = env.reset()`"
        )
    batch = _map_arrays(_as_numbers, observation)
    if agent.n_states and not isinstance(batch, dict) and batch.dtype.kind in "iu":
        batch = one_hot(batch, agent.n_states)
    is_single = _is_single(agent, batch)
    return (_map_arrays(lambda array: array[None], batch) if is_single else batch), is_single


def _as_numbers(values: Any) -> NDArray[Any]:
    numbers = np.asarray(values)
    if numbers.dtype.kind not in "biuf":
        raise BadObservationError(f"observation {values!r:.60} given; an array of real numbers is needed")
    return numbers


def check_alike(batch: Any, next_batch: Any) -> None:
    """Raise if observations and next observations differ in their number or shape."""
    shapes, next_shapes = _map_arrays(np.shape, batch), _map_arrays(np.shape, next_batch)
    if shapes != next_shapes:
        raise BadObservationError(
            f"observations of shape {shapes} but next observations of shape {next_shapes} given; make them alike"
        )


def one_hot(states: NDArray[Any], n: int) -> NDArray[np.float32]:
    """One whole number, or (m,) of them, as SB3 encodes them."""
    if states.size and not (states.min() >= 0 and states.max() < n):
        raise BadObservationError(
            f"observation {states} given; the agent was trained on whole numbers from 0 to {n - 1}"
        )
    encoded = np.zeros((*states.shape, n), np.float32)
    np.put_along_axis(encoded, states[..., None], 1.0, axis=-1)
    return encoded


def _is_single(agent: Agent, observation: Any) -> bool:
    """Whether the observation has no batch axis."""
    if isinstance(observation, dict):
        return all(array.ndim == len(agent.key_shapes.get(key, ())) for key, array in observation.items())
    shape = agent.observation_shape
    if shape is None:
        return True
    if observation.ndim not in (len(shape), len(shape) + 1):
        raise BadObservationError(
            f"observation of shape {observation.shape} given; "
            f"the agent was trained on {shape}: give one observation, or a batch (n, *shape)"
        )
    return bool(observation.ndim == len(shape))


def as_column(name: str, value: ArrayLike, dtype: DTypeLike | None, n: int) -> Any:
    """One value for each of n observations, (n,)."""
    try:
        column = np.atleast_1d(np.asarray(value, dtype))
    except (TypeError, ValueError, OverflowError):
        raise BadSpecError(f"{name} {value!r:.60} given; a number for each observation is needed") from None
    if column.shape != (n,):
        raise BadSpecError(f"{name} of shape {column.shape} given for {n} observations; give one value for each")
    return column


def as_actions(agent: Agent, action: Any, n: int) -> NDArray[Any]:
    """Executed actions as (n,) or, if continuous, (n, k); raises in one line where they do not fit the agent.

    Discrete actions are integers, except in a batch with a number that no integer can hold, such as NaN.
    """
    low = agent.action_low
    if low is None:
        return _as_choices(agent.n_actions, action, n)
    numbers = np.atleast_1d(np.asarray(action, np.float32))
    numbers = numbers[None] if numbers.ndim == 1 and n == 1 else numbers
    if numbers.shape != (n, len(low)):
        raise BadSpecError(f"action {action} given for {n} observations; {len(low)} numbers each are needed")
    return numbers


def _as_choices(n_actions: int, action: Any, n: int) -> NDArray[Any]:
    """Executed discrete actions, (n,)."""
    choices: NDArray[Any] = as_column("action", action, None, n)
    numbers = choices[np.abs(choices) < _INTEGERS] if choices.dtype.kind == "f" else choices
    if len(numbers) == n:
        choices = numbers = as_column("action", action, np.int64, n)
    if np.any((numbers < 0) | (numbers >= n_actions)):
        raise BadSpecError(f"action {action} given; the agent's are 0 to {n_actions - 1}")
    return choices


def length_of(batch: Any) -> int:
    """The number of observations in a batch."""
    if not isinstance(batch, dict):
        return len(batch)
    lengths = {len(array) for array in batch.values()}
    if len(lengths) != 1:
        raise BadObservationError(
            f"the entries of a dictionary observation have lengths {sorted(lengths)}; they must be equal"
        )
    return lengths.pop()


def take(batch: Any, at: Any) -> Any:
    """Some rows of a batch; `at` is an index array, a mask or a slice."""
    return _map_arrays(lambda array: array[at], batch)


def take_padded(batch: Any, first: int, size: int) -> Any:
    """`size` rows from `first` on; the last row is repeated where the batch is too short."""
    rows = np.minimum(np.arange(first, first + size), length_of(batch) - 1)
    return _map_arrays(lambda array: np.ascontiguousarray(array[rows]), batch)


def take_decision(decision: Decision, at: Any) -> Decision:
    """Some rows of a decision."""
    return Decision(decision.actions[at], decision.model_states[at], decision.preferences[at])


def take_transition(transition: Transition, at: Any) -> Transition:
    """Some rows of a transition."""
    return Transition(
        observations=take(transition.observations, at),
        decision=take_decision(transition.decision, at),
        actions=transition.actions[at],
        next_observations=take(transition.next_observations, at),
        rewards=transition.rewards[at],
        terminated=transition.terminated[at],
        truncated=transition.truncated[at],
    )


def merge_decisions(at: Flags, there: Decision, elsewhere: Decision) -> Decision:
    """One decision with the rows of two: those of `there` where `at` is true."""
    return Decision(
        _merge(at, there.actions, elsewhere.actions),
        _merge(at, there.model_states, elsewhere.model_states),
        _merge(at, there.preferences, elsewhere.preferences),
    )


def _merge(at: Flags, there: NDArray[Any], elsewhere: NDArray[Any]) -> NDArray[Any]:
    both = np.empty((len(at), *there.shape[1:]), there.dtype)
    both[at], both[~at] = there, elsewhere
    return both


def are_equal(a: Any, b: Any) -> bool:
    """Whether two batches of observations are the same."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(np.array_equal(a[key], b[key]) for key in a)
    return np.array_equal(a, b)


def _map_arrays(function: Callable[[Any], Any], batch: Any) -> Any:
    """Apply a function to the array, or to each array of a dictionary."""
    if isinstance(batch, dict):
        return {key: function(array) for key, array in batch.items()}
    return function(batch)
