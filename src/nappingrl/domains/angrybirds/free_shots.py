"""Shots that are no action of the domain, as numbers above all actions: for agents that bring their own planner."""

from nappingrl.errors import BadSpecError
from nappingrl.types import Point

FIRST = 10**6
"""Number of the first free shot; greater than that of any action."""
_SIDE, _ORIGIN = 4096, 2048
"""Release points lie in a square of this side, this far left of and above the corner of the screen."""
_TAPS = 8192
"""Milliseconds until a tap are smaller."""


def number_of(release: Point, tap_ms: int) -> int:
    """The number of a release point in whole pixels and the time of a tap."""
    x, y = round(release[0]) + _ORIGIN, round(release[1]) + _ORIGIN
    if not (0 <= x < _SIDE and 0 <= y < _SIDE and 0 <= tap_ms < _TAPS):
        raise BadSpecError(f"no shot from {release} with a tap after {tap_ms} ms: too far from the screen, or too late")
    return FIRST + (x * _SIDE + y) * _TAPS + tap_ms


def shot_of(number: int) -> tuple[Point, int] | None:
    """The release point and the tap of a number; None if it is that of an action."""
    if number < FIRST:
        return None
    place, tap_ms = divmod(number - FIRST, _TAPS)
    x, y = divmod(place, _SIDE)
    return (x - _ORIGIN, y - _ORIGIN), tap_ms
