"""Floating Wood. Published: wood floats on ice. Our choice: the force.

A damped spring that carries its weight holds a wooden block at `GAP` times the strength above an ice block, if it is
nearer than `REACH`.
"""

from typing import TYPE_CHECKING

from typing_extensions import override

from nappingrl.domains.angrybirds.physics.change import Change
from nappingrl.domains.angrybirds.physics.scene import GRAVITY
from nappingrl.domains.angrybirds.physics.sizes import SPRITE_SIZES

if TYPE_CHECKING:
    from nappingrl.domains.angrybirds.physics.bodies import Body
    from nappingrl.domains.angrybirds.physics.world import World

GAP = 0.8
REACH = 2.0
STIFFNESS, DAMPING = 20.0, 9.0


class FloatingWood(Change):
    """Wood over ice hovers."""

    has_forces = True

    @override
    def push(self, world: "World") -> None:
        ice = [body for body in world.moving if body.material == "ice"]
        for wood in world.moving:
            if wood.material != "wood" or not wood.b2.awake or wood.nature is None:
                continue
            gaps = [gap for block in ice if (gap := _gap(wood, block)) is not None]
            if gaps:
                lift = wood.nature.gravity * GRAVITY + STIFFNESS * (GAP * self.strength - min(gaps)) - DAMPING * wood.vy
                wood.b2.ApplyForceToCenter((0.0, wood.mass * lift), True)


def _gap(wood: "Body", ice: "Body") -> float | None:
    """The vertical gap between an ice block and a wooden block above it; None if it is not above or too far."""
    (x, y), (ice_x, ice_y) = wood.b2.position, ice.b2.position
    if y <= ice_y or abs(x - ice_x) > (SPRITE_SIZES[wood.type][0] + SPRITE_SIZES[ice.type][0]) / 2:
        return None
    gap = _bottom(wood) - _top(ice)
    return gap if gap < REACH else None


def _bottom(body: "Body") -> float:
    return float(min(fixture.GetAABB(0).lowerBound.y for fixture in body.b2.fixtures))


def _top(body: "Body") -> float:
    return float(max(fixture.GetAABB(0).upperBound.y for fixture in body.b2.fixtures))
