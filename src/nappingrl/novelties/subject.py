"""The environment that a novelty changes: found by its id, made, and read as a DomainSpec."""

from functools import lru_cache, partial
from importlib import import_module

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Box, Discrete
from gymnasium.wrappers import FlattenObservation

from nappingrl.env_wrappers import SEPARATOR, known_wrappers, with_wrappers
from nappingrl.errors import BadSpecError, MissingExtraError, UnknownNameError, did_you_mean, shown
from nappingrl.novelties.attributes import Env, read_constants
from nappingrl.novelties.verify import play
from nappingrl.registry import domains
from nappingrl.types import DomainSpec

PACKAGES = {"MiniGrid-": "minigrid", "BabyAI-": "minigrid"}
"""Packages that register their environments only when they are imported, by the beginning of the ids."""
MAX_MODULE = 200
"""Characters in the name of a module."""


def find_spec(env_id: str) -> EnvSpec:
    """The registered environment, with its wrappers; one line with the nearest id where there is none."""
    plain = _find_plain(env_id.split(SEPARATOR)[0])
    found = with_wrappers(env_id)
    return plain if isinstance(found, str) else found


def full_id(spec: EnvSpec) -> str:
    """The id with the names of its wrappers: CarRacing-v3+flatten."""
    names = [wrapper.name for wrapper in spec.additional_wrappers if wrapper.name in known_wrappers()]
    return SEPARATOR.join([spec.id, *names])


def _find_plain(env_id: str) -> EnvSpec:
    module, colon, name = env_id.rpartition(":")
    if colon:
        _import(module, env_id)
    if name not in gymnasium.registry:
        domains.entries()  # registers the environments of installed packages
        _import_package(name)
    spec = gymnasium.registry.get(name)
    if spec is not None:
        return spec
    hint = did_you_mean(name, gymnasium.registry)
    raise UnknownNameError(
        f"unknown environment '{shown(env_id)}'; allowed: ids that are registered with gymnasium, such as Acrobot-v1, "
        f"or module:id for those that a module of yours registers.{hint}"
    )


def _import_package(name: str) -> None:
    """Import the well-known package that registers an environment of this name."""
    package = next((package for start, package in PACKAGES.items() if name.startswith(start)), "")
    try:
        if package:
            import_module(package)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{shown(name)} needs {error.name}, which is not installed: pip install {package}"
        ) from error


def _import(module: str, env_id: str) -> None:
    """Import the module that registers an environment."""
    if not all(part.isidentifier() for part in module.split(".")) or len(module) > MAX_MODULE:
        raise BadSpecError(
            f"environment '{shown(env_id)}' has no module before its ':'; "
            "give module:id such as my_envs:MyEnv-v0, or the id alone"
        )
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        raise BadSpecError(
            f"module '{error.name}' of environment '{env_id}' is not found; is its folder in PYTHONPATH?"
        ) from error
    except Exception as error:  # whatever a module raises while it is imported
        why = f"{type(error).__name__}: {_one_line(error)}"
        raise BadSpecError(f"module '{module}' of environment '{env_id}' cannot be imported ({why})") from error


def make_env(spec: EnvSpec, render_mode: str | None = None) -> Env:
    """A fresh environment for trials; observations that are one whole number are encoded one-hot, as SB3 does."""
    env = make_plain(spec, render_mode)
    return FlattenObservation(env) if isinstance(env.observation_space, Discrete) else env


def make_plain(spec: EnvSpec, render_mode: str | None = None) -> Env:
    """A fresh environment without a time limit, trials count the steps themselves; without pictures unless asked."""
    kwargs = {name: value for name, value in spec.kwargs.items() if name != "render_mode"}
    kwargs |= {"render_mode": render_mode} if render_mode else {}
    plain = EnvSpec(**{name: getattr(spec, name) for name in _FIELDS}, kwargs=kwargs)
    try:
        return gymnasium.make(plain, max_episode_steps=-1, disable_env_checker=True)
    except gymnasium.error.DependencyNotInstalled as error:
        raise MissingExtraError(f"{spec.id} needs more than gymnasium: {_one_line(error)}") from error
    except gymnasium.error.Error as error:
        raise BadSpecError(f"{spec.id} cannot be made: {_one_line(error)}") from error
    except Exception as error:  # a wrapper raises anything where the observations do not suit it
        if not spec.additional_wrappers:
            raise
        why = f"{type(error).__name__}: {_one_line(error)}".removesuffix(": ")
        raise BadSpecError(f"{full_id(spec)} cannot be made ({why}); wrappers that suit it: {_advice(spec)}") from error


_FIELDS = ("id", "entry_point", "reward_threshold", "nondeterministic", "order_enforce", "additional_wrappers")


def time_limit(spec: EnvSpec, env: Env) -> int:
    """The steps of an episode, by the spec or by the environment's `max_steps`, as MiniGrid has it; 0: no limit."""
    limit = spec.max_episode_steps or getattr(env.unwrapped, "max_steps", None)
    return limit if isinstance(limit, int) and limit > 0 else 0


def _advice(spec: EnvSpec) -> str:
    """Wrappers that make one row of numbers of most observations of such an environment."""
    is_minigrid = any(spec.id.startswith(start) for start in PACKAGES)
    return f"--wrap {'minigrid-image ' * is_minigrid}flatten, for others see `napping list`"


def read_env(spec: EnvSpec) -> DomainSpec:
    """The spaces of an environment and its constants: all that a description of a novelty may refer to."""
    make = partial(make_env, spec)
    env = make()
    actions, observations, name = env.action_space, env.observation_space, full_id(spec)
    horizon = time_limit(spec, env)
    env.close()
    if not isinstance(observations, Box) or len(observations.shape) != 1:
        raise BadSpecError(
            f"{name} has observations {shown(str(observations))}; allowed: one row of numbers (a flat Box) or one "
            f"whole number; wrappers make one: {_advice(spec)}"
        )
    if not isinstance(actions, Discrete) and not (isinstance(actions, Box) and len(actions.shape) == 1):
        raise BadSpecError(f"{name} has actions {actions}; allowed: Discrete, or one row of numbers (a flat Box)")
    no_bounds = np.zeros(0, np.float32)
    return DomainSpec(
        name=name,
        title=name,
        env_id=name,
        observation_low=observations.low.astype(np.float32),
        observation_high=observations.high.astype(np.float32),
        n_actions=int(actions.n) if isinstance(actions, Discrete) else 0,
        action_low=actions.low if isinstance(actions, Box) else no_bounds,
        action_high=actions.high if isinstance(actions, Box) else no_bounds,
        horizon=horizon,
        constants=read_constants(make, partial(play, episodes=2)),
    )


@lru_cache
def read_env_by_id(env_id: str) -> DomainSpec:
    """The same for a registered environment."""
    return read_env(find_spec(env_id))


def _one_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
