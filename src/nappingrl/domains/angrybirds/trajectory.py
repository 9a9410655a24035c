"""Planners from a target to a release point: exact for our physics, or the published approximation."""

from math import acos, cos, hypot, inf, pi, sin, sqrt

from nappingrl.domains.angrybirds.physics.scene import GRAVITY, LAUNCH_SPEED, Box
from nappingrl.errors import check_name
from nappingrl.types import Point

FALL = 0.48 * GRAVITY
"""Gravity of a bird, a share of the world's."""
LOW, HIGH = 0, 1
_STEEPEST = 0.49 * pi
_GRID = 256
_TIME_UNIT_MS = 815


def flight_height(angle: float, x: float) -> float:
    """Height above the sling's origin of a full shot at x units right of it; -inf if it never gets there."""
    ahead = x + cos(angle)
    if ahead < 0 or cos(angle) <= 0:
        return -inf
    t = ahead / (LAUNCH_SPEED * cos(angle))
    return -sin(angle) + LAUNCH_SPEED * sin(angle) * t - FALL * t * t / 2


def exact_angles(x: float, y: float) -> tuple[float, ...]:
    """Launch angles, low then high, of the flights through a point x right of and y above the origin."""
    grid = [-_STEEPEST + 2 * _STEEPEST * i / _GRID for i in range(_GRID + 1)]
    errors = [flight_height(angle, x) - y for angle in grid]
    pairs = [(i, i + 1) for i in range(_GRID) if -inf not in (errors[i], errors[i + 1])]
    crossings = [(a, b) for a, b in pairs if (errors[a] < 0) != (errors[b] < 0)]
    return tuple(_bisect(grid[a], grid[b], x, y) for a, b in crossings)


def _bisect(low: float, high: float, x: float, y: float) -> float:
    is_rising = flight_height(low, x) < y
    for _ in range(50):
        middle = (low + high) / 2
        if (flight_height(middle, x) < y) == is_rising:
            low = middle
        else:
            high = middle
    return (low + high) / 2


class ExactPlanner:
    """Solves the flight of our physics, given the origin on the screen and the scale of the view."""

    def __init__(self, origin: Point, scale: float) -> None:
        self._origin, self._scale = origin, scale

    def angle(self, target: Point, trajectory: int) -> float | None:
        """The launch angle in radians; None if the target is out of reach."""
        x, y = (target[0] - self._origin[0]) / self._scale, (self._origin[1] - target[1]) / self._scale
        roots = exact_angles(x, y)
        if not roots:
            return None
        return roots[0] if trajectory == LOW else roots[-1]

    def release(self, angle: float) -> Point:
        """The release point on the screen; far out, so that rounding to pixels does not matter."""
        return round(self._origin[0] - 400 * cos(angle)), round(self._origin[1] + 400 * sin(angle))

    def tap_ms(self, target: Point, angle: float, percent: float) -> int:
        """Time at which the bird has covered this share of the distance in x."""
        x = (target[0] - self._origin[0]) / self._scale
        return max(0, round(1000 * (percent / 100 * x + cos(angle)) / (LAUNCH_SPEED * cos(angle))))


class OfficialPlanner:
    """The published approximation, which derives everything from the slingshot's box, even gravity and speed.

    Its flaws are kept: an empirical correction of the angle, and upward shots at targets that need a downward shot.
    """

    def __init__(self, sling: Box) -> None:
        self._sling = sling
        self.reference = int(sling.left + 0.45 * sling.width), int(sling.top + 0.35 * sling.width)
        self._size = sling.width + sling.height

    def angle(self, target: Point, trajectory: int) -> float | None:
        """The launch angle in radians; None if there is no solution."""
        gravity, speed = 0.48 * 9.81 / 2.7 * self._size, 9.5 / 2.7 * self._size
        x, y = target[0] - self.reference[0], self.reference[1] - target[1]
        root = speed**4 - gravity**2 * x**2 - 2 * y * gravity * speed**2
        distance = hypot(x, y)
        if root < 0 or distance == 0:
            return None
        sign = 1 if trajectory == LOW else -1
        cos_squared = (x**2 * speed**2 - x**2 * y * gravity + sign * x**2 * sqrt(root)) / (2 * speed**2 * distance**2)
        if not 0 <= cos_squared <= 1:
            return None
        return acos(sqrt(cos_squared)) + (1e-4 if trajectory == LOW else 5e-5) * distance

    def release(self, angle: float) -> Point:
        """The release point on the screen."""
        length = 5 * self._sling.height
        return int(self.reference[0] - length * cos(angle)), int(self.reference[1] + length * sin(angle))

    def tap_ms(self, target: Point, angle: float, percent: float) -> int:
        """Time at which the bird has covered this share of the distance in x."""
        if not percent:
            return 0
        tap_x = self._sling.left + percent / 100 * (target[0] - self._sling.left)
        speed = 9.5 / 2.7 * cos(angle)
        way = ((tap_x - self.reference[0]) + 0.4 * self._size * cos(angle)) / self._size
        return max(0, int(way / speed * _TIME_UNIT_MS))


TAP_PERCENT = {
    "red": (0, 0),
    "yellow": (65, 89),
    "white": (50, 69),
    "black": (0, 0),
    "blue": (65, 84),
}
"""Interval of the flight in which the naive agent taps a bird, in percent."""

PLANNERS = ("exact", "official")


def make_planner(name: str, sling: Box, scale: float) -> ExactPlanner | OfficialPlanner:
    """Make a planner from the slingshot's box on the screen and the pixels per unit."""
    check_name("planner", name, PLANNERS)
    if name == "official":
        return OfficialPlanner(sling)
    origin = sling.left + 0.335 * scale, sling.top + 0.25 * scale
    return ExactPlanner(origin, scale)
