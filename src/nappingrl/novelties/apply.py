"""Puts a novelty in place: attributes first, then wrappers around the environment."""

from collections.abc import Iterable, Mapping

from nappingrl.novelties.attributes import Env, Make, read_derived, set_attributes, split_name
from nappingrl.novelties.description import DROP, REMAP, TERMS, neutral_of
from nappingrl.novelties.wrappers import (
    AffineActions,
    AffineReward,
    DelayActions,
    DropObservation,
    NoisyActions,
    NoisyObservation,
    QuantiseObservation,
    RemapActions,
    ScaleObservation,
    ShiftObservation,
)
from nappingrl.types import DomainSpec

_SIGHTS = {
    "obs-shift": ShiftObservation,
    "obs-scale": ScaleObservation,
    "obs-noise": NoisyObservation,
    "obs-quantise": QuantiseObservation,
    DROP: DropObservation,
}


def change(
    env: Env, make: Make, values: Mapping[str, float], follows: Iterable[str], domain: DomainSpec, seed: int = 0
) -> Env:
    """The environment with these numbers changed; values that change nothing leave no trace.

    `make` gives a fresh environment of the same kind, for attributes that follow from others.
    """
    changed = {flat: value for flat, value in values.items() if value != neutral_of(flat, domain)}
    attributes = {flat: value for flat, value in changed.items() if split_name(flat)[0] not in TERMS}
    if attributes:
        derived = read_derived(make, attributes) if follows else {}
        set_attributes(env, attributes | {flat: derived[flat] for flat in follows if flat in derived})
    names = list(dict.fromkeys(flat if split_name(flat)[0] != REMAP else REMAP for flat in changed))
    sights = [flat for flat in names if flat.startswith("obs-")]
    acts = [flat for flat in names if flat.startswith("action-")]
    for number, flat in enumerate([*sights, *reversed(acts)]):  # the first action term is the first to be applied
        env = _wrap(env, flat, values, domain.n_actions, seed + number)
    scale, shift = values.get("reward-scale", 1.0), values.get("reward-shift", 0.0)
    return AffineReward(env, scale, shift) if (scale, shift) != (1.0, 0.0) else env


def _wrap(env: Env, flat: str, values: Mapping[str, float], n_actions: int, seed: int) -> Env:
    name, entry = split_name(flat)
    if name in _SIGHTS:
        return _SIGHTS[name](env, values[flat], entry, seed)
    if name == REMAP:
        return RemapActions(env, tuple(int(values.get(f"{REMAP}[{i}]", i)) for i in range(n_actions)))
    if name == "action-delay":
        return DelayActions(env, int(values[flat]))
    if name == "action-noise":
        return NoisyActions(env, values[flat], seed)
    return AffineActions(env, **{name.removeprefix("action-"): values[flat]})
