"""Figure of the method's worked example."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nappingrl.report.figures.embedding_map import HATCH, OPEN, Points, nearest_tree
from nappingrl.report.figures.style import TWO_COLUMNS, new_canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

CLOSED_ON_3 = "#8fd0bd"
_GRID = 420
_FIRST, _VISIT, _SPLIT = (3.0, 5.6), (4.3, 4.1), (2.6, 2.1)
"""Model states at t, t + 1 and t + 2; their places are illustrative."""
_WIDTH, _HEIGHT = 10.0, 8.0


def plot_method() -> "Canvas":
    """The paper's example: three actions, three steps."""
    canvas = new_canvas(TWO_COLUMNS, 2.9)
    panels = canvas.subplots(1, 3)
    words = (
        "step t: the agent wants 1 and does 1,\nwhich fails. Principle A opens over all\nthe space where 1 is wanted.",
        "step t + 1: in region A a candidate is\ndrawn: 3. Its score is the best there is:\nA is closed, 1 becomes 3.",
        "step t + 2: in region A action 3 fails.\nThe region is split half-way between\nthe points; B opens, A stays.",
    )
    for i, (axes, text) in enumerate(zip(panels, words, strict=True)):
        _begin_example(axes)
        sites = np.array([_FIRST, _SPLIT][: 2 if i == 2 else 1])
        _fill_example(axes, sites, [None] if i == 0 else [2] if i == 1 else [2, None])
        axes.set_title("abc"[i] + ")", loc="left", fontweight="bold")
        axes.set_xlabel(text, loc="left")
        _put_point(axes, _FIRST, "$ms_t$", is_site=True)
    _put_text(panels[0], (3.2, 3.6), "A: open\n1 → 2 or 3")
    _put_point(panels[1], _VISIT, "$ms_{t+1}$", is_site=False)
    _put_text(panels[1], (3.2, 2.4), "A: closed\n1 → 3")
    _put_point(panels[2], _SPLIT, "$ms_{t+2}$", is_site=True)
    _put_text(panels[2], (4.9, 6.9), "A: closed\n1 → 3")
    _put_text(panels[2], (4.4, 0.95), "B: open\n1 → 2 or 3")
    _example_legend(canvas)
    return canvas


def _edge(y: Points) -> Points:
    """Where the agent stops wanting action 1."""
    return np.asarray(6.9 + 0.5 * np.sin(0.9 * y) - 0.05 * y)


def _begin_example(axes: "Axes") -> None:
    axes.set(xlim=(0, _WIDTH), ylim=(0, _HEIGHT), xticks=[], yticks=[], aspect="equal")
    for spine in axes.spines.values():
        spine.set_visible(True)
    y = np.linspace(0, _HEIGHT, 200)
    axes.fill_betweenx(y, _edge(y), _WIDTH, color="#e6e6e6", linewidth=0)
    axes.plot([_edge(np.array(4.2)).item() + 0.15, _WIDTH], [4.2, 4.4], color="white", linewidth=2)
    axes.text(8.55, 6.2, "wants 2", ha="center", va="center", color="#444444")
    axes.text(8.55, 2.1, "wants 3", ha="center", va="center", color="#444444")


def _fill_example(axes: "Axes", sites: Points, actions: Sequence[int | None]) -> None:
    """Voronoi cells of the sites, cut at the edge of the space where action 1 is wanted; None: open."""
    x, y = np.meshgrid(np.linspace(0, _WIDTH, _GRID), np.linspace(0, _HEIGHT, _GRID))
    owner = nearest_tree(sites).query(np.stack([x, y], axis=-1))[1]
    for i, action in enumerate(actions):
        inside = np.where((owner == i) & (x < _edge(y)), 1.0, 0.0)
        colour = OPEN if action is None else CLOSED_ON_3
        axes.contourf(x, y, inside, levels=[0.5, 1.5], colors=[colour], hatches=[HATCH if action is None else ""])
    edge = np.linspace(0, _HEIGHT, 200)
    axes.plot(_edge(edge), edge, color="black", linewidth=1)
    if len(sites) == 2:
        middle, across = sites.mean(axis=0), (sites[1] - sites[0]) @ np.array([[0, 1], [-1, 0]])
        line = middle + np.linspace(-20, 20, 4000)[:, None] / 10 * across
        line = line[(line[:, 0] > 0) & (line[:, 0] < _edge(line[:, 1]))]
        axes.plot(line[:, 0], line[:, 1], color="black", linewidth=1)


def _put_point(axes: "Axes", at: tuple[float, float], text: str, is_site: bool) -> None:
    axes.plot(*at, "o", color="black" if is_site else "white", markersize=5, markeredgecolor="black",
              markeredgewidth=0.9, zorder=5)  # fmt: skip
    _put_text(axes, (at[0] - 0.3, at[1] + 0.1), text, ha="right")


def _put_text(axes: "Axes", at: tuple[float, float], text: str, ha: str = "center") -> None:
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.85}
    axes.text(*at, text, ha=ha, va="center", bbox=box, zorder=4)


def _example_legend(canvas: "Canvas") -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        Patch(facecolor=OPEN, edgecolor="#555555", hatch=HATCH, label="open: candidates are tried"),
        Patch(facecolor=CLOSED_ON_3, label="closed on action 3"),
        Line2D([], [], linestyle="", marker="o", color="black", label="stored point"),
        Line2D([], [], linestyle="", marker="o", color="white", markeredgecolor="black", label="visit"),
    ]
    canvas.legend(handles=handles, loc="outside lower center", ncols=4, handlelength=1.6)
