"""Generate tasks from a template, as the Phy-Q benchmark does.

A task is the template moved as a whole, so that its anchor (mostly the pig) lies at a random position, plus three
distractor blocks on the ground. The benchmark defines where the anchor of each of its templates may lie
(`placement.RULES`); `anywhere` makes a rule for any other template.
"""

import re
from dataclasses import replace
from zlib import crc32

import numpy as np

from nappingrl.domains.angrybirds.levels.placement import (
    LEFT,
    RIGHT,
    RULES,
    Along,
    Pick,
    PlacementRule,
    Reach,
    ReachLine,
)
from nappingrl.domains.angrybirds.physics.scene import BLOCKS, GROUND, MATERIALS, WORLD_WIDTH, Item, Level
from nappingrl.domains.angrybirds.physics.sizes import SPRITE_SIZES, extent
from nappingrl.errors import BadSpecError, UnknownNameError

SLING_X = -12.0
"""Position of the benchmark's slingshot; for a template with another one, all ranges are shifted."""
BOX = (-10.0, 6.0, -3.4, 4.0)
"""The reachable box: x from, x to, y from, y to."""
N_DISTRACTORS = 3
GAP = 1.05
"""Least distance of a distractor's centre from other objects; no block is wider than twice that."""
LOW = -2.5
"""Only objects that extend below this height keep distractors away."""
TRIES = 100


def anywhere(template: Level) -> PlacementRule:
    """A rule for any template: its first pig lies anywhere in the reachable box within reach.

    No object is moved into the ground, over the slingshot or out of the world (except platforms on the right). A
    template with a pig, block or TNT on the ground is only moved sideways.
    """
    pig = Pick("pig").find(template)
    if any(_underside(item) < GROUND + 0.1 for item in template.items if item.kind != "platform"):
        return PlacementRule(where=Along(LEFT, RIGHT, height=pig[1]), stays_inside=True)
    x0, x1, y0, y1 = BOX
    room = max(0.0, min(map(_underside, template.items)) - GROUND)
    return PlacementRule(where=ReachLine(x0, x1, max(y0, pig[1] - room), max(y1, pig[1])), stays_inside=True)


def generate(template: Level, template_id: str, rng: np.random.Generator, rule: PlacementRule | None = None) -> Level:
    """Generate one task.

    Args:
        template: The template; the task keeps its name.
        template_id: Selects the rule; for example 1_1_1, 1_1_1_1 or 1_01_01.
        rng: Random generator.
        rule: PlacementRule for a template that is not in the table, such as `anywhere(template)`.
    """
    items = _moved(template, rule or _rule(template_id), rng)
    shift = template.sling[0] - SLING_X
    for _ in range(N_DISTRACTORS):
        items += _distractor(items, shift, rng)
    return replace(template, items=items)


def generate_many(
    template: Level, template_id: str, n: int, seed: int, rule: PlacementRule | None = None
) -> list[Level]:
    """Generate tasks 1 to n, named category_SS_TT_NNNNN; each depends only on its number and the seed."""
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
    """The id without leading zeros and file number; other ids are unchanged."""
    match = re.fullmatch(r"0*(\d+)_0*(\d+)_0*(\d+)(_\d+)?", template_id)
    return "_".join(match.group(1, 2, 3)) if match else template_id


def _rule(template_id: str) -> PlacementRule:
    key = _key(template_id)
    if key in RULES:
        return RULES[key]
    scenario = key.rpartition("_")[0] + "_"
    near = [known for known in RULES if known.startswith(scenario)] or ["those of the benchmark, from 1_1_1 to 3_9_8"]
    raise UnknownNameError(
        f"no rule for template '{template_id}'; known: {', '.join(sorted(near))}. "
        "For a template of your own pass rule=anywhere(template)"
    )


def _moved(template: Level, rule: PlacementRule, rng: np.random.Generator) -> tuple[Item, ...]:
    """The objects of the template, moved for the task."""
    if rule.where is None:
        return template.items
    anchor = rule.anchor.find(template) if isinstance(rule.anchor, Pick) else rule.anchor
    reach = Reach((SLING_X, template.sling[1]))
    for _ in range(10 * TRIES):
        position = rule.where.draw(rng, reach, anchor)
        if position is None:
            continue
        dx = position[0] + template.sling[0] - SLING_X - anchor[0]
        dy = position[1] - anchor[1]
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
    """Whether an object other than a platform is in the ground, and deeper than in the template."""
    return any(
        _underside(item) < min(GROUND - 0.05, _underside(before))
        for item, before in zip(items, template.items, strict=True)
        if item.kind != "platform"
    )


def _is_inside(items: tuple[Item, ...], template: Level) -> bool:
    """Whether all objects are right of the slingshot and, except platforms, inside the world."""
    low, high = template.sling[0] + 0.5, template.width * WORLD_WIDTH / 2
    return all(low <= _sides(item)[0] and (_sides(item)[1] <= high or item.kind == "platform") for item in items)


def _distractor(items: tuple[Item, ...], shift: float, rng: np.random.Generator) -> tuple[Item, ...]:
    """A random block on the ground, away from other objects; empty if no position was found."""
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
