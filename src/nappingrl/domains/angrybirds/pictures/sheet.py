"""Contact sheets: many scenes in one picture."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from nappingrl.domains.angrybirds.ground_truth.state import features_of, ground_truth
from nappingrl.domains.angrybirds.physics.scene import Scene
from nappingrl.domains.angrybirds.pictures.picture import draw

SCALE = 2
CUT = (66, 150, 562, 302)
"""The part of the screen that our templates use: left, top, right, bottom in pixels."""
WIDTH = 560
"""Width of one picture of a sheet."""
_MARGIN, _CAPTION = 10, 20
_PAPER, _INK, _CIRCLE = (255, 255, 255), (30, 40, 50), (255, 255, 255)


def picture_of(scene: Scene) -> Image.Image:
    """The relevant part of a scene, with circles if the ground truth has only circles."""
    picture = Image.fromarray(draw(scene, SCALE))
    if scene.view.circumcircle:
        pen = ImageDraw.Draw(picture)
        for feature in features_of(ground_truth(scene)):
            geometry = feature["geometry"]
            if geometry.get("type") == "Circle":
                (x, y), radius = geometry["center"], geometry["radius"]
                pen.circle((x * SCALE, y * SCALE), radius * SCALE, outline=_CIRCLE, width=SCALE)
    left, top, right, bottom = CUT
    cut = picture.crop((SCALE * left, SCALE * top, SCALE * right, SCALE * bottom))
    return cut.resize((WIDTH, round(WIDTH * cut.height / cut.width)), Image.Resampling.LANCZOS)


def contact_sheet(shown: Sequence[tuple[str, Scene]], columns: int) -> NDArray[np.uint8]:
    """Scenes with captions, from left to right and top to bottom."""
    pictures = [(caption, picture_of(scene)) for caption, scene in shown]
    width, height = pictures[0][1].size
    step_x, step_y = width + _MARGIN, height + _CAPTION + _MARGIN
    n_rows = -(-len(pictures) // columns)
    sheet = Image.new("RGB", (columns * step_x + _MARGIN, n_rows * step_y + _MARGIN), _PAPER)
    pen = ImageDraw.Draw(sheet)
    for i, (caption, picture) in enumerate(pictures):
        row, column = divmod(i, columns)
        x, y = _MARGIN + column * step_x, _MARGIN + row * step_y
        pen.text((x, y + 2), caption, _INK, ImageFont.load_default(13))
        sheet.paste(picture, (x, y + _CAPTION))
    return np.array(sheet)
