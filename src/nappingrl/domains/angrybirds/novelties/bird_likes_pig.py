"""Bird Likes Pig. Published: red birds do no damage to pigs. Our choice: strength s leaves a share of 1 - s."""

from dataclasses import replace

from typing_extensions import override

from nappingrl.domains.angrybirds.physics.change import Change
from nappingrl.domains.angrybirds.physics.presets import Preset


class BirdLikesPig(Change):
    """A red bird cannot hurt a pig; blocks, falls and explosions still can."""

    @override
    def preset(self, preset: Preset) -> Preset:
        red = replace(preset.nature("BirdRed"), pig_harm=1.0 - self.strength)
        return replace(preset, natures={**preset.natures, ("BirdRed", ""): red})
