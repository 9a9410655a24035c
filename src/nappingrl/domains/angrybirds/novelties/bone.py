"""Bone. Published: an object that must be destroyed to pass. Our choice: shape, colours, life and position.

Strength is the number of bones; they lie on the ground, the first one left of the leftmost pig.
"""

from typing_extensions import override

from nappingrl.domains.angrybirds.novelties.placement import on_ground
from nappingrl.domains.angrybirds.physics.change import Change
from nappingrl.domains.angrybirds.physics.scene import Level


class Bone(Change):
    """A level is not won while a bone is whole."""

    @override
    def level(self, level: Level) -> Level:
        for _ in range(round(self.strength)):
            level = on_ground(level, "Bone", beside=min, distance=-2.5, is_goal=True)
        return level
