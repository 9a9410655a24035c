"""One shot, from the release to the bird's removal; and what the birds can do when tapped."""

from collections.abc import Callable
from math import atan2, cos, hypot, radians, sin
from typing import TYPE_CHECKING

from nappingrl.domains.angrybirds.physics.bodies import Body

if TYPE_CHECKING:
    from nappingrl.domains.angrybirds.physics.world import World

REST_TICKS = 150
"""A bird that has hit something is taken away this long after it, once it lies still."""
CHECK_TICKS = 50
"""How often that is looked at."""
BIRD_TICKS = 1000
"""A launched bird is taken away at the latest then."""
DOT_TICKS = 5
"""A point of the trajectory every 0.1 s."""
TAP_DISTANCE = 2.0
"""A tap before the bird is this far from the sling is lost."""
STILL = 0.001


class Shot:
    """What is known of the bird in the air."""

    def __init__(self, bird: Body, now: int, tap_after: int | None) -> None:
        self.bird = bird
        self.launched_at = now
        self.hit_at: int | None = None
        """When it first touched anything."""
        self.explodes_at: int | None = None
        self._tap_at = now + tap_after if tap_after is not None else None

    @property
    def next_event(self) -> int:
        """The tick before which nothing can happen to a bird that lies still."""
        times = [self.launched_at + BIRD_TICKS]
        if self.hit_at is not None:
            times.append(self.hit_at + REST_TICKS)
        if self.explodes_at is not None:
            times.append(self.explodes_at)
        return min(times)

    def touched(self, world: "World", body: Body) -> None:
        """The bird, or what came out of it, has hit something."""
        if self.hit_at is None:
            self.hit_at = world.ticks
        if body.type == "BirdBlack" and self.explodes_at is None:
            self.explodes_at = world.ticks + world.fuse_ticks

    def watch(self, world: "World") -> bool:
        """After each step: dots, taps, fuses and the removal. False when the shot is over."""
        since = world.ticks - self.launched_at
        if self.hit_at is None and since % DOT_TICKS == 0 and not self.bird.is_dead:
            world.dots.append(tuple(self.bird.b2.position))
        if self._tap_at is not None and world.ticks >= self._tap_at:
            self._tap_at = None
            self._tap(world)
        if self.explodes_at is not None and world.ticks >= self.explodes_at and not self.bird.is_dead:
            world.explode(self.bird)
        if self._is_to_go(world, since):
            for body in world.flying:
                world.remove(body)
        world.bury()
        return bool(world.flying)

    def _is_to_go(self, world: "World", since: int) -> bool:
        if since >= BIRD_TICKS:
            return True
        if self.hit_at is None:
            return False
        after = world.ticks - self.hit_at - REST_TICKS
        return after >= 0 and after % CHECK_TICKS == 0 and all(hypot(b.vx, b.vy) < STILL for b in world.flying)

    def _tap(self, world: "World") -> None:
        far = self.bird.b2.position.x + 2 * self.bird.half_width > world.sling.origin[0] + TAP_DISTANCE
        if self.hit_at is None and far and not self.bird.is_dead and self.bird.type in POWERS:
            POWERS[self.bird.type](world, self.bird)


def _speed_up(world: "World", bird: Body) -> None:
    """Yellow: an impulse of 4 along its way."""
    speed = hypot(bird.vx, bird.vy)
    factor = 1 + 4 / bird.mass / speed
    bird.vx, bird.vy = factor * bird.vx, factor * bird.vy
    bird.b2.linearVelocity = (bird.vx, bird.vy)


def _split(world: "World", bird: Body) -> None:
    """Blue: three of the same speed, 15 and 5 degrees above its way and 5 below."""
    speed, way = hypot(bird.vx, bird.vy), atan2(bird.vy, bird.vx)
    for degrees in (15.0, 5.0, -5.0):
        child = world.maker.moving("bird", bird.type, "", tuple(bird.b2.position), 0.0)
        angle = way + radians(degrees)
        world.fly(child, speed * cos(angle), speed * sin(angle))
    world.remove(bird)


def _drop_egg(world: "World", bird: Body) -> None:
    """White: an egg straight down at 6 units a second; the bird is thrown up by an impulse of 10."""
    x, y = bird.b2.position
    world.fly(world.maker.moving("egg", "Egg", "", (x, y - 0.5), 0.0), 0.0, -6.0)
    bird.vy += 10 / bird.mass
    bird.b2.linearVelocity = (bird.vx, bird.vy)


def _blow_up(world: "World", bird: Body) -> None:
    """Black: explodes at once."""
    world.explode(bird)


POWERS: dict[str, Callable[["World", Body], None]] = {
    "BirdYellow": _speed_up,
    "BirdBlue": _split,
    "BirdWhite": _drop_egg,
    "BirdBlack": _blow_up,
}
"""Red has none."""
