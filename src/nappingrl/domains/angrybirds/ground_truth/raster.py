"""The ground truth as a stack of small images, one per class, for networks."""

import numpy as np
from numpy.typing import NDArray

from nappingrl.domains.angrybirds.ground_truth.state import GroundTruth, boxes, sling_box
from nappingrl.domains.angrybirds.physics.scene import PIXELS, Box

CHANNELS = ("sling", "red", "yellow", "blue", "white", "black", "pig", "wood", "ice", "stone", "tnt", "platform")
ROWS, COLUMNS = 120, 160

_INDEX = {name: i for i, name in enumerate(CHANNELS)}


def raster(truth: GroundTruth) -> NDArray[np.float32]:
    """The upright boxes of all objects, filled with ones: (12, 120, 160), channels as in `CHANNELS`.

    The channel is that of the colour; a colour that is none of them goes to "tnt", as the published classifier does
    with colours it does not know. The bins lie between the points of linspace(0, 640, 160) and linspace(0, 480, 120),
    the upper point belonging to the bin: the last row and the last column stay empty. A box fills the bins of both its
    corners and all between. Two habits of the published reader are left out: a coordinate beyond the screen is
    clipped to it here and does not take the bin of the object before; and platforms are seen in developer mode too.
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
    """The bin of a coordinate: its lower point is less, its upper point is not."""
    place = int(-(-value * (n_points - 1) // size)) - 1
    return min(max(place, 0), n_points - 2)
