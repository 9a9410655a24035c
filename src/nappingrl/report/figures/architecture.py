"""Figure of the parts of the method: what flows between environment, frozen agent and principles."""

from typing import TYPE_CHECKING

from nappingrl.report.figures.style import TWO_COLUMNS, new_canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

FROZEN, LEARNED, GIVEN = "#dbe9f6", "#d9f0e3", "#f2f2f2"
_BOXES = {
    "environment": (0.2, 1.6, 2.1, 1.2, "environment\n(changes at episode 0)", GIVEN),
    "network": (3.4, 1.6, 2.2, 1.2, "trained network\n(frozen)", FROZEN),
    "select": (6.9, 1.6, 2.4, 1.2, "principle of the\nnearest region", LEARNED),
    "detector": (3.4, 3.5, 2.2, 0.8, "novelty detector", GIVEN),
    "update": (6.9, 3.5, 2.4, 0.8, "update of the region", LEARNED),
    "eval": (3.4, 0.1, 2.2, 0.8, "Eval(s, a, s')", GIVEN),
}
"""Left, bottom, width, height, text, colour."""


def plot_architecture() -> "Canvas":
    """Boxes and arrows; colours say what is frozen, learned or given."""
    canvas = new_canvas(TWO_COLUMNS, 3.4)
    axes = canvas.add_subplot()
    axes.set(xlim=(0, 9.9), ylim=(-0.3, 4.7), xticks=[], yticks=[])
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    for left, bottom, width, height, text, colour in _BOXES.values():
        _box(axes, (left, bottom, width, height), text, colour)
    _arrow(axes, [(2.3, 2.2), (3.4, 2.2)], "observation", (2.85, 2.3))
    _arrow(axes, [(5.6, 2.5), (6.9, 2.5)], "model state", (6.25, 2.6))
    _arrow(axes, [(5.6, 1.9), (6.9, 1.9)], "wanted action", (6.25, 1.58))
    _arrow(axes, [(9.3, 2.2), (9.7, 2.2), (9.7, -0.15), (1.2, -0.15), (1.2, 1.6)], "action", (8.0, -0.08))
    _arrow(axes, [(2.3, 1.8), (2.8, 1.8), (2.8, 0.5), (3.4, 0.5)], "", (0, 0))
    _arrow(axes, [(5.6, 0.5), (9.5, 0.5), (9.5, 3.9), (9.3, 3.9)], "score", (7.9, 0.58))
    _arrow(axes, [(8.1, 3.5), (8.1, 2.8)], "", (0, 0))
    _arrow(axes, [(1.2, 2.8), (1.2, 3.9), (3.4, 3.9)], "returns or steps", (2.3, 4.0))
    _arrow(axes, [(5.6, 3.9), (6.9, 3.9)], "switches on", (6.25, 4.0))
    _legend(canvas)
    return canvas


def _box(axes: "Axes", place: tuple[float, float, float, float], text: str, colour: str) -> None:
    from matplotlib.patches import FancyBboxPatch

    left, bottom, width, height = place
    axes.add_patch(
        FancyBboxPatch((left, bottom), width, height, boxstyle="round,pad=0,rounding_size=0.12", facecolor=colour,
                       edgecolor="#333333", linewidth=0.8)
    )  # fmt: skip
    axes.text(left + width / 2, bottom + height / 2, text, ha="center", va="center")


def _arrow(axes: "Axes", corners: list[tuple[float, float]], text: str, at: tuple[float, float]) -> None:
    """A line over these corners with a head at its end, and its text."""
    axes.plot([x for x, _ in corners[:-1]], [y for _, y in corners[:-1]], color="#333333", linewidth=0.9)
    axes.annotate("", corners[-1], corners[-2], arrowprops={"arrowstyle": "-|>", "color": "#333333", "linewidth": 0.9,
                                                           "shrinkA": 0, "shrinkB": 0})  # fmt: skip
    if text:
        axes.text(*at, text, ha="center", va="bottom")


def _legend(canvas: "Canvas") -> None:
    from matplotlib.patches import Patch

    names = {FROZEN: "trained before, never changed", LEARNED: "learned after the novelty", GIVEN: "given"}
    handles = [Patch(facecolor=colour, edgecolor="#333333", label=name) for colour, name in names.items()]
    canvas.legend(handles=handles, loc="outside lower center", ncols=3, handlelength=1.6)
