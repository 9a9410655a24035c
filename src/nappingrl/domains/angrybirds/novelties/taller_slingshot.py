"""Taller Slingshot. Public: the slingshot is twice as high. Ours: it grows upwards, and the bird starts higher.

Strength s makes it 1 + s times as high.
"""

from nappingrl.domains.angrybirds.physics.change import Change


class TallerSlingshot(Change):
    """The launch origin is raised; whoever reads the scale of the world off the slingshot misjudges it."""

    def sling_height(self) -> float:
        """Twice as high at strength 1."""
        return 1.0 + self.strength
