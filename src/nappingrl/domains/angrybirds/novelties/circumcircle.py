"""Circumcircle. Published: the ground truth has circumscribed circles, no shapes. Our choice: the JSON (state.py)."""

from dataclasses import replace

from typing_extensions import override

from nappingrl.domains.angrybirds.physics.change import Change
from nappingrl.domains.angrybirds.physics.scene import View


class Circumcircle(Change):
    """Shapes are hidden, the slingshot's too."""

    @override
    def view(self, view: View) -> View:
        return replace(view, circumcircle=True)
