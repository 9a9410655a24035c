"""Green Egg. Public: a rectangular object with the pig's colours. Ours: its size, that nothing breaks it, its place.

Strength is the number of eggs: each stands on the ground, the first to the left of the left-most pig.
"""

from nappingrl.domains.angrybirds.novelties.placement import on_ground
from nappingrl.domains.angrybirds.physics.change import Change
from nappingrl.domains.angrybirds.physics.scene import Level


class GreenEgg(Change):
    """Looks like a pig to whoever goes by colour."""

    def level(self, level: Level) -> Level:
        """Eggs added."""
        for _ in range(round(self.strength)):
            level = on_ground(level, "GreenEgg", beside=min, distance=-1.5, is_goal=False)
        return level
