"""The novelties of this world, one small module each: what is public of them, and what is ours."""

from collections.abc import Mapping

from nappingrl.domains.angrybirds.novelties.bird_likes_pig import BirdLikesPig
from nappingrl.domains.angrybirds.novelties.bone import Bone
from nappingrl.domains.angrybirds.novelties.circumcircle import Circumcircle
from nappingrl.domains.angrybirds.novelties.constants import (
    BouncierBird,
    LighterBlocks,
    NoGravityForBirds,
    Storm,
    TougherWood,
)
from nappingrl.domains.angrybirds.novelties.floating_wood import FloatingWood
from nappingrl.domains.angrybirds.novelties.green_egg import GreenEgg
from nappingrl.domains.angrybirds.novelties.pig_colour import PigColour
from nappingrl.domains.angrybirds.novelties.screen import Grayscale, RotatedScreen
from nappingrl.domains.angrybirds.novelties.taller_slingshot import TallerSlingshot
from nappingrl.domains.angrybirds.physics.change import Change, Changes
from nappingrl.errors import check_name

KINDS: Mapping[str, type[Change]] = {
    "green-egg": GreenEgg,
    "bone": Bone,
    "taller-slingshot": TallerSlingshot,
    "pig-color": PigColour,
    "circumcircle": Circumcircle,
    "floating-wood": FloatingWood,
    "bird-likes-pig": BirdLikesPig,
    "bouncier-bird": BouncierBird,
    "tougher-wood": TougherWood,
    "lighter-blocks": LighterBlocks,
    "no-gravity-for-birds": NoGravityForBirds,
    "storm": Storm,
    "grayscale": Grayscale,
    "rotated-screen": RotatedScreen,
}
"""The paper's seven first, in its order; then public ones with clear parameters."""

PAPER = tuple(KINDS)[:7]


def make_change(strengths: Mapping[str, float]) -> Change:
    """All novelties whose strength is not 0, together."""
    for name in strengths:
        check_name("novelty of angrybirds", name, KINDS)
    return Changes([KINDS[name](strength) for name, strength in strengths.items() if strength])
