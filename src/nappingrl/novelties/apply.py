"""Puts a novelty in place: attributes first, then changes of actions, observations and rewards around them."""

from collections.abc import Iterable, Mapping

from nappingrl.novelties.attributes import Env, Make, read_derived, set_attributes
from nappingrl.novelties.terms import TERMS, neutral_of, split_name, transforms_of
from nappingrl.novelties.transformed_env import TransformedEnv
from nappingrl.types import DomainSpec


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
    transforms = transforms_of(changed)
    return TransformedEnv(env, transforms, domain, seed) if transforms else env
