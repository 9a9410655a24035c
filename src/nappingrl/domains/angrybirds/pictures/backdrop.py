"""The background: sky, sun, clouds, hills, grass and soil."""

from functools import lru_cache
from math import sin
from random import Random

import numpy as np
from PIL import Image, ImageDraw

from nappingrl.domains.angrybirds.ground_truth.palette import Rgb
from nappingrl.domains.angrybirds.physics.scene import GROUND, PIXELS, Camera

_SKY: tuple[Rgb, Rgb] = ((104, 178, 236), (226, 243, 250))
_SOIL: tuple[Rgb, Rgb] = ((146, 100, 62), (84, 56, 38))
_HILLS: tuple[tuple[Rgb, float, float, float], ...] = (
    ((176, 214, 222), 74, 150, 0.4),
    ((146, 200, 184), 48, 96, 2.1),
    ((122, 186, 128), 24, 62, 4.4),
)
"""Colour, height above the ground, width and offset of a wave; in pixels of the screen."""
_GRASS: tuple[Rgb, Rgb, Rgb] = ((88, 158, 62), (122, 190, 80), (66, 126, 50))


def _gradient(image: Image.Image, top: int, bottom: int, colours: tuple[Rgb, Rgb]) -> None:
    """Fill the rows from `top` to `bottom`, from one colour to the other."""
    if bottom <= top:
        return
    share = np.linspace(0, 1, bottom - top)[:, None]
    rows = np.array(colours[0]) * (1 - share) + np.array(colours[1]) * share
    strip = Image.fromarray(rows.round().astype(np.uint8)[:, None, :])
    image.paste(strip.resize((image.width, bottom - top)), (0, top))


def _clouds(draw: ImageDraw.ImageDraw, horizon: float, k: int) -> None:
    for x, y, size in ((92, 0.22, 1.0), (318, 0.12, 0.8), (520, 0.3, 1.2), (220, 0.44, 0.6), (420, 0.5, 0.5)):
        row = horizon * y
        for colour, down in (((214, 234, 246), 4), ((250, 253, 255), 0)):
            for dx, dy, radius in ((-34, 4, 12), (-16, -3, 17), (6, -8, 20), (26, -1, 15), (42, 5, 10)):
                u, v, r = x + dx * size, row + (dy + down) * size, radius * size
                draw.ellipse(((u - r) * k, (v - r * 0.72) * k, (u + r) * k, (v + r * 0.72) * k), fill=colour)


def _hills(draw: ImageDraw.ImageDraw, horizon: float, k: int) -> None:
    for colour, height, wave, start in _HILLS:
        tops = [
            (x * k, (horizon - height * (0.62 + 0.3 * sin(x / wave + start) + 0.12 * sin(x / wave * 2.7 + start))) * k)
            for x in range(0, PIXELS[0] + 8, 4)
        ]
        draw.polygon([(0, horizon * k), *tops, (PIXELS[0] * k, horizon * k)], fill=colour)


def _ground(draw: ImageDraw.ImageDraw, horizon: float, k: int) -> None:
    """Pebbles and layers in the soil; grass with a ragged lower edge and blades on top."""
    random = Random(5)
    width, height = PIXELS
    for _ in range(110):
        x, y, r = random.uniform(0, width), random.uniform(horizon + 22, height + 4), random.uniform(1.2, 4.2)
        colour = random.choice(((118, 80, 52), (146, 106, 72), (98, 66, 44)))
        draw.ellipse(((x - r * 1.5) * k, (y - r) * k, (x + r * 1.5) * k, (y + r) * k), fill=colour)
    x = 0.0
    while x < width:
        step, deep = random.uniform(6, 13), random.uniform(11, 17)
        draw.ellipse((x * k, (horizon + deep - 12) * k, (x + step * 1.5) * k, (horizon + deep) * k), fill=_GRASS[2])
        draw.ellipse((x * k, (horizon + deep - 15) * k, (x + step * 1.4) * k, (horizon + deep - 3) * k), fill=_GRASS[0])
        x += step
    draw.rectangle((0, horizon * k, width * k, (horizon + 7) * k), fill=_GRASS[0])
    draw.rectangle((0, horizon * k, width * k, (horizon + 2.4) * k), fill=_GRASS[1])
    for _ in range(260):
        x, tall, lean = random.uniform(0, width), random.uniform(1.5, 3.6), random.uniform(-1.4, 1.4)
        tip = ((x + lean) * k, (horizon - tall) * k)
        draw.polygon([((x - 0.8) * k, (horizon + 1) * k), ((x + 0.8) * k, (horizon + 1) * k), tip], fill=_GRASS[1])


@lru_cache(maxsize=2)
def backdrop(camera: Camera, k: int) -> Image.Image:
    """The background in a camera's view, with k points per pixel of the screen; cached, so copy it before drawing."""
    width, height = PIXELS[0] * k, PIXELS[1] * k
    horizon = camera.to_pixels(0.0, GROUND)[1]
    image = Image.new("RGB", (width, height), _SOIL[1])
    row = min(max(round(horizon * k), 0), height)
    _gradient(image, 0, row, _SKY)
    _gradient(image, row, height, _SOIL)
    draw = ImageDraw.Draw(image)
    for radius, colour in ((44, (150, 206, 240)), (30, (255, 238, 168))):
        x, y = 556, 0.2 * horizon
        draw.ellipse(((x - radius) * k, (y - radius) * k, (x + radius) * k, (y + radius) * k), fill=colour)
    _clouds(draw, horizon, k)
    _hills(draw, horizon, k)
    _ground(draw, horizon, k)
    return image
