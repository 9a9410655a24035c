"""A novelty that changes nothing is refused: with and without it, the same seeds and actions must show a difference."""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import zip_longest
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from nappingrl.errors import BadSpecError
from nappingrl.novelties.apply import change
from nappingrl.novelties.attributes import Make, make_with, read_derived, read_used, split_name
from nappingrl.novelties.description import OTHER, REMAP, TERMS, Description, Span, neutral_of
from nappingrl.types import DomainSpec

Env = gymnasium.Env[Any, Any]
Seen = tuple[NDArray[Any], float, bool, bool]
FEW, SOME, MANY = 2, 4, 24
"""Episodes: to see what an environment does at all, to compare two, and before an attribute is doubted."""
STEPS = 200
"""Of an episode, at most."""


def play(env: Env, episodes: int = SOME) -> Iterator[Seen]:
    """What is seen in some episodes of random actions, which do not depend on what is seen.

    In every second episode an action is kept for a while, which leads farther away.
    """
    for episode in range(episodes):
        rng = np.random.default_rng(episode)
        observation, _ = env.reset(seed=episode)
        yield np.array(observation), 0.0, False, False
        action, n_left = None, 0
        for _ in range(STEPS):
            if n_left == 0:
                action, n_left = _draw(env, rng), int(rng.integers(10, 40)) if episode % 2 else 1
            n_left -= 1
            observation, reward, terminated, truncated, _ = env.step(action)
            yield np.array(observation), float(reward), bool(terminated), bool(truncated)
            if terminated or truncated:
                break


def is_same(first: Make, second: Make, episodes: int = SOME) -> bool:
    """Whether two environments show the same in all episodes; ends at the first difference."""
    one, other = first(), second()
    try:
        for left, right in zip_longest(play(one, episodes), play(other, episodes)):
            if left is None or right is None or left[1:] != right[1:] or not np.array_equal(left[0], right[0]):
                return False
        return True
    finally:
        one.close()
        other.close()


def verify(make: Make, description: Description, domain: DomainSpec, make_other: Make | None = None) -> list[str]:
    """Refuse a description of which a part changes nothing, or leaves a value behind that follows from it.

    `make_other` makes the environment that takes its place, where the description names one. Of a range the end is
    taken that is farther from the value before. Returns doubts: attributes that episodes look at, but which made no
    difference in random play.
    """
    values = {flat: _far_end(span, neutral_of(flat, domain)) for flat, span in description.ranges.items()}
    attributes = {flat: value for flat, value in values.items() if split_name(flat)[0] not in TERMS}
    if not is_same(make, make, FEW):
        raise BadSpecError(f"{domain.name} shows other episodes for the same seed: no novelty can be verified in it")
    used = read_used(make, partial(play, episodes=FEW)) if attributes else set[str]()
    derived = read_derived(make, attributes) if attributes else {}
    _refuse_stale(description, derived, used, domain)

    def built(part: Mapping[str, float]) -> Make:
        source = make_other if make_other is not None and OTHER in part else make
        return lambda: change(source(), source, part, description.follows, domain)

    doubts = []
    for name, part in _parts(values).items():
        rest = {flat: value for flat, value in values.items() if flat not in part}
        if not is_same(built(values), built(rest)):
            continue
        text, is_attribute = f"{name}={','.join(f'{value:g}' for value in part.values())}", name in _names(attributes)
        if all(value == neutral_of(flat, domain) for flat, value in part.items()):
            why = "that is what it is already"
        elif not is_attribute:
            why = "episodes with and without it are the same"
        elif _has_given_heir(make, part, description):
            continue
        elif name not in used:
            why = f"its episodes never look at {name}"
        elif not is_same(built(values), built(rest), MANY):
            continue
        elif make_with(make, part).action_space != make().action_space:
            why = f"{name} says how far actions reach only when the environment is made; use action-scale"
        else:
            doubts.append(f"{text} made no difference in {MANY} episodes of random play in {domain.name}")
            continue
        raise BadSpecError(f"novelty '{text}' changes nothing in {domain.name}: {why}")
    return doubts


def _parts(values: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """What is judged together: the entries of one remapping or of one attribute; everything else alone."""
    parts: dict[str, dict[str, float]] = {}
    for flat, value in values.items():
        name, _ = split_name(flat)
        parts.setdefault(name if name == REMAP or name not in TERMS else flat, {})[flat] = value
    return parts


def _names(values: Mapping[str, float]) -> set[str]:
    return {split_name(flat)[0] for flat in values}


def _has_given_heir(make: Make, part: Mapping[str, float], description: Description) -> bool:
    """Whether something that is computed from this attribute is given too: then that one carries the change."""
    return not {*description.ranges, *description.follows}.isdisjoint(read_derived(make, part))


def _refuse_stale(description: Description, derived: Mapping[str, Any], used: set[str], domain: DomainSpec) -> None:
    """Refuse if an attribute that episodes look at would be another one, had the environment been made so."""
    given = {*description.ranges, *description.follows}
    stale = [flat for flat in derived if flat not in given and split_name(flat)[0] in used]
    if not stale:
        return
    are = ", ".join(f"{flat} (still {float(domain.constants[flat]):g})" for flat in stale)
    follow = ";".join(f"{flat}=follows" for flat in stale)
    if all(low == high for low, high in description.ranges.values()):
        follow = ";".join(f"{flat}={float(derived[flat]):.10g}" for flat in stale) + f", or {follow}"
    raise BadSpecError(
        f"novelty '{description.text}' leaves stale values in {domain.name}, which are computed from it only when the "
        f"environment is made: {are}; add {follow}"
    )


def _far_end(span: Span, before: float) -> float:
    return max(span, key=lambda end: abs(end - before))


def _draw(env: Env, rng: np.random.Generator) -> Any:
    """A random action; numbers without bounds are taken from -1 to 1."""
    space: Any = env.action_space
    if isinstance(space, Box):
        low, high = np.maximum(space.low, -1e6), np.minimum(space.high, 1e6)
        ends = np.where(np.isfinite(space.low), low, -1.0), np.where(np.isfinite(space.high), high, 1.0)
        return rng.uniform(*ends).astype(space.dtype)
    return np.int64(space.start + rng.integers(space.n))
