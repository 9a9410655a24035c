"""Taller Slingshot. Published: the slingshot is twice as high. Our choice: it grows upwards and the bird starts higher.

Strength s makes it 1 + s times as high.
"""

from typing_extensions import override

from nappingrl.domains.angrybirds.physics.change import Change


class TallerSlingshot(Change):
    """The launch origin is raised; agents that derive the scale from the slingshot misjudge it."""

    @override
    def sling_height(self) -> float:
        return 1.0 + self.strength
