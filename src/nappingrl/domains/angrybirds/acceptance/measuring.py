"""What one level is measured by."""

from hashlib import sha256

import msgspec
import numpy as np

from nappingrl.domains.angrybirds.acceptance.playing import Playground, Policy, draw_action, winners
from nappingrl.domains.angrybirds.levels.templates import TEMPLATES, make_level
from nappingrl.domains.angrybirds.oracle import Search
from nappingrl.domains.angrybirds.physics.scene import Level

RANDOM_PLAYS = 10


class Measured(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One level, before or after its novelty."""

    template: str
    number: int
    variant: str
    level: str
    """Fingerprint of the level."""
    is_after: bool
    objects: int
    """Objects that could be aimed at, if there were slots for all."""
    allowed: int
    """First shots that the mask allows."""
    first: tuple[int, ...]
    """Actions whose first shot passes the level."""
    repeated: tuple[int, ...]
    """Actions that pass it when repeated for every bird."""
    found: int
    """Shots after which the search passed it; 0 if it did not."""
    random: float
    """Share of random plays that pass it."""
    scripted: bool
    """Whether DataLab passes it."""


def measure(template: str, number: int, is_after: bool, policy: Policy) -> Measured:
    """Play a level in all the ways that the acceptance test asks for."""
    level = make_level(template, number)
    playground = Playground(level, template if is_after else "")
    start, rng = playground.start, np.random.default_rng([number, is_after])
    first = winners(playground, once=True)
    repeated = winners(playground, once=False)
    search = Search(playground.load)
    is_solved = search.solve().status == "won"
    plays = [playground.play(lambda position: draw_action(position, rng)) for _ in range(RANDOM_PLAYS)]
    return Measured(
        template=template,
        number=number,
        variant=variant_of(template, number),
        level=fingerprint(level),
        is_after=is_after,
        objects=len(start.state),
        allowed=len(start.actions),
        first=tuple(first),
        repeated=tuple(repeated),
        found=search.n_shots if is_solved else 0,
        random=float(np.mean(plays)),
        scripted=playground.play(lambda position: _act(policy, position.observation)),
    )


def fingerprint(level: Level) -> str:
    """Changes when an object of the level does."""
    return sha256(repr((level.birds, level.items, level.spots)).encode()).hexdigest()[:16]


def variant_of(template: str, number: int) -> str:
    """The name of a level's variant."""
    variants = TEMPLATES[template]
    return variants[number % len(variants)].__name__.replace("_", " ")


def _act(policy: Policy, observation: np.ndarray | None) -> int:
    assert observation is not None, "a position in play has an observation"
    return policy(observation)
