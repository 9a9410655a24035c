"""Published: screen, ground truth and colours are shown in gray, or rotated by 180 degrees."""

from dataclasses import replace

from typing_extensions import override

from nappingrl.domains.angrybirds.physics.change import Change
from nappingrl.domains.angrybirds.physics.scene import View


class Grayscale(Change):
    """Everything is shown in gray."""

    @override
    def view(self, view: View) -> View:
        return replace(view, grayscale=True)


class RotatedScreen(Change):
    """The screen is rotated by 180 degrees."""

    @override
    def view(self, view: View) -> View:
        return replace(view, rotation=180)
