"""One shot, from the release to the removal of the bird, and what each bird does when tapped."""

from collections.abc import Callable
from math import atan2, cos, hypot, inf, radians, sin
from typing import TYPE_CHECKING

from nappingrl.domains.angrybirds.physics.bodies import Body
from nappingrl.domains.angrybirds.physics.rules import SLOWEST_HIT
from nappingrl.domains.angrybirds.physics.scene import GROUND
from nappingrl.domains.angrybirds.physics.sizes import SPRITE_SIZES, extent

if TYPE_CHECKING:
    from nappingrl.domains.angrybirds.physics.world import World

REST_TICKS = 150
"""A bird that has hit something is removed after this many ticks, once it lies still."""
CHECK_TICKS = 50
"""Ticks between two checks of that."""
BIRD_TICKS = 1000
"""A launched bird is removed after this many ticks at the latest."""
DOT_TICKS = 5
"""A point of the trajectory every 0.1 s."""
TAP_DISTANCE = 2.0
"""A tap has no effect before the bird is this far from the sling."""
STILL = 0.001
STILL_HEIGHT = 0.1
"""A bird this little above the ground lies on it."""
_FARTHEST_CORNER = max(hypot(*size) for size in SPRITE_SIZES.values()) / 2


class Shot:
    """The bird in the air: when it was launched, hit something, is tapped and explodes."""

    def __init__(self, bird: Body, now: int, tap_after: int | None) -> None:
        self.bird = bird
        self.launched_at = now
        self.hit_at: int | None = None
        """Tick of its first contact."""
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
        """The bird, or one it split into, has hit something."""
        if self.hit_at is None:
            self.hit_at = world.ticks
        if body.type == "BirdBlack" and self.explodes_at is None:
            self.explodes_at = world.ticks + world.fuse_ticks

    def watch(self, world: "World") -> bool:
        """Update dots, taps, fuses and removal after a step. False when the shot is over."""
        since = world.ticks - self.launched_at
        if self.hit_at is None and since % DOT_TICKS == 0 and not self.bird.is_dead:
            world.dots.append(tuple(self.bird.b2.position))
        if self._tap_at is not None and world.ticks >= self._tap_at:
            self._tap_at = None
            self._tap(world)
        if self.explodes_at is not None and world.ticks >= self.explodes_at and not self.bird.is_dead:
            world.rules.explode(self.bird)
        if self._must_be_removed(world, since):
            for body in world.flying:
                body.is_dead = True
        world.remove_dead()
        return bool(world.flying)

    def is_spent(self, world: "World") -> bool:
        """Whether the bird flies or rolls away from everything, or rolls on the ground too slowly to do damage."""
        if self.bird.type in POWERS or len(world.flying) != 1:
            return False
        (x, y), bird = self.bird.b2.position, self.bird
        edges = [extent(item)[0] / 2 for item in world.level.items if item.kind == "platform"]
        left = min((body.b2.position.x - edge for body, edge in zip(world.fixed, edges, strict=True)), default=inf)
        right = max((body.b2.position.x + edge for body, edge in zip(world.fixed, edges, strict=True)), default=-inf)
        for body in world.moving:
            left = min(left, body.b2.position.x - _FARTHEST_CORNER)
            right = max(right, body.b2.position.x + _FARTHEST_CORNER)
        if (bird.vx > 0 and x - bird.half_width > right) or (bird.vx < 0 and x + bird.half_width < left):
            return True
        return y < GROUND + bird.half_width + STILL_HEIGHT and hypot(bird.vx, bird.vy) < SLOWEST_HIT

    def _must_be_removed(self, world: "World", since: int) -> bool:
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
    """Yellow: an impulse of 4 along its direction."""
    speed = hypot(bird.vx, bird.vy)
    factor = 1 + 4 / bird.mass / speed
    bird.vx, bird.vy = factor * bird.vx, factor * bird.vy
    bird.b2.linearVelocity = (bird.vx, bird.vy)


def _split(world: "World", bird: Body) -> None:
    """Blue: three birds of the same speed, 15 and 5 degrees above its direction and 5 below."""
    speed, direction = hypot(bird.vx, bird.vy), atan2(bird.vy, bird.vx)
    for degrees in (15.0, 5.0, -5.0):
        child = world.factory.moving("bird", bird.type, "", tuple(bird.b2.position), 0.0)
        angle = direction + radians(degrees)
        world.fly(child, speed * cos(angle), speed * sin(angle))
    bird.is_dead = True


def _drop_egg(world: "World", bird: Body) -> None:
    """White: drops an egg at 6 units per second; an impulse of 10 throws the bird up."""
    x, y = bird.b2.position
    world.fly(world.factory.moving("egg", "Egg", "", (x, y - 0.5), 0.0), 0.0, -6.0)
    bird.vy += 10 / bird.mass
    bird.b2.linearVelocity = (bird.vx, bird.vy)


def _blow_up(world: "World", bird: Body) -> None:
    """Black: explodes at once."""
    world.rules.explode(bird)


POWERS: dict[str, Callable[["World", Body], None]] = {
    "BirdYellow": _speed_up,
    "BirdBlue": _split,
    "BirdWhite": _drop_egg,
    "BirdBlack": _blow_up,
}
"""What a tap does, by type of bird; red birds ignore it."""
