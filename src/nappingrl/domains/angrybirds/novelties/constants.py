"""Public novelties that are other constants: bounciness, life, mass, gravity of birds, wind."""

from dataclasses import replace

from nappingrl.domains.angrybirds.physics.change import Change
from nappingrl.domains.angrybirds.physics.presets import Preset
from nappingrl.domains.angrybirds.physics.scene import BIRDS, BLOCKS, MATERIALS

BOUNCE = 0.9
WIND = -2.0
"""Units/s^2 to the left at strength 1: ours, the public text has no figure."""


class BouncierBird(Change):
    """Public: the red bird's bounciness becomes .9; strength s goes that share of the way."""

    def preset(self, preset: Preset) -> Preset:
        """A bouncier red bird."""
        red = preset.nature("BirdRed")
        red = replace(red, bounce=red.bounce + self.strength * (BOUNCE - red.bounce))
        return replace(preset, natures={**preset.natures, ("BirdRed", ""): red})


class TougherWood(Change):
    """Public: wood has three times its life; strength s gives 1 + 2 s."""

    def preset(self, preset: Preset) -> Preset:
        """Wood that takes more."""
        return preset.changed(BLOCKS, ("wood",), life=1.0 + 2.0 * self.strength)


class LighterBlocks(Change):
    """Public: 90 % of the mass is gone (there of one new block, here of all); strength s takes .9 s."""

    def preset(self, preset: Preset) -> Preset:
        """Light blocks."""
        return preset.changed(BLOCKS, MATERIALS, mass=1.0 - 0.9 * self.strength)


class NoGravityForBirds(Change):
    """Public: birds fly straight; strength s takes that share of their gravity."""

    def preset(self, preset: Preset) -> Preset:
        """Birds without weight."""
        return preset.changed(BIRDS, gravity=1.0 - self.strength)


class Storm(Change):
    """Public: a storm pushes birds to the left."""

    def preset(self, preset: Preset) -> Preset:
        """With wind."""
        return replace(preset, wind=(WIND * self.strength, 0.0))
