"""Bone. Public: an object that must be destroyed to pass. Ours: shape, colours, life and where it lies.

Strength is the number of bones: each lies on the ground, the first to the left of the left-most pig.
"""

from nappingrl.domains.angrybirds.novelties.placement import on_ground
from nappingrl.domains.angrybirds.physics.change import Change
from nappingrl.domains.angrybirds.physics.scene import Level


class Bone(Change):
    """A level is not won while a bone is whole."""

    def level(self, level: Level) -> Level:
        """Bones added."""
        for _ in range(round(self.strength)):
            level = on_ground(level, "Bone", beside=min, distance=-2.5, is_goal=True)
        return level
