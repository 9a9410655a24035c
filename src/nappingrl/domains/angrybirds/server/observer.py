"""What one pair of eyes sees of a scene, in the bytes of the wire; the noise of one does not touch another's."""

import msgspec
import numpy as np

from nappingrl.domains.angrybirds.ground_truth import state
from nappingrl.domains.angrybirds.physics.scene import PIXELS, Scene
from nappingrl.domains.angrybirds.pictures import picture
from nappingrl.domains.angrybirds.server.protocol import Code, Picture, encode_picture, encode_sized

NOTHING = msgspec.json.encode([{"type": "FeatureCollection", "features": []}]) + state.TAIL
"""The ground truth outside a level."""
MENU_COLOUR = 150, 200, 230

LOOKS = frozenset(
    {Code.SCREENSHOT, Code.TRUTH_AND_SCREENSHOT, Code.TRUTH, Code.NOISY_TRUTH_AND_SCREENSHOT, Code.NOISY_TRUTH}
)
"""Requests that only look at the scene."""
_WITH_PICTURE = (Code.TRUTH_AND_SCREENSHOT, Code.NOISY_TRUTH_AND_SCREENSHOT)
_NOISY = (Code.NOISY_TRUTH, Code.NOISY_TRUTH_AND_SCREENSHOT)


class Sight:
    """Ground truths and pictures.

    Attributes:
        is_dev: labels say what things are, and codes 61 and 62 are exact.
        has_noisy_batches: records of a batch are noisy, too.
    """

    def __init__(self, is_dev: bool, has_noisy_batches: bool, noise: np.random.Generator) -> None:
        self.is_dev, self.has_noisy_batches = is_dev, has_noisy_batches
        self._noise = noise

    def look(self, code: Code, scene: Scene | None) -> bytes:
        """The reply to one of `LOOKS`."""
        if code is Code.SCREENSHOT:
            return encode_picture(self.picture(scene))
        truth = encode_sized(self.truth(scene, code in _NOISY or not self.is_dev))
        return truth + encode_picture(self.picture(scene)) if code in _WITH_PICTURE else truth

    def truth(self, scene: Scene | None, is_noisy: bool) -> bytes:
        """A ground truth with its tail."""
        if scene is None:
            return NOTHING
        return state.payload(scene, self.is_dev, self._noise if is_noisy else None)

    def picture(self, scene: Scene | None) -> Picture:
        """A screenshot, (480, 640, 3)."""
        if scene is None:
            return np.full((*PIXELS[::-1], 3), MENU_COLOUR, np.uint8)
        return picture.draw(scene)
