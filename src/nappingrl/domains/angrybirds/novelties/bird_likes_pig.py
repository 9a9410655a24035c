"""Bird Likes Pig. Public: the red bird does no damage to pigs. Ours: strength s leaves the share 1 - s of it."""

from dataclasses import replace

from nappingrl.domains.angrybirds.physics.change import Change
from nappingrl.domains.angrybirds.physics.presets import Preset


class BirdLikesPig(Change):
    """A red bird cannot hurt a pig; blocks, falls and explosions still can."""

    def preset(self, preset: Preset) -> Preset:
        """Red birds' harm to pigs is gone."""
        red = replace(preset.nature("BirdRed"), pig_harm=1.0 - self.strength)
        return replace(preset, natures={**preset.natures, ("BirdRed", ""): red})
