"""What domains draw on: pixels of pygame for rgb_array and windows, or recorded shapes for other painters."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from nappingrl.errors import MissingExtraError
from nappingrl.types import Point

SIZE = (600, 400)
COLOURS = {
    "sky": (250, 250, 252),
    "ground": (90, 104, 114),
    "body": (35, 60, 90),
    "part": (214, 120, 45),
    "joint": (110, 110, 125),
    "goal": (40, 150, 90),
    "pavement": (205, 208, 214),
    "car": (190, 30, 45),
    "player": (60, 190, 80),
}
"""Colour-blind safe: the parts of a picture also differ in brightness."""


class Canvas(ABC):
    """A picture of 600 x 400 points, y downwards; colours are names in `COLOURS`."""

    @abstractmethod
    def polygon(self, points: list[Point], colour: str) -> None:
        """A filled polygon."""

    @abstractmethod
    def line(self, start: Point, end: Point, width: float, colour: str) -> None:
        """A thick line."""

    @abstractmethod
    def circle(self, centre: Point, radius: float, colour: str) -> None:
        """A filled circle."""

    @abstractmethod
    def image(self, pixels: NDArray[np.uint8]) -> None:
        """A ready picture of (height, width, 3), as large as fits."""


class Sketch(Canvas):
    """Records what is drawn, for painters of any size and theme."""

    def __init__(self) -> None:
        self.shapes: list[tuple[Any, ...]] = []
        """("polygon", colour, points), ("line", colour, start, end, width) and ("circle", colour, centre, radius)."""
        self.picture: NDArray[np.uint8] | None = None
        """The picture that was drawn as an image, if any."""

    @override
    def polygon(self, points: list[Point], colour: str) -> None:
        self.shapes.append(("polygon", colour, [_rounded(point) for point in points]))

    @override
    def line(self, start: Point, end: Point, width: float, colour: str) -> None:
        self.shapes.append(("line", colour, _rounded(start), _rounded(end), round(float(width), 1)))

    @override
    def circle(self, centre: Point, radius: float, colour: str) -> None:
        self.shapes.append(("circle", colour, _rounded(centre), round(float(radius), 1)))

    @override
    def image(self, pixels: NDArray[np.uint8]) -> None:
        self.picture = pixels


def _rounded(point: Point) -> Point:
    return round(float(point[0]), 1), round(float(point[1]), 1)


class PixelCanvas(Canvas):
    """Draws off screen with pygame; `show` puts the picture into a window."""

    def __init__(self) -> None:
        try:
            import pygame
            from pygame import gfxdraw
        except ImportError as error:
            raise MissingExtraError('rendering needs pygame: pip install "nappingrl[render]"') from error
        self._pygame, self._gfx = pygame, gfxdraw
        self._surface = pygame.Surface(SIZE)
        self._window: Any = None
        self._clock: Any = None
        self.clear()

    def clear(self) -> None:
        """An empty picture."""
        self._surface.fill(COLOURS["sky"])

    @override
    def polygon(self, points: list[Point], colour: str) -> None:
        whole = [(round(x), round(y)) for x, y in points]
        self._gfx.aapolygon(self._surface, whole, COLOURS[colour])
        self._gfx.filled_polygon(self._surface, whole, COLOURS[colour])

    @override
    def line(self, start: Point, end: Point, width: float, colour: str) -> None:
        across = np.array([start[1] - end[1], end[0] - start[0]], np.float64)
        across *= 0.5 * max(width, 1.0) / max(float(np.hypot(*across)), 1e-9)
        (a, b), (c, d), (u, v) = start, end, across
        self.polygon([(a + u, b + v), (c + u, d + v), (c - u, d - v), (a - u, b - v)], colour)

    @override
    def circle(self, centre: Point, radius: float, colour: str) -> None:
        x, y, r = round(centre[0]), round(centre[1]), round(radius)
        self._gfx.aacircle(self._surface, x, y, r, COLOURS[colour])
        self._gfx.filled_circle(self._surface, x, y, r, COLOURS[colour])

    @override
    def image(self, pixels: NDArray[np.uint8]) -> None:
        height, width = pixels.shape[:2]
        scale = min(SIZE[0] / width, SIZE[1] / height)
        surface = self._pygame.surfarray.make_surface(np.transpose(pixels, (1, 0, 2)))
        fitted = self._pygame.transform.smoothscale(surface, (round(width * scale), round(height * scale)))
        self._surface.blit(fitted, ((SIZE[0] - fitted.get_width()) // 2, (SIZE[1] - fitted.get_height()) // 2))

    def pixels(self) -> NDArray[np.uint8]:
        """The picture as (height, width, 3)."""
        return np.transpose(np.array(self._pygame.surfarray.pixels3d(self._surface)), (1, 0, 2))

    def show(self, title: str, frames_per_second: int) -> None:
        """Put the picture into a window, at the domain's frame rate."""
        if self._window is None:
            self._pygame.display.init()
            self._window = self._pygame.display.set_mode(SIZE)
            self._pygame.display.set_caption(title)
            self._clock = self._pygame.time.Clock()
        self._window.blit(self._surface, (0, 0))
        self._pygame.event.pump()
        self._pygame.display.flip()
        self._clock.tick(frames_per_second)

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._pygame.display.quit()
            self._window = None
