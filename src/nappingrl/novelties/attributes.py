"""The numbers that an environment is made of, and what follows from them when it is made."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from numbers import Real
from typing import Any

import gymnasium
import numpy as np

from nappingrl.errors import BadSpecError
from nappingrl.novelties.terms import split_name

Env = gymnasium.Env[Any, Any]
Make = Callable[[], Env]
Play = Callable[[Env], Iterable[Any]]
"""Plays some episodes in an environment."""

MOST_ENTRIES = 16
"""Longer sequences are tables or states, not constants."""
_DRAWING = re.compile(r"screen|render|viewport|window|isopen", re.IGNORECASE)


def has_parameters(env: Env) -> bool:
    """Whether the environment is a domain of this package: it has named parameters instead of attributes."""
    return hasattr(env.unwrapped, "set_params")


def read_attributes(env: Env) -> dict[str, Any]:
    """The numbers among the attributes of the unwrapped environment, entries of sequences as NAME[i]."""
    bare: Any = env.unwrapped
    if has_parameters(env):
        return dict(bare.params)
    raw: dict[str, Any] = {}
    for kind in reversed(type(bare).__mro__):
        raw |= vars(kind)
    found: dict[str, Any] = {}
    for name, value in (raw | vars(bare)).items():
        if name.startswith("_") or _DRAWING.search(name):
            continue
        if _is_number(value):
            found[name] = value
        elif _is_row(value) and len(value) <= MOST_ENTRIES:
            entries = {f"{name}[{i}]": entry for i, entry in enumerate(value)}
            found |= entries if all(map(_is_number, entries.values())) else {}
    return found


def read_constants(make: Make, play: Play) -> dict[str, Any]:
    """Those that stay what they were through episodes: the rest is the environment's state."""
    env = make()
    before = read_attributes(env)
    for _ in play(env):
        pass
    after = read_attributes(env)
    env.close()
    return {name: value for name, value in before.items() if name in after and after[name] == value}


def set_attributes(env: Env, values: Mapping[str, float]) -> None:
    """Change attributes of the unwrapped environment; what belongs to its class stays as it is."""
    bare: Any = env.unwrapped
    if has_parameters(env):
        bare.set_params(**(bare.params | dict(values)))
        return
    for flat, value in values.items():
        name, entry = split_name(flat)
        old = getattr(bare, name)
        if entry is None:
            setattr(bare, name, _like(old, value))
            continue
        changed = list(old)
        changed[entry] = _like(old[entry], value)
        if isinstance(old, np.ndarray):
            setattr(bare, name, np.array(changed, old.dtype if old.dtype.kind == "f" else None))
        else:
            setattr(bare, name, type(old)(changed))


def make_with(make: Make, values: Mapping[str, float]) -> Env:
    """The environment as it is made where these numbers hold from the beginning, so that others follow from them.

    Nothing is guessed: it is made while its class answers with the new values.
    """
    plain = make()
    set_attributes(plain, values)
    names = {split_name(flat)[0] for flat in values}
    held = {name: getattr(plain.unwrapped, name) for name in names}
    plain.close()
    with _held(type(plain.unwrapped), held):
        try:
            env = make()
        except Exception as error:  # a constructor of someone else's may raise anything
            text = ", ".join(f"{flat}={value:g}" for flat, value in values.items())
            reason = str(error).partition("\n")[0]
            raise BadSpecError(f"the environment cannot be made with {text}: {reason}") from error
    return env


def read_derived(make: Make, values: Mapping[str, float]) -> dict[str, Any]:
    """The other attributes that would be other numbers if these had held while the environment was made."""
    plain = make()
    if has_parameters(plain):
        return {}
    env = make_with(make, values)
    before, after = read_attributes(plain), read_attributes(env)
    plain.close()
    env.close()
    names = {split_name(flat)[0] for flat in values}
    others = [flat for flat in before if flat in after and split_name(flat)[0] not in names]
    return {flat: after[flat] for flat in others if after[flat] != before[flat]}


def read_used(make: Make, play: Play) -> set[str]:
    """The names of the attributes that episodes look at."""
    env, seen = make(), set[str]()
    if has_parameters(env):
        return set(read_attributes(env))
    bare: Any = env.unwrapped
    kind = type(bare)
    usual: Any = kind.__getattribute__

    def look(self: Any, name: str) -> Any:
        seen.add(name)
        return usual(self, name)

    bare.__class__ = type(kind.__name__, (kind,), {"__getattribute__": look, "__module__": kind.__module__})
    for _ in play(env):
        pass
    env.close()
    return seen


@contextmanager
def _held(kind: type, values: Mapping[str, Any]) -> Iterator[None]:
    """Instances of the class have these attributes, whatever is assigned to them."""
    own = {name: vars(kind)[name] for name in values if name in vars(kind)}
    for name, value in values.items():
        setattr(kind, name, property(partial(_answer, value), _ignore))
    try:
        yield
    finally:
        for name in values:
            if name in own:
                setattr(kind, name, own[name])
            else:
                delattr(kind, name)


def _answer(value: Any, _: Any) -> Any:
    return value


def _ignore(_: Any, __: Any) -> None:
    """What is assigned."""


def _is_row(value: Any) -> bool:
    """Whether a value is a sequence; entries may be sequences again, of other lengths too."""
    return isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim == 1)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real | np.bool_) and bool(np.isfinite(float(value)))


def _like(old: Any, value: float) -> Any:
    """The value as the kind of number that stood there: flags stay flags, whole numbers whole where they can."""
    if isinstance(old, bool | np.bool_):
        return bool(value)
    return int(value) if isinstance(old, int | np.integer) and float(value).is_integer() else float(value)
