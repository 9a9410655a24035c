"""The ground truth as a stack of small images, one per class, for networks."""

import numpy as np
from numpy.typing import NDArray

from nappingrl.domains.angrybirds.ground_truth.labels import word_of
from nappingrl.domains.angrybirds.ground_truth.state import GroundTruth, boxes, sling_box
from nappingrl.domains.angrybirds.physics.scene import PIXELS, Box

CHANNELS = ("sling", "red", "yellow", "blue", "white", "black", "pig", "wood", "ice", "stone", "tnt", "platform")
PUBLISHED, SMALL = (120, 160), (30, 40)
"""Rows and columns: of the published reader, and of our networks."""

_INDEX = {name: i for i, name in enumerate(CHANNELS)}


def raster(truth: GroundTruth, shape: tuple[int, int] = PUBLISHED, by_label: bool = False) -> NDArray[np.float32]:
    """The boxes of all objects as filled rectangles, (12, rows, columns) float32, channels as in `CHANNELS`.

    The colour selects the channel, or the label; unknown ones go to "tnt", as in the published classifier. The bins
    lie between the points of linspace(0, 640, columns) and linspace(0, 480, rows) and include their upper point, so the
    last row and the last column stay empty. A box fills the bins from corner to corner. Two quirks of the published
    reader are left out: coordinates beyond the screen are clipped (there they take the bin of the previous object), and
    platforms are included in developer mode, too.
    """
    picture = np.zeros((len(CHANNELS), *shape), np.float32)
    _fill(picture[0], sling_box(truth))
    for seen in boxes(truth):
        channel = _INDEX.get(word_of(seen.label) if by_label else seen.colour, _INDEX["tnt"])
        _fill(picture[channel], seen.box)
    return picture


def _fill(channel: NDArray[np.float32], box: Box) -> None:
    rows, columns = channel.shape
    left, right = _bin(box.left, PIXELS[0], columns), _bin(box.right, PIXELS[0], columns)
    top, bottom = _bin(box.top, PIXELS[1], rows), _bin(box.bottom, PIXELS[1], rows)
    channel[top : bottom + 1, left : right + 1] = 1.0


def _bin(value: float, size: int, n_points: int) -> int:
    """The bin of a coordinate; bins exclude their lower and include their upper point."""
    place = int(-(-value * (n_points - 1) // size)) - 1
    return min(max(place, 0), n_points - 2)
