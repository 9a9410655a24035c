"""Bone. Published: an object that must be destroyed to pass. Our choice: shape, colours, life and position.

Strength is the share of a level's spots that get a bone; in a level without spots it is the number of bones, which lie
on the ground left of the leftmost pig.
"""

from typing_extensions import override

from nappingrl.domains.angrybirds.novelties.placement import add_blocks
from nappingrl.domains.angrybirds.physics.change import Change
from nappingrl.domains.angrybirds.physics.scene import Level


class Bone(Change):
    """A level is not won while a bone is whole."""

    @override
    def level(self, level: Level) -> Level:
        return add_blocks(level, "Bone", self.strength, distance=2.5, is_goal=True)
