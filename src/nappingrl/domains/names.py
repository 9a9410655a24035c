"""Names of the observations and actions of well-known environments."""

from nappingrl.registry import domains
from nappingrl.types import DomainSpec

Names = tuple[str, ...]

NAMES: dict[str, tuple[Names, Names]] = {
    "Acrobot-v1": (
        ("cos(joint 1)", "sin(joint 1)", "cos(joint 2)", "sin(joint 2)", "speed of joint 1", "speed of joint 2"),
        ("torque -1", "no torque", "torque +1"),
    ),
    "MountainCarContinuous-v0": (("position", "velocity"), ()),
    "Pendulum-v1": (("cos(angle)", "sin(angle)", "angular velocity"), ()),
    "LunarLander-v3": (
        ("x", "y", "x velocity", "y velocity", "angle", "angular velocity", "left leg down", "right leg down"),
        ("no engine", "left engine", "main engine", "right engine"),
    ),
}
BUILT_IN = {"CartPole-v1": "cartpole", "MountainCar-v0": "mountaincar"}
"""Environments whose names are those of a built-in domain."""


def find_names(env_id: str, n_observations: int, n_actions: int) -> tuple[Names, Names]:
    """What observations and actions are called; by their numbers where nothing else is known."""
    observations, actions = NAMES.get(env_id, ((), ()))
    built_in = BUILT_IN.get(env_id) or next((entry.name for entry in domains.entries() if entry.env_id == env_id), "")
    if built_in:
        spec: DomainSpec = domains.get(built_in).spec
        observations, actions = spec.observation_names, spec.action_names
    return (
        observations if len(observations) == n_observations else _numbered("observation", n_observations),
        actions if len(actions) == n_actions else _numbered("action", n_actions),
    )


def _numbered(kind: str, n: int) -> Names:
    return tuple(f"{kind} {i}" for i in range(n))
