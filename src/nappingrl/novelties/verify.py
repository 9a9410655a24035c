"""A novelty that changes nothing is refused: with and without it, the same seeds and actions must show a difference."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from nappingrl.errors import BadSpecError
from nappingrl.novelties.apply import change
from nappingrl.novelties.attributes import Env, Make, make_with, read_derived, read_used, split_name
from nappingrl.novelties.description import OTHER, REMAP, TERMS, Description, Span, neutral_of
from nappingrl.types import DomainSpec

Seen = tuple[NDArray[Any], float, bool, bool]
FEW, SOME, MANY = 2, 4, 24
"""Episodes: for a first look, to compare two environments, and before an attribute is doubted."""
STEPS = 200
"""Of an episode, at most."""


def play(env: Env, episodes: int = SOME) -> Iterator[Seen]:
    """Observations of some episodes of random actions; the actions do not depend on the observations.

    In every second episode an action is repeated for a while, which leads farther away.
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


@dataclass(frozen=True, slots=True)
class _Part:
    """One part of a description that made no difference in a few episodes."""

    name: str
    values: Mapping[str, float]
    is_attribute: bool
    with_all: Make
    """Makes the environment with the whole description."""
    without: Make
    """Makes it without this part."""

    @property
    def text(self) -> str:
        return f"{self.name}={','.join(f'{value:g}' for value in self.values.values())}"


def verify(make: Make, description: Description, domain: DomainSpec, make_other: Make | None = None) -> list[str]:
    """Refuse a description with a part that changes nothing, or that leaves a stale derived value behind.

    `make_other` makes the environment that replaces this one, where the description names one. Of a range, the end
    farther from the value before the novelty is tried. Returns doubts: attributes that episodes read, but which made
    no difference in random play.
    """
    values = {flat: _far_end(span, neutral_of(flat, domain)) for flat, span in description.ranges.items()}
    attributes = {flat: value for flat, value in values.items() if split_name(flat)[0] not in TERMS}
    if not is_same(make, make, FEW):
        raise BadSpecError(f"{domain.name} shows other episodes for the same seed: no novelty can be verified in it")
    used = read_used(make, partial(play, episodes=FEW)) if attributes else set[str]()
    _refuse_stale(description, read_derived(make, attributes) if attributes else {}, used, domain)

    def built(values: Mapping[str, float]) -> Make:
        source = make_other if make_other is not None and OTHER in values else make
        return lambda: change(source(), source, values, description.follows, domain)

    doubts = []
    for name, own in _parts(values).items():
        rest = {flat: value for flat, value in values.items() if flat not in own}
        part = _Part(name, own, name in _names(attributes), built(values), built(rest))
        if not is_same(part.with_all, part.without):
            continue
        checks = _checks(make, part, description, domain, used)
        why = next((reason for applies, reason in checks if applies()), None)
        if why is None:
            doubts.append(f"{part.text} made no difference in {MANY} episodes of random play in {domain.name}")
        elif why:
            raise BadSpecError(f"novelty '{part.text}' changes nothing in {domain.name}: {why}")
    return doubts


def _checks(
    make: Make, part: _Part, description: Description, domain: DomainSpec, used: set[str]
) -> tuple[tuple[Callable[[], bool], str], ...]:
    """Why a part may make no difference; the first check that applies gives the reason, empty: it is accepted."""
    given = {*description.ranges, *description.follows}
    is_neutral = all(value == neutral_of(flat, domain) for flat, value in part.values.items())
    return (
        (lambda: is_neutral, "that is what it is already"),
        (lambda: not part.is_attribute, "episodes with and without it are the same"),
        # A value derived from it is given too: then that value carries the change.
        (lambda: not given.isdisjoint(read_derived(make, part.values)), ""),
        (lambda: part.name not in used, f"its episodes never look at {part.name}"),
        (lambda: not is_same(part.with_all, part.without, MANY), ""),
        (
            lambda: make_with(make, part.values).action_space != make().action_space,
            f"{part.name} says how far actions reach only when the environment is made; use action-scale",
        ),
    )


def _parts(values: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Values that are judged together: those of one remapping or of one attribute; all others alone."""
    parts: dict[str, dict[str, float]] = {}
    for flat, value in values.items():
        name, _ = split_name(flat)
        parts.setdefault(name if name == REMAP or name not in TERMS else flat, {})[flat] = value
    return parts


def _names(values: Mapping[str, float]) -> set[str]:
    return {split_name(flat)[0] for flat in values}


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
