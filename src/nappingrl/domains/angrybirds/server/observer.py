"""Ground truths and screenshots of a scene in wire format; each observer has its own noise."""

import msgspec
import numpy as np

from nappingrl.domains.angrybirds.ground_truth import state
from nappingrl.domains.angrybirds.physics.scene import PIXELS, Scene
from nappingrl.domains.angrybirds.pictures import picture
from nappingrl.domains.angrybirds.server.protocol import Code
from nappingrl.domains.angrybirds.server.wire import Picture, encode_picture, encode_sized

EMPTY_TRUTH = msgspec.json.encode([{"type": "FeatureCollection", "features": []}]) + state.TAIL
"""The ground truth outside a level."""
MENU_COLOUR = 150, 200, 230

OBSERVE_CODES = frozenset(
    {Code.SCREENSHOT, Code.TRUTH_AND_SCREENSHOT, Code.TRUTH, Code.NOISY_TRUTH_AND_SCREENSHOT, Code.NOISY_TRUTH}
)
"""Requests that only observe the scene."""
_WITH_PICTURE = (Code.TRUTH_AND_SCREENSHOT, Code.NOISY_TRUTH_AND_SCREENSHOT)
_NOISY = (Code.NOISY_TRUTH, Code.NOISY_TRUTH_AND_SCREENSHOT)


class Observer:
    """Encodes ground truths and screenshots.

    Args:
        is_dev: Developer mode: labels tell what objects are, and codes 61 and 62 are exact.
        has_noisy_batches: Records of a batch are noisy, too.
        noise: Source of the noise.
    """

    def __init__(self, is_dev: bool, has_noisy_batches: bool, noise: np.random.Generator) -> None:
        self._is_dev = is_dev
        self._has_noisy_batches = has_noisy_batches
        self._noise = noise

    def reply(self, code: Code, scene: Scene | None) -> bytes:
        """The reply to one of `OBSERVE_CODES`."""
        if code is Code.SCREENSHOT:
            return encode_picture(self.picture(scene))
        truth = encode_sized(self._truth(scene, code in _NOISY or not self._is_dev))
        return truth + encode_picture(self.picture(scene)) if code in _WITH_PICTURE else truth

    def record(self, scene: Scene | None) -> bytes:
        """A ground truth for a batch, with its tail."""
        return self._truth(scene, self._has_noisy_batches)

    def picture(self, scene: Scene | None) -> Picture:
        """A screenshot, (480, 640, 3); without a scene, that of the menu."""
        if scene is None:
            return np.full((*PIXELS[::-1], 3), MENU_COLOUR, np.uint8)
        return picture.draw(scene)

    def _truth(self, scene: Scene | None, is_noisy: bool) -> bytes:
        if scene is None:
            return EMPTY_TRUTH
        return state.payload(scene, self._is_dev, self._noise if is_noisy else None)
