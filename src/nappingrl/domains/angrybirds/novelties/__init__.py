"""The novelties of Angry Birds, one module each; each says what is published and what is our choice."""

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

NOVELTIES: Mapping[str, type[Change]] = {
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
"""First the seven of the paper, in its order (pig-color is its spelling); then published ones with clear parameters."""

PAPER_NOVELTIES = tuple(NOVELTIES)[:7]


def make_change(strengths: Mapping[str, float]) -> Change:
    """Combine all novelties whose strength is not 0."""
    for name in strengths:
        check_name("novelty of angrybirds", name, NOVELTIES)
    return Changes([NOVELTIES[name](strength) for name, strength in strengths.items() if strength])
