"""Published novelties that change constants: bounciness, life, mass, gravity of birds, wind."""

from dataclasses import replace

from typing_extensions import override

from nappingrl.domains.angrybirds.physics.change import Change
from nappingrl.domains.angrybirds.physics.presets import Preset
from nappingrl.domains.angrybirds.physics.scene import BIRDS, BLOCKS, MATERIALS

BOUNCE = 0.9
WIND = -2.0
"""Units/s^2 to the left at strength 1; our choice, no number is published."""


class BouncierBird(Change):
    """Published: the red bird's bounciness becomes 0.9; strength s interpolates."""

    @override
    def preset(self, preset: Preset) -> Preset:
        red = preset.nature("BirdRed")
        red = replace(red, bounce=red.bounce + self.strength * (BOUNCE - red.bounce))
        return replace(preset, natures={**preset.natures, ("BirdRed", ""): red})


class TougherWood(Change):
    """Published: wood has three times its life; strength s gives 1 + 2 s."""

    @override
    def preset(self, preset: Preset) -> Preset:
        return preset.changed(BLOCKS, ("wood",), life=1.0 + 2.0 * self.strength)


class LighterBlocks(Change):
    """Published: blocks lose 90 % of their mass (there one new block, here all); strength s takes 0.9 s."""

    @override
    def preset(self, preset: Preset) -> Preset:
        return preset.changed(BLOCKS, MATERIALS, mass=1.0 - 0.9 * self.strength)


class NoGravityForBirds(Change):
    """Published: birds fly straight; strength s removes that share of their gravity."""

    @override
    def preset(self, preset: Preset) -> Preset:
        return preset.changed(BIRDS, gravity=1.0 - self.strength)


class Storm(Change):
    """Published: a storm pushes birds to the left."""

    @override
    def preset(self, preset: Preset) -> Preset:
        return replace(preset, wind=(WIND * self.strength, 0.0))
