"""Draws sprites: strokes relative to the centre of an object, placed on a canvas."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import cos, sin, tau

from PIL import ImageDraw

from nappingrl.domains.angrybirds.ground_truth.palette import Rgb, Shades
from nappingrl.domains.angrybirds.physics.scene import Camera
from nappingrl.types import Point

FIXED: dict[str, Rgb] = {"eye": (255, 255, 255), "pupil": (24, 24, 28), "spark": (255, 214, 92)}
"""Shades that do not depend on the colour of the object."""


@dataclass(frozen=True, slots=True)
class Stroke:
    """A filled polygon; with a width, a line; with one point, a disc of that radius. In world units."""

    points: tuple[Point, ...]
    shade: str
    """A field of `palette.Shades`, or one of `FIXED`."""
    width: float = 0.0


Sprite = tuple[Stroke, ...]


def oval(x: float, y: float, across: float, up: float, shade: str, lean: float = 0.0) -> Stroke:
    """A filled ellipse given by its half axes, rotated counterclockwise by `lean` radians."""
    points = []
    for i in range(28):
        u, v = across * cos(tau * i / 28), up * sin(tau * i / 28)
        points.append((x + u * cos(lean) - v * sin(lean), y + u * sin(lean) + v * cos(lean)))
    return Stroke(tuple(points), shade)


def disc(x: float, y: float, radius: float, shade: str) -> Stroke:
    """A filled circle."""
    return Stroke(((x, y),), shade, radius)


class Pen:
    """Draws strokes on a canvas of a camera's view, with `factor` points per pixel of the screen."""

    def __init__(self, canvas: ImageDraw.ImageDraw, camera: Camera, factor: int) -> None:
        self._canvas = canvas
        left, top = camera.to_pixels(0.0, 0.0)
        self._left, self._top = left * factor, top * factor
        self._unit = camera.scale * factor

    def stamp(self, sprite: Iterable[Stroke], shades: Shades, x: float, y: float, angle: float = 0.0) -> None:
        """Draw a sprite with its centre at (x, y), rotated counterclockwise by `angle` radians."""
        unit = self._unit
        c, s = unit * cos(angle), unit * sin(angle)
        left, top = self._left + x * unit, self._top - y * unit
        for stroke in sprite:
            colour = FIXED.get(stroke.shade) or getattr(shades, stroke.shade)
            points = [(left + c * u - s * v, top - s * u - c * v) for u, v in stroke.points]
            if len(points) == 1:
                self._disc(points[0], stroke.width * unit, colour)
            elif stroke.width:
                self._line(points, stroke.width * unit, colour)
            else:
                self._canvas.polygon(points, fill=colour)

    def _disc(self, centre: Point, radius: float, colour: Rgb) -> None:
        x, y = centre
        self._canvas.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)

    def _line(self, points: Sequence[Point], width: float, colour: Rgb) -> None:
        """Draw a line, with round ends and joints if it is thick."""
        thick = max(1, round(width))
        self._canvas.line(points, fill=colour, width=thick)
        if thick > 2:
            for point in points:
                self._disc(point, width / 2, colour)
