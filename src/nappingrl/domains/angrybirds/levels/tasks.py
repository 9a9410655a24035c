"""Many tasks from one template, as the Phy-Q benchmark makes them.

A task is the template moved as a whole, so that one point of it (its anchor, mostly the pig) comes to lie at a random
place, and then three blocks that have nothing to do with the task, put down on the ground. Where the anchor may lie is
known for each template of the benchmark (`placing.RULES`); `anywhere` makes such a rule for any other template.
"""

import re
from dataclasses import replace
from zlib import crc32

import numpy as np

from nappingrl.domains.angrybirds.levels.placement import LEFT, RIGHT, RULES, Along, Pick, Reach, ReachLine, Rule
from nappingrl.domains.angrybirds.physics.scene import BLOCKS, GROUND, MATERIALS, WORLD_WIDTH, Item, Level
from nappingrl.domains.angrybirds.physics.sizes import SPRITE_SIZES, extent
from nappingrl.errors import BadSpecError, UnknownNameError

SLING_X = -12.0
"""Where the slingshot of the benchmark stands. For a template with another one, all ranges move along."""
BOX = (-10.0, 6.0, -3.4, 4.0)
"""x from, x to, y from, y to: what is called the reachable box."""
N_DISTRACTORS = 3
GAP = 1.05
"""Least distance of the middle of a distractor from the sides of what is there; no block is wider than twice that."""
LOW = -2.5
"""Only what reaches below this is in the way of distractors."""
TRIES = 100


def anywhere(template: Level) -> Rule:
    """A rule for any template: its first pig comes to lie anywhere in the reachable box that a bird can hit.

    Nothing sinks into the ground, comes over the slingshot or leaves the world (but for platforms on the right), and a
    template of which a pig, block or TNT stands on the ground is only moved sideways.
    """
    pig = Pick("pig").find(template)
    if any(_underside(item) < GROUND + 0.1 for item in template.items if item.kind != "platform"):
        return Rule(where=Along(LEFT, RIGHT, height=pig[1]), stays_inside=True)
    x0, x1, y0, y1 = BOX
    room = max(0.0, min(map(_underside, template.items)) - GROUND)
    return Rule(where=ReachLine(x0, x1, max(y0, pig[1] - room), max(y1, pig[1])), stays_inside=True)


def generate(template: Level, template_id: str, rng: np.random.Generator, rule: Rule | None = None) -> Level:
    """One task; `template_id` says by which rule, unless one is given.

    Args:
        template: what the task is made from; the task keeps its name.
        template_id: as 1_1_1, 1_1_1_1 or 1_01_01.
        rng: where the chance comes from.
        rule: for templates that the table does not have, as `anywhere(template)`.
    """
    items = _moved(template, rule or _rule(template_id), rng)
    shift = template.sling[0] - SLING_X
    for _ in range(N_DISTRACTORS):
        items += _distractor(items, shift, rng)
    return replace(template, items=items)


def generate_many(template: Level, template_id: str, n: int, seed: int, rule: Rule | None = None) -> list[Level]:
    """The tasks 1 to n of a template, named category_SS_TT_NNNNN; each depends on its number and the seed only."""
    if n < 0 or seed < 0:
        raise BadSpecError(f"n is {n} and seed is {seed}; neither may be negative")
    key = _key(template_id)
    stem = "{}_{:0>2}_{:0>2}".format(*key.split("_")) if re.fullmatch(r"\d+_\d+_\d+", key) else key
    levels = []
    for number in range(1, n + 1):
        rng = np.random.default_rng((seed, crc32(key.encode()), number))
        levels.append(replace(generate(template, template_id, rng, rule), name=f"{stem}_{number:05d}"))
    return levels


def _key(template_id: str) -> str:
    """The id without leading zeros and without the number of the file; ids of another form as they are."""
    match = re.fullmatch(r"0*(\d+)_0*(\d+)_0*(\d+)(_\d+)?", template_id)
    return "_".join(match.group(1, 2, 3)) if match else template_id


def _rule(template_id: str) -> Rule:
    key = _key(template_id)
    if key in RULES:
        return RULES[key]
    scenario = key.rpartition("_")[0] + "_"
    near = [known for known in RULES if known.startswith(scenario)] or ["those of the benchmark, from 1_1_1 to 3_9_8"]
    raise UnknownNameError(
        f"no rule for template '{template_id}'; known: {', '.join(sorted(near))}. "
        "For a template of your own pass rule=anywhere(template)"
    )


def _moved(template: Level, rule: Rule, rng: np.random.Generator) -> tuple[Item, ...]:
    """The objects of the template where the task has them."""
    if rule.where is None:
        return template.items
    anchor = rule.anchor.find(template) if isinstance(rule.anchor, Pick) else rule.anchor
    reach = Reach((SLING_X, template.sling[1]))
    for _ in range(10 * TRIES):
        place = rule.where.draw(rng, reach, anchor)
        if place is None:
            continue
        dx, dy = place[0] + template.sling[0] - SLING_X - anchor[0], place[1] - anchor[1]
        items = tuple(
            replace(item, x=item.x + dx, y=item.y + dy) if item.kind == "pig" or not rule.pigs_only else item
            for item in template.items
        )
        if not _is_buried(items, template) and (_is_inside(items, template) or not rule.stays_inside):
            return items
    raise BadSpecError(
        f"no place for template '{template.name}' in {10 * TRIES} draws of {rule.where}; pass rule= with a wider one"
    )


def _is_buried(items: tuple[Item, ...], template: Level) -> bool:
    """Whether something that is no platform is in the ground, and deeper than in the template."""
    return any(
        _underside(item) < min(GROUND - 0.05, _underside(before))
        for item, before in zip(items, template.items, strict=True)
        if item.kind != "platform"
    )


def _is_inside(items: tuple[Item, ...], template: Level) -> bool:
    """Whether all is right of the slingshot, and (platforms apart) left of the end of the world."""
    low, high = template.sling[0] + 0.5, template.width * WORLD_WIDTH / 2
    return all(low <= _sides(item)[0] and (_sides(item)[1] <= high or item.kind == "platform") for item in items)


def _distractor(items: tuple[Item, ...], shift: float, rng: np.random.Generator) -> tuple[Item, ...]:
    """A random block on the ground, clear of what is there; none if no place was found."""
    types = (*BLOCKS, "Platform")
    type_ = types[rng.integers(len(types))]
    material = MATERIALS[rng.integers(len(MATERIALS))]
    taken = [_sides(item) for item in items if _underside(item) < LOW]
    y = GROUND + SPRITE_SIZES[type_][1] / 2
    for _ in range(TRIES):
        x = rng.uniform(LEFT, RIGHT) + shift
        if all(x <= left - GAP or x >= right + GAP for left, right in taken):
            is_platform = type_ == "Platform"
            kind = "platform" if is_platform else "block"
            return (Item(kind, type_, x, y, material="" if is_platform else material),)
    return ()


def _underside(item: Item) -> float:
    return item.y - extent(item)[1] / 2


def _sides(item: Item) -> tuple[float, float]:
    half = extent(item)[0] / 2
    return item.x - half, item.x + half
