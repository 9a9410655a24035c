"""Green Egg. Published: a rectangular object in the pig's colours. Our choice: size, position, that it is unbreakable.

Strength is the number of eggs; they stand on the ground, the first one left of the leftmost pig.
"""

from typing_extensions import override

from nappingrl.domains.angrybirds.novelties.placement import on_ground
from nappingrl.domains.angrybirds.physics.change import Change
from nappingrl.domains.angrybirds.physics.scene import Level


class GreenEgg(Change):
    """An object that looks like a pig to agents that classify by colour."""

    @override
    def level(self, level: Level) -> Level:
        for _ in range(round(self.strength)):
            level = on_ground(level, "GreenEgg", beside=min, distance=-1.5, is_goal=False)
        return level
