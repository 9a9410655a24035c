"""Wrappers of observations by name, for environments whose observations are not one row of numbers.

Names are those of this table, and of the entry points `nappingrl.wrappers` of installed packages; a name never imports
anything else. "CarRacing-v3+grayscale+flatten" is an environment with wrappers, the first one next to it.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec, WrapperSpec

from nappingrl.errors import BadSpecError, MissingExtraError, check_name

SEPARATOR = "+"
Known = tuple[str, dict[str, Any], str]
"""module:class of a wrapper, its arguments, and what it does."""

_GYMNASIUM, _MINIGRID = "gymnasium.wrappers", "minigrid.wrappers"
WRAPPERS: dict[str, Known] = {
    "flatten": (f"{_GYMNASIUM}:FlattenObservation", {}, "dictionaries, tuples and images as one row of numbers"),
    "grayscale": (f"{_GYMNASIUM}:GrayscaleObservation", {}, "images without colours"),
    "resize-32": (f"{_GYMNASIUM}:ResizeObservation", {"shape": (32, 32)}, "images of 32 x 32 pixels"),
    "resize-64": (f"{_GYMNASIUM}:ResizeObservation", {"shape": (64, 64)}, "images of 64 x 64 pixels"),
    "resize-84": (f"{_GYMNASIUM}:ResizeObservation", {"shape": (84, 84)}, "images of 84 x 84 pixels"),
    "rescale": (f"{_GYMNASIUM}:RescaleObservation", {"min_obs": 0.0, "max_obs": 1.0}, "numbers from 0 to 1"),
    "stack-4": (f"{_GYMNASIUM}:FrameStackObservation", {"stack_size": 4}, "the last four observations"),
    "minigrid-flat": (f"{_MINIGRID}:FlatObsWrapper", {}, "MiniGrid: image and mission as one row of numbers"),
    "minigrid-image": (f"{_MINIGRID}:ImgObsWrapper", {}, "MiniGrid: the image alone; then flatten"),
    "minigrid-full": (f"{_MINIGRID}:FullyObsWrapper", {}, "MiniGrid: the whole grid; then minigrid-image"),
    "minigrid-one-hot": (f"{_MINIGRID}:OneHotPartialObsWrapper", {}, "MiniGrid: one-hot cells; then minigrid-image"),
    "minigrid-rgb": (f"{_MINIGRID}:RGBImgPartialObsWrapper", {}, "MiniGrid: pixels; then minigrid-image"),
}


@cache
def known_wrappers() -> dict[str, Known]:
    """The wrappers by name, those of installed packages included."""
    installed = {
        point.name: (point.value, dict[str, Any](), f"of {point.dist.name if point.dist else point.module}")
        for point in entry_points(group="nappingrl.wrappers")
    }
    return installed | WRAPPERS


def with_wrappers(env_id: str) -> str | EnvSpec:
    """What gymnasium.make takes for an id, whose environment is registered; a spec where it has names of wrappers."""
    env_id, *names = env_id.split(SEPARATOR)
    if not names:
        return env_id
    spec = gymnasium.spec(env_id.rpartition(":")[2])
    return replace(spec, additional_wrappers=(*spec.additional_wrappers, *wrapper_specs(names)))


def wrapper_specs(names: Sequence[str]) -> tuple[WrapperSpec, ...]:
    """What gymnasium.make puts around an environment for these names; did-you-mean where one is unknown."""
    specs = []
    for name in names:
        check_name("wrapper", name, known_wrappers())
        target, kwargs, _ = known_wrappers()[name]
        _check_installed(name, target)
        specs.append(WrapperSpec(name, target, kwargs))
    return tuple(specs)


def as_made(wrapper: WrapperSpec) -> WrapperSpec | None:
    """A wrapper of an environment so that gymnasium can make it again; None: its arguments are unknown.

    Wrappers that do not record their arguments, as those of MiniGrid, are found by their class among those with a name.
    """
    if wrapper.kwargs is not None:
        return wrapper
    named = [(name, kwargs) for name, (target, kwargs, _) in known_wrappers().items() if target == wrapper.entry_point]
    return WrapperSpec(named[0][0], wrapper.entry_point, named[0][1]) if named else None


def _check_installed(name: str, target: str) -> None:
    module, _, attribute = target.partition(":")
    try:
        getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"wrapper '{name}' needs {error.name}, which is not installed: pip install {package}"
        ) from error
    except Exception as error:  # whatever a package raises while it is imported
        why = " ".join(str(error).split())
        raise BadSpecError(f"wrapper '{name}' cannot be loaded ({type(error).__name__}: {why})") from error
