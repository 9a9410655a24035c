"""Circumcircle. Public: the ground truth gives circumscribed circles instead of shapes. Ours: their JSON (state.py)."""

from dataclasses import replace

from nappingrl.domains.angrybirds.physics.change import Change
from nappingrl.domains.angrybirds.physics.scene import View


class Circumcircle(Change):
    """Shapes are hidden, the slingshot's too."""

    def view(self, view: View) -> View:
        """Circles only."""
        return replace(view, circumcircle=True)
