"""NS-Gym both ways: its environments and settings here, our novelties there.

Register an environment of it with gymnasium, wrapped in `Plain`, and it can replace the environment that the agent
knows: `--env CartPole-v1 --novelty other-env=my_module:Drifting-v0`. `description_of` writes the updates of its
parameters as a description of ours; `as_updates` makes updates for its wrappers from a description.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, SupportsFloat

import gymnasium
from gymnasium.spaces import Dict

from nappingrl.errors import BadSpecError, MissingExtraError, check_whole
from nappingrl.novelties.description import read_description
from nappingrl.novelties.schedule import MAX_JUMPS, MAX_TIME, STEPS, Schedule
from nappingrl.novelties.subject import find_spec, read_env
from nappingrl.novelties.terms import TERMS, neutral_of, split_name


class Plain(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Shows the state of an ns_gym environment without its notes on change, and its reward as a number."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        space = env.observation_space
        self.observation_space = space["state"] if isinstance(space, Dict) else space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        return _state(observation), info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """One step."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return _state(observation), float(getattr(reward, "reward", reward)), terminated, truncated, info


def _state(observation: Any) -> Any:
    return observation["state"] if isinstance(observation, dict) else observation


def description_of(updates: Mapping[str, Any], before: Mapping[str, float], steps: int) -> str:
    """The updates of an ns_gym wrapper, {"gravity": IncrementUpdate(...)}, as a description over a number of steps.

    Each update is called as ns_gym calls it, with the value and the time. It may be random: its values are written
    down as they come. `before` are the values before the first step.
    """
    check_whole("steps", steps, 1, MAX_TIME)
    parts = []
    for name, update in updates.items():
        value, jumps = float(before[name]), list[float]()
        for time in range(steps):
            after = float(update(value, time)[0])
            jumps += [after, time] if after != value else []
            value = after
        if not jumps or len(jumps) > 2 * MAX_JUMPS:
            fault = "changes nothing" if not jumps else f"changes more than {MAX_JUMPS} times"
            raise BadSpecError(f"the update of {name} {fault} in {steps} steps")
        parts.append(f"{name}={Schedule('jumps', tuple(jumps), STEPS)}")
    return "; ".join(parts)


def _update_class() -> type[Any]:
    try:
        found: type[Any] = import_module("ns_gym.base").UpdateFn
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"as_updates needs {error.name}, which is not installed: pip install ns-gym") from None
    return found


def as_updates(env_id: str, novelty: str, base: type[Any] | None = None) -> dict[str, Any]:
    """The updates that wrappers of ns_gym, such as NSClassicControlWrapper, take, from a description.

    Values hold from the first step on, and schedules count steps, as ns_gym does. `base` is `ns_gym.base.UpdateFn`.
    """
    base = base or _update_class()
    domain = read_env(find_spec(env_id))
    description = read_description(novelty, domain)

    class Follows(base):  # type: ignore[misc, valid-type]
        """An update that fires at every step."""

        def __init__(self, schedule: Schedule, usual: float) -> None:
            super().__init__(lambda time: True)
            self._schedule, self._usual = schedule, usual

        def update(self, param: float, t: int) -> float:
            return self._schedule.value(int(t), self._usual)

    updates = {}
    for flat, (low, high) in description.ranges.items():
        if split_name(flat)[0] in TERMS or low != high:
            raise BadSpecError(f"{flat} of '{novelty}' cannot be given to ns_gym: only attributes with one value can")
        schedule = description.schedules.get(flat, Schedule("jumps", (low, 0.0), STEPS))
        if schedule.unit != STEPS:
            raise BadSpecError(f"{flat}={schedule}: ns_gym changes numbers within an episode; give a time in steps")
        updates[flat] = Follows(schedule, neutral_of(flat, domain))
    return updates
