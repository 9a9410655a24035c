"""A novelty that changes nothing is refused: with and without it, the same seeds and actions must show a difference."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from nappingrl.errors import BadSpecError
from nappingrl.novelties.apply import change
from nappingrl.novelties.attributes import Env, Make, make_with, read_derived, read_used
from nappingrl.novelties.description import Description, Span
from nappingrl.novelties.terms import OTHER, TABLES, TERMS, neutral_of, split_name
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
class _Trial:
    """A description on trial: the numbers that it gives, and environments with any of them."""

    make: Make
    description: Description
    domain: DomainSpec
    values: Mapping[str, float]
    make_other: Make | None = None

    def built(self, values: Mapping[str, float]) -> Make:
        """Makes the environment with these numbers."""
        source = self.make_other if self.make_other is not None and OTHER in values else self.make
        return lambda: change(source(), source, values, self.description.follows, self.domain)

    def makes_a_difference(self, own: Mapping[str, float], rest: Mapping[str, float], episodes: int = SOME) -> bool:
        """Whether some numbers change anything where the rest holds."""
        both = {flat: value for flat, value in self.values.items() if flat in own or flat in rest}  # in their order
        return not is_same(self.built(both | dict(rest)), self.built(rest), episodes)

    def is_neutral(self, own: Mapping[str, float]) -> bool:
        """Whether these numbers are what they were."""
        return all(value == neutral_of(flat, self.domain) for flat, value in own.items())


def verify(make: Make, description: Description, domain: DomainSpec, make_other: Make | None = None) -> list[str]:
    """Refuse a description with a part that changes nothing, or that leaves a stale derived value behind.

    A part is judged beside the others: it must make a difference where they hold. `make_other` makes the environment
    that replaces this one, where the description names one. Of a range, the end farther from the value before the
    novelty is tried. Returns doubts: parts that are accepted although they made no difference in random play.
    """
    values = {flat: _far_end(span, neutral_of(flat, domain)) for flat, span in description.ranges.items()}
    attributes = {flat: value for flat, value in values.items() if split_name(flat)[0] not in TERMS}
    if not is_same(make, make, FEW):
        raise BadSpecError(f"{domain.name} shows other episodes for the same seed: no novelty can be verified in it")
    trial = _Trial(make, description, domain, values, make_other)
    used, some = set[str](), partial(play, episodes=FEW)
    if attributes:
        used = read_used(make, some) | read_used(trial.built(attributes), some)
        _refuse_stale(description, read_derived(make, attributes), used, domain)
    doubts, parts = [], _parts(values)
    for name, own in parts.items():
        rest = {flat: value for flat, value in values.items() if flat not in own}
        if trial.makes_a_difference(own, rest):
            continue
        text = f"{name}={','.join(f'{value:g}' for value in own.values())}"
        verdict = _judge(trial, name, own, rest, used)
        if verdict.is_refused:
            raise BadSpecError(f"novelty '{text}' changes nothing in {domain.name}: {verdict.why}")
        doubts += [f"{text} {verdict.why}"] if verdict.why else []
    return doubts


@dataclass(frozen=True, slots=True)
class _Verdict:
    """On a part that made no difference in a few episodes; accepted without a reason: there is no doubt."""

    is_refused: bool
    why: str = ""


def _judge(trial: _Trial, name: str, own: Mapping[str, float], rest: Mapping[str, float], used: set[str]) -> _Verdict:
    """Why a part makes no difference: the first verdict whose condition holds."""
    given = {*trial.description.ranges, *trial.description.follows}
    is_attribute = name not in TERMS and split_name(name)[0] not in TERMS
    if trial.is_neutral(own):
        is_stated = is_attribute and not trial.is_neutral(rest)  # such as enable_wind=1; wind_power=15
        return _Verdict(not is_stated, "is what it is already" if is_stated else "that is what it is already")
    if not is_attribute and rest and trial.makes_a_difference(own, {}):
        return _Verdict(False, "makes no difference beside the other terms")
    if not is_attribute:
        return _Verdict(True, "episodes with and without it are the same")
    if not given.isdisjoint(read_derived(trial.make, own)):
        return _Verdict(False)  # a value derived from it is given too, and carries the change
    if name not in used:
        flag = _enabling_flag(trial, own, rest)
        why = f"{name} has no effect unless {flag}" if flag else f"its episodes never look at {name}"
        return _Verdict(True, why)
    if trial.makes_a_difference(own, rest, MANY):
        return _Verdict(False)
    if make_with(trial.make, own).action_space != trial.make().action_space:
        return _Verdict(True, f"{name} says how far actions reach only when the environment is made; use action-scale")
    return _Verdict(False, f"made no difference in {MANY} episodes of random play in {trial.domain.name}")


def _enabling_flag(trial: _Trial, own: Mapping[str, float], rest: Mapping[str, float]) -> str:
    """The flag of the environment without which a part has no effect, as NAME=VALUE; empty: none is found."""
    for flag, value in trial.domain.constants.items():
        if isinstance(value, bool | np.bool_) and flag not in trial.values:
            try:
                if trial.makes_a_difference(own, {**rest, flag: float(not value)}):
                    return f"{flag}={int(not value)}"
            except Exception:  # an environment may raise anything where one of its flags is turned
                continue
    return ""


def _parts(values: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Values that are judged together: those of one remapping or of one attribute; all others alone."""
    parts: dict[str, dict[str, float]] = {}
    for flat, value in values.items():
        name, _ = split_name(flat)
        parts.setdefault(name if name in TABLES or name not in TERMS else flat, {})[flat] = value
    return parts


def _refuse_stale(description: Description, derived: Mapping[str, Any], used: set[str], domain: DomainSpec) -> None:
    """Refuse if an attribute that episodes look at would be another one, had the environment been made so."""
    if idle := next((flat for flat in description.follows if flat not in derived), None):
        raise BadSpecError(f"{idle}=follows in novelty '{description.text}': {idle} does not follow from its numbers")
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
