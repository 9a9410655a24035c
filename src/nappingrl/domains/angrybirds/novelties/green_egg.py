"""Green Egg. Published: a rectangular object in the pig's colours. Our choice: size, position, that it is unbreakable.

Strength is the share of a level's spots that get an egg; in a level without spots it is the number of eggs, which stand
on the ground left of the leftmost pig.
"""

from typing_extensions import override

from nappingrl.domains.angrybirds.novelties.placement import add_blocks
from nappingrl.domains.angrybirds.physics.change import Change
from nappingrl.domains.angrybirds.physics.scene import Level


class GreenEgg(Change):
    """An object that looks like a pig to agents that classify by colour."""

    @override
    def level(self, level: Level) -> Level:
        return add_blocks(level, "GreenEgg", self.strength, distance=1.5, is_goal=False)
