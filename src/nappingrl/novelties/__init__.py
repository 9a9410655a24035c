"""Novelties of any gymnasium environment, described in words and verified: `apply_novelty` puts one in place."""

from dataclasses import replace
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec

from nappingrl.env_wrappers import as_made
from nappingrl.errors import BadSpecError
from nappingrl.novelties.apply import change
from nappingrl.novelties.description import read_description
from nappingrl.novelties.novelty import Novelty
from nappingrl.novelties.scheduled_env import ScheduledEnv
from nappingrl.novelties.subject import make_env, read_env
from nappingrl.novelties.terms import OTHER, TERMS, split_name
from nappingrl.novelties.verify import verify as verify_novelty

__all__ = ["apply_novelty"]


def apply_novelty(
    env: gymnasium.Env[Any, Any], novelty: str, *, seed: int = 0, verify: bool = True
) -> gymnasium.Env[Any, Any]:
    """The environment with a novelty: its attributes are changed in place, the rest are wrappers around it.

    Args:
        env: made by `gymnasium.make`; observations are one row of numbers.
        novelty: terms separated by ";": NAME=VALUE for an attribute of the unwrapped environment, or one of
            action-remap, -delay, -noise, -scale, -shift, obs-remap, -shift, -scale, -noise, -quantise, -drop,
            reward-scale, -shift; LOW..HIGH instead of a value is drawn. In a domain of this package, such as
            nappingrl/CartPole-v0, NAME is one of its parameters. Schedules, such as
            "gravity=9.8->20 over 20 episodes", are described in docs/any-environment.md.
        seed: of what is drawn.
        verify: refuse a novelty that changes nothing or leaves stale values behind.

    Examples:
        >>> import gymnasium
        >>> env = apply_novelty(gymnasium.make("Acrobot-v1"), "LINK_LENGTH_1=2.0; action-delay=1")
        >>> env.unwrapped.LINK_LENGTH_1
        2.0
    """
    spec = _spec_of(env)
    if spec is None:
        raise BadSpecError("the environment has no spec; make it with gymnasium.make, after gymnasium.register")
    make, domain = partial(make_env, spec), read_env(spec)
    description = read_description(novelty, domain)
    if description.other:
        raise BadSpecError(f"{OTHER} is for trials; here, make {description.other} instead of {spec.id}")
    if verify:
        verify_novelty(make, description, domain)
    whole = description.whole(domain)
    drawn = Novelty(description.text, description.ranges, whole=whole).sample(
        np.random.default_rng(seed), description.neutral(domain)
    )
    if terms := [flat for flat in description.schedules if split_name(flat)[0] in TERMS]:
        raise BadSpecError(f"a schedule of {', '.join(terms)} is for trials; here, give schedules of attributes only")
    changed = change(env, make, drawn, description.follows, domain, seed)
    usual = description.neutral(domain)
    return ScheduledEnv(changed, description.schedules, usual, seed) if description.schedules else changed


def _spec_of(env: gymnasium.Env[Any, Any]) -> EnvSpec | None:
    """How the environment is made, with those of its wrappers that gymnasium can make again, except for rendering."""
    spec = env.unwrapped.spec
    if spec is None or env.spec is None:
        return None
    wrappers = [
        as_made(wrapper)
        for wrapper in env.spec.additional_wrappers
        if not wrapper.entry_point.startswith("gymnasium.wrappers.rendering:")
    ]
    return replace(spec, additional_wrappers=tuple(wrapper for wrapper in wrappers if wrapper is not None))
