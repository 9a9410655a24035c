"""Public: the screen, the ground truth and the colours are shown in gray, or turned by 180 degrees."""

from dataclasses import replace

from nappingrl.domains.angrybirds.physics.change import Change
from nappingrl.domains.angrybirds.physics.scene import View


class Grayscale(Change):
    """No colours."""

    def view(self, view: View) -> View:
        """In gray."""
        return replace(view, grayscale=True)


class RotatedScreen(Change):
    """Upside down, and left is right."""

    def view(self, view: View) -> View:
        """Turned about the centre of the screen."""
        return replace(view, rotation=180)
