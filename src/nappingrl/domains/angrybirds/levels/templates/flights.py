"""Where the shots of the official planner really go, with its rounding to pixels and its errors."""

from functools import cache
from math import atan2, cos, sin, sqrt

from nappingrl.domains.angrybirds.ground_truth.state import ground_truth, sling_box
from nappingrl.domains.angrybirds.physics.scene import LAUNCH_SPEED, Camera, Level, Scene, Sling, View, make_sling
from nappingrl.domains.angrybirds.trajectory import FALL, HIGH, LOW, OfficialPlanner, flight_height

USUAL, TALLER, ROUND = "usual", "taller", "round"
"""How the slingshot looks: as ever, twice as high, or as a circumscribed circle."""
CAMERA = Camera()
Way = tuple[int, int]
"""A trajectory, and an offset in pixels above the target's centre."""


@cache
def _aiming(look: str) -> tuple[Sling, OfficialPlanner]:
    """The slingshot, and the planner that reads it from the screen."""
    sling = make_sling(Level("", (), ()).sling, 2.0 if look == TALLER else 1.0)
    scene = Scene(CAMERA, sling, (), (), View(circumcircle=look == ROUND), None)
    return sling, OfficialPlanner(sling_box(ground_truth(scene)))


class Flight:
    """The parabola of a full shot; heights and distances in world units."""

    def __init__(self, origin: tuple[float, float], angle: float) -> None:
        self._x, self._y = origin
        self._angle = angle

    def height(self, x: float) -> float:
        """Height at x; minus infinity where it never gets."""
        return self._y + flight_height(self._angle, x - self._x)

    def lands(self, y: float) -> float | None:
        """Where it comes down through a height; None if it stays below."""
        along, up = cos(self._angle), sin(self._angle)
        a, b, c = -FALL / (2 * (LAUNCH_SPEED * along) ** 2), up / along, self._y - up - y
        root = b * b - 4 * a * c
        return self._x - along + (-b - sqrt(root)) / (2 * a) if root >= 0 else None


def aim(x: float, y: float, way: Way = (LOW, 0), look: str = USUAL) -> Flight | None:
    """The flight of a shot at a point; None if the planner finds no angle."""
    sling, planner = _aiming(look)
    trajectory, offset = way
    left, top = CAMERA.to_pixels(x, y)
    angle = planner.angle((left, top - offset), trajectory)
    if angle is None:
        return None
    to_x, to_y = CAMERA.to_world(*planner.release(angle))
    return Flight(sling.origin, atan2(sling.origin[1] - to_y, sling.origin[0] - to_x))


def low(x: float, y: float) -> Flight:
    """The low flight at a point within reach."""
    flight = aim(x, y)
    assert flight is not None, f"({x:g}, {y:g}) is out of reach"
    return flight


def miss(x: float, y: float, flight: Flight, trajectory: int) -> float:
    """How far a flight passes a point: vertically for low ones, horizontally for high ones."""
    if trajectory == HIGH:
        at = flight.lands(y)
        return abs(at - x) if at is not None else float("inf")
    return abs(flight.height(x) - y)
