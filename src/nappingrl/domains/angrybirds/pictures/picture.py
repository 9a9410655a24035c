"""Screenshots, in a style of our own."""

from functools import lru_cache
from math import hypot

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from nappingrl.domains.angrybirds.ground_truth import palette
from nappingrl.domains.angrybirds.ground_truth.labels import damage_stage
from nappingrl.domains.angrybirds.physics.scene import Scene, Thing
from nappingrl.domains.angrybirds.physics.sizes import SPRITE_SIZES
from nappingrl.domains.angrybirds.pictures.animals import animal
from nappingrl.domains.angrybirds.pictures.backdrop import backdrop
from nappingrl.domains.angrybirds.pictures.blocks import block, bone, green_egg, platform, tnt
from nappingrl.domains.angrybirds.pictures.pen import Pen, Sprite, disc
from nappingrl.domains.angrybirds.pictures.sling import draw_before, draw_behind
from nappingrl.errors import BadSpecError
from nappingrl.types import Point

FINEST = 4
"""The largest scale of a picture."""
REACH = 1.5
"""A bird nearer to the sling's origin than this lies in its band."""
_LAYERS = {"platform": 0, "tnt": 1, "block": 2, "pig": 3, "egg": 4, "bird": 5}
_DOTS = palette.PAINTS["white"].shades


def draw(scene: Scene, scale: int = 1) -> NDArray[np.uint8]:
    """An RGB picture of a scene: (480 * scale, 640 * scale, 3)."""
    if not 1 <= scale <= FINEST:
        raise BadSpecError(f"scale is {scale}; allowed: 1 to {FINEST} points per pixel of the 640 x 480 screen")
    finer = 3 if scale == 1 else 2
    image = backdrop(scene.camera, scale * finer).copy()
    pen = Pen(ImageDraw.Draw(image), scene.camera, scale * finer)
    _draw_trajectory(pen, scene.dots)
    things = sorted(scene.things, key=lambda thing: _LAYERS[thing.kind])
    n_behind = sum(thing.kind != "bird" for thing in things)
    for thing in things[:n_behind]:
        _draw_thing(pen, thing)
    pouch = _pouch(scene)
    draw_behind(pen, scene.sling, pouch)
    for thing in things[n_behind:]:
        _draw_thing(pen, thing)
    draw_before(pen, scene.sling, pouch)
    image = image.reduce(finer)
    if scene.view.grayscale:
        image = image.convert("L").convert("RGB")
    if scene.view.rotation == 180:
        image = image.transpose(Image.Transpose.ROTATE_180)
    return np.array(image)


def _draw_thing(pen: Pen, thing: Thing) -> None:
    sprite = _sprite(thing.type, thing.material, damage_stage(thing), thing.scale_x, thing.scale_y)
    pen.stamp(sprite, palette.paint(thing.colour).shades, thing.x, thing.y, thing.angle)


@lru_cache(maxsize=512)
def _sprite(type_: str, material: str, stage: int, scale_x: float, scale_y: float) -> Sprite:
    width, height = SPRITE_SIZES[type_]
    if type_ == "Platform":
        return platform(width * scale_x, height * scale_y)
    if type_ == "TNT":
        return tnt(width, height)
    if type_ == "GreenEgg":
        return green_egg(width, height)
    if type_ == "Bone":
        return bone(width, height)
    if type_.startswith(("Bird", "Basic", "Egg")):
        return animal(type_, width, height, stage)
    return block(type_, material, stage)


def _draw_trajectory(pen: Pen, dots: tuple[Point, ...]) -> None:
    """Two smaller dots after every larger one."""
    for i, (x, y) in enumerate(dots):
        radius = 0.1 if i % 3 == 0 else 0.07
        pen.stamp((disc(0.0, 0.0, radius + 0.03, "line"), disc(0.0, 0.0, radius, "light")), _DOTS, x, y)


def _pouch(scene: Scene) -> Point | None:
    """Where the band is held: behind the bird on the sling, if there is one."""
    x, y = scene.sling.origin
    for thing in scene.things:
        if thing.id == scene.next_bird and hypot(thing.x - x, thing.y - y) < REACH:
            return thing.x - 0.4 * SPRITE_SIZES[thing.type][0], thing.y - 0.05
    return None
