"""What an agent sees of a level, by the option `observation` of the domain."""

import numpy as np
from numpy.typing import NDArray

from nappingrl.domains.angrybirds.aiming import Targets
from nappingrl.domains.angrybirds.ground_truth.raster import CHANNELS, SMALL, raster
from nappingrl.domains.angrybirds.ground_truth.state import ground_truth
from nappingrl.domains.angrybirds.layout import OBSERVATION_NAMES
from nappingrl.domains.angrybirds.physics.scene import Scene
from nappingrl.options import Option

OBSERVATION = Option(
    "label",
    "what tells an object's class: its label or its colours; raster: its label, and a picture besides",
    ("label", "colour", "raster"),
)
RASTER_NAMES = tuple(f"{channel} {row},{column}" for channel in CHANNELS for row, column in np.ndindex(SMALL))


def observation_names(observation: str) -> tuple[str, ...]:
    """The names of the numbers in an observation."""
    return OBSERVATION_NAMES + (RASTER_NAMES if observation == "raster" else ())


class Observer:
    """Watches one level.

    Attributes:
        targets: The objects that can be aimed at, as last seen.
    """

    def __init__(self, observation: str = "label") -> None:
        self._observation = observation
        self.targets = Targets("colour" if observation == "colour" else "label")

    def look(self, scene: Scene) -> NDArray[np.float32]:
        """The observation; see `layout`."""
        truth = ground_truth(scene)
        self.targets.update(truth)
        objects = self.targets.observe()
        if self._observation != "raster":
            return objects
        return np.concatenate([objects, raster(truth, SMALL, by_label=True).ravel()])
