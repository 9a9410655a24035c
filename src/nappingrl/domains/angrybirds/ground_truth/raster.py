"""The ground truth as a stack of small images, one per class, for networks."""

import numpy as np
from numpy.typing import NDArray

from nappingrl.domains.angrybirds.ground_truth.state import GroundTruth, boxes, sling_box
from nappingrl.domains.angrybirds.physics.scene import PIXELS, Box

CHANNELS = ("sling", "red", "yellow", "blue", "white", "black", "pig", "wood", "ice", "stone", "tnt", "platform")
ROWS, COLUMNS = 120, 160

_INDEX = {name: i for i, name in enumerate(CHANNELS)}


def raster(truth: GroundTruth) -> NDArray[np.float32]:
    """The boxes of all objects as filled rectangles, (12, 120, 160) float32, channels as in `CHANNELS`.

    The colour selects the channel; unknown colours go to "tnt", as in the published classifier. The bins lie between
    the points of linspace(0, 640, 160) and linspace(0, 480, 120) and include their upper point, so the last row and the
    last column stay empty. A box fills the bins from corner to corner. Two quirks of the published reader are left
    out: coordinates beyond the screen are clipped (there they take the bin of the previous object), and platforms are
    included in developer mode, too.
    """
    picture = np.zeros((len(CHANNELS), ROWS, COLUMNS), np.float32)
    _fill(picture[0], sling_box(truth))
    for seen in boxes(truth):
        channel = _INDEX.get(seen.colour, _INDEX["tnt"])
        _fill(picture[channel], seen.box)
    return picture


def _fill(channel: NDArray[np.float32], box: Box) -> None:
    left, right = _bin(box.left, PIXELS[0], COLUMNS), _bin(box.right, PIXELS[0], COLUMNS)
    top, bottom = _bin(box.top, PIXELS[1], ROWS), _bin(box.bottom, PIXELS[1], ROWS)
    channel[top : bottom + 1, left : right + 1] = 1.0


def _bin(value: float, size: int, n_points: int) -> int:
    """The bin of a coordinate; bins exclude their lower and include their upper point."""
    place = int(-(-value * (n_points - 1) // size)) - 1
    return min(max(place, 0), n_points - 2)
