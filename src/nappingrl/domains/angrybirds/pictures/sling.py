"""The slingshot: half of it is behind the bird, half in front."""

from nappingrl.domains.angrybirds.ground_truth import palette
from nappingrl.domains.angrybirds.physics.scene import Sling
from nappingrl.domains.angrybirds.pictures.pen import Pen, Stroke
from nappingrl.types import Point

_WOOD = palette.PAINTS["wood"].shades
_BAND = palette.PAINTS["platform"].shades
_TRUNK, _ARM, _STRAP = 0.24, 0.2, 0.07
_RIM = 0.06


def draw_behind(pen: Pen, sling: Sling, pouch: Point | None) -> None:
    """Draw the far arm and, with a bird, its band."""
    _, far = _tips(sling)
    path = _arm(sling, far, 0.02)
    pen.stamp([Stroke(path, "line", _ARM), Stroke(path, "dark", _ARM - _RIM)], _WOOD, 0.0, 0.0)
    if pouch is not None:
        pen.stamp([Stroke((far, pouch), "line", _STRAP)], _BAND, 0.0, 0.0)


def draw_before(pen: Pen, sling: Sling, pouch: Point | None) -> None:
    """Draw the trunk, the near arm and the band over the bird; without a bird it hangs between the arms."""
    near, far = _tips(sling)
    path = _arm(sling, near, -0.02)
    x, fork = path[0]
    trunk = ((x, sling.bottom + 0.05), (x, fork))
    shine = ((x - 0.04, sling.bottom + 0.15), (x - 0.04, fork))
    wood = [
        Stroke(trunk, "line", _TRUNK),
        Stroke(path, "line", _ARM),
        Stroke(trunk, "base", _TRUNK - _RIM),
        Stroke(path, "base", _ARM - _RIM),
        Stroke(shine, "light", 0.03),
    ]
    hanging = ((near[0] + far[0]) / 2, near[1] - 0.18)
    if pouch is None:
        pen.stamp([Stroke((near, hanging, far), "base", _STRAP)], _BAND, 0.0, 0.0)
    pen.stamp(wood, _WOOD, 0.0, 0.0)
    band = [Stroke(((near[0] - 0.05, near[1] - 0.03), (near[0] + 0.05, near[1] - 0.03)), "base", 0.09)]
    if pouch is not None:
        grip = ((pouch[0], pouch[1] + 0.07), (pouch[0], pouch[1] - 0.07))
        band += [Stroke((near, pouch), "base", _STRAP), Stroke(grip, "dark", 0.08)]
    pen.stamp(band, _BAND, 0.0, 0.0)


def _tips(sling: Sling) -> tuple[Point, Point]:
    """The ends of the fork, near and far."""
    wide = sling.right - sling.left
    return (sling.left + 0.16 * wide, sling.top - 0.1), (sling.right - 0.14 * wide, sling.top - 0.1)


def _arm(sling: Sling, tip: Point, bow: float) -> tuple[Point, Point, Point]:
    """From the fork over an elbow to a tip."""
    fork = (sling.left + sling.right) / 2 + 0.03, sling.top - 0.9
    return fork, (tip[0] + bow, fork[1] + 0.4), tip
