"""Environments by their gymnasium id: found, made, and read as the subject of novelties."""

import re
from difflib import get_close_matches
from functools import lru_cache, partial
from importlib import import_module
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Box, Discrete

from nappingrl.errors import BadSpecError, MissingExtraError, UnknownNameError
from nappingrl.novelties.attributes import read_constants
from nappingrl.novelties.description import Subject
from nappingrl.novelties.verify import play

Env = gymnasium.Env[Any, Any]
ID = re.compile(r"(?:[\w.]+:)?(?:[\w:-]+/)?[\w:.-]+-v[0-9]+")
"""[module:][namespace/]Name-vN"""


def find_spec(env_id: str) -> EnvSpec:
    """The registered environment; one line with the nearest id where there is none."""
    module, colon, name = env_id.rpartition(":")
    if colon:
        try:
            import_module(module)
        except ModuleNotFoundError as error:
            raise BadSpecError(
                f"module '{error.name}' of environment '{env_id}' is not found; is its folder in PYTHONPATH?"
            ) from error
    spec = gymnasium.registry.get(name)
    if spec is not None:
        return spec
    lower = {key.lower(): key for key in gymnasium.registry}
    near = get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
    hint = f" Did you mean '{lower[near[0]]}'?" if near else ""
    raise UnknownNameError(
        f"unknown environment '{env_id}'; allowed: ids that are registered with gymnasium, such as Acrobot-v1, or "
        f"module:id for those that a module of yours registers.{hint}"
    )


def make_env(spec: EnvSpec) -> Env:
    """A fresh environment without pictures and without a time limit: trials count the steps themselves."""
    kwargs = {name: value for name, value in spec.kwargs.items() if name != "render_mode"}
    plain = EnvSpec(**{name: getattr(spec, name) for name in _FIELDS}, kwargs=kwargs)
    try:
        return gymnasium.make(plain, max_episode_steps=-1, disable_env_checker=True)
    except gymnasium.error.DependencyNotInstalled as error:
        raise MissingExtraError(f"{spec.id} needs more than gymnasium: {_one_line(error)}") from error
    except gymnasium.error.Error as error:
        raise BadSpecError(f"{spec.id} cannot be made: {_one_line(error)}") from error


_FIELDS = ("id", "entry_point", "reward_threshold", "nondeterministic", "order_enforce")


def read_subject(spec: EnvSpec) -> Subject:
    """What descriptions of novelties may refer to in this environment."""
    make = partial(make_env, spec)
    env = make()
    actions, observations = env.action_space, env.observation_space
    env.close()
    if not isinstance(observations, Box) or len(observations.shape) != 1:
        raise BadSpecError(
            f"{spec.id} has observations {observations}; allowed: one row of numbers (a flat Box); "
            "gymnasium.wrappers.FlattenObservation makes one"
        )
    if not isinstance(actions, Discrete) and not (isinstance(actions, Box) and len(actions.shape) == 1):
        raise BadSpecError(f"{spec.id} has actions {actions}; allowed: Discrete, or one row of numbers (a flat Box)")
    n_actions = int(actions.n) if isinstance(actions, Discrete) else 0
    return Subject(spec.id, read_constants(make, partial(play, episodes=2)), n_actions, observations.shape[0])


@lru_cache
def subject_of(env_id: str) -> Subject:
    """The same of a registered environment."""
    return read_subject(find_spec(env_id))


def _one_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
