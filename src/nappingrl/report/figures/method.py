"""Figures of the method itself: its worked example, the regions of a trial, the worlds it is tried in."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from nappingrl.errors import BadRunError, BadSpecError
from nappingrl.report.figures.style import TITLES, TWO_COLUMNS, new_canvas, save, style
from nappingrl.trials.store import Manifest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

ACTION_COLOURS = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#0072b2", "#d55e00")
OPEN = "#f4f4f4"
CLOSED_ON_3 = "#8fd0bd"
HATCH = "/////"
TAIL, MANY = 0.01, 200
"""Share of the sites at each end of an axis that may be out of view, where there are many."""
_GRID, _FINE_GRID = 420, 700
Points = NDArray[np.float64]

# ------------------------------------------------------------------------------------------------------ worked example

_FIRST, _VISIT, _SPLIT = (3.0, 5.6), (4.3, 4.1), (2.6, 2.1)
"""Model states at t, t + 1 and t + 2; their places are ours."""
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
    owner = cKDTree(sites).query(np.stack([x, y], axis=-1))[1]
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


# -------------------------------------------------------------------------------------------------------- embedding map


def draw_map(manifest: Manifest, table: Mapping[str, NDArray[Any]], path: Path, trial: str = "") -> Path:
    """The regions of one trial from its principles: what `napping replay` writes, or `Principles.table`."""
    with style():
        canvas = plot_embedding(manifest, table, trial)
    return save(canvas, path)


def plot_embedding(manifest: Manifest, table: Mapping[str, NDArray[Any]], trial: str = "") -> "Canvas":
    """Left what the agent wanted at the sites, right what its principles do instead."""
    if not len(table.get("site", ())):
        raise BadRunError(
            f"trial {trial or '?'} of {manifest.label} has no principles: "
            "embedding-map needs a trial of napping in which the novelty was detected"
        )
    candidates = np.asarray(table["candidates"], np.bool_)
    wanted = np.asarray(table["wanted"], np.int64)
    flat, shares = project(np.asarray(table["site"], np.float64))
    is_open = candidates.sum(axis=1) > 1
    now = np.where(is_open, -1, candidates.argmax(axis=1))
    names: Sequence[str] = manifest.action_names or [f"action {i}" for i in range(candidates.shape[1])]
    wanted, now, names = _few_actions(wanted, now, names)
    canvas = new_canvas(TWO_COLUMNS, 3.75)
    left, right = canvas.subplots(1, 2, sharex=True, sharey=True)
    x, y, owner = nearest_raster(flat)
    for axes, actions in ((left, wanted), (right, now)):
        _fill_cells(axes, x, y, owner, actions, len(names))
        size = float(np.clip(40 / np.sqrt(len(flat)), 1.2, 6))
        axes.plot(flat[:, 0], flat[:, 1], ".", color="black", markersize=size, markeredgewidth=0, label="sites")
        axes.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))
        axes.set_xlabel(f"first principal component ({100 * shares[0]:.0f} % of variance)")
        axes.locator_params(axis="x", nbins=6)
    left.set_ylabel(f"second principal component ({100 * shares[1]:.0f} %)")
    left.set_title("what the agent wants")
    right.set_title("what its principle does")
    caption = _map_caption(manifest, table, trial, flat, (x, y))
    canvas.supxlabel("\n".join(fill(line, 110) for line in caption.splitlines()), fontsize=8)
    _action_legend(canvas, names)
    return canvas


def _few_actions(
    wanted: NDArray[np.int64], now: NDArray[np.int64], names: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.int64], Sequence[str]]:
    """Where there are more actions than colours: those that occur, the most frequent by name, all others as one."""
    if len(names) <= len(ACTION_COLOURS):
        return wanted, now, names
    counts = np.bincount(np.concatenate([wanted, now[now >= 0]]), minlength=len(names))
    used = np.flatnonzero(counts)
    kept = used[np.argsort(-counts[used], kind="stable")]
    has_others = len(kept) > len(ACTION_COLOURS)
    kept = kept[: len(ACTION_COLOURS) - has_others]
    places = np.full(len(names) + 1, len(kept))
    places[kept], places[-1] = np.arange(len(kept)), -1  # open stays open
    return places[wanted], places[now], [names[i] for i in kept] + ["another action"] * has_others


def _map_caption(
    manifest: Manifest, table: Mapping[str, NDArray[Any]], trial: str, flat: Points, view: tuple[Points, Points]
) -> str:
    """What was counted, and what a cell is."""
    candidates = np.asarray(table["candidates"], np.bool_)
    is_open = candidates.sum(axis=1) > 1
    changed = int((~is_open & (candidates.argmax(axis=1) != table["wanted"])).sum())
    x, y = view
    outside = int(((flat[:, 0] < x[0]) | (flat[:, 0] > x[-1]) | (flat[:, 1] < y[0]) | (flat[:, 1] > y[-1])).sum())
    n_dimensions = table["site"].shape[1]
    counted = (
        f"{f'Trial {trial}: ' if trial else ''}{len(flat)} region{'s' * (len(flat) != 1)}, {int(is_open.sum())} open, "
        f"{changed} closed on another action than the agent's"
    )
    cells = "A cell belongs to the nearest site"
    if n_dimensions > 2:
        cells += f" in this projection, not in all {n_dimensions} dimensions"
    if manifest.spec.get("rule") == "text" or manifest.spec.get("options", {}).get("search") == "same-key":
        cells += "; this run sought it among the sites with the agent's action"
    return counted + (f"; out of view: {outside}" if outside else "") + "\n" + cells


def project(sites: Points) -> tuple[Points, Points]:
    """The sites on their first two principal components, and the share of the variance on each."""
    centred = sites - sites.mean(axis=0)
    _, values, directions = np.linalg.svd(centred, full_matrices=False)
    flat, shares = np.zeros((len(sites), 2)), np.zeros(2)
    n = min(2, len(values))
    flat[:, :n] = centred @ directions[:n].T
    total = float((values**2).sum())
    if total > 0:
        shares[:n] = values[:n] ** 2 / total
    return flat, shares


def nearest_raster(flat: Points) -> tuple[Points, Points, NDArray[np.int64]]:
    """A grid over the points, and at each of its places the number of the nearest; of many points without the tails."""
    tail = TAIL if len(flat) >= MANY else 0.0
    low, high = np.quantile(flat, [tail, 1 - tail], axis=0)
    span = high - low
    margin = np.where(span > 0, 0.08 * span, 0.5 * (span.max() or 1.0))  # points on a line, or a single one
    x, y = (np.linspace(low[i] - margin[i], high[i] + margin[i], _FINE_GRID) for i in range(2))
    places = np.stack(np.meshgrid(x, y), axis=-1)
    return x, y, np.asarray(cKDTree(flat).query(places)[1], np.int64)


def _fill_cells(axes: "Axes", x: Points, y: Points, owner: NDArray[np.int64], actions: Any, n: int) -> None:
    """Each cell in the colour of its action, with a pale edge; -1 (open) pale and hatched."""
    from matplotlib.colors import to_rgb

    palette = np.array([to_rgb(_action_colour(a)) for a in range(n)] + [to_rgb(OPEN)])
    here = actions[owner]
    colours = palette[here]
    is_edge = np.zeros(owner.shape, np.bool_)
    is_edge[1:] |= owner[1:] != owner[:-1]
    is_edge[:, 1:] |= owner[:, 1:] != owner[:, :-1]
    colours[is_edge] += 0.4 * (1 - colours[is_edge])
    extent = (x[0], x[-1], y[0], y[-1])
    axes.imshow(colours, origin="lower", extent=extent, aspect="auto", interpolation="nearest")
    if (here < 0).any():
        axes.contourf(x, y, (here < 0).astype(float), levels=[0.5, 1.5], colors="none", hatches=[HATCH])
    axes.grid(visible=False)


def _action_colour(action: int) -> str:
    return ACTION_COLOURS[action % len(ACTION_COLOURS)]


def _action_legend(canvas: "Canvas", names: Sequence[str]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [Patch(facecolor=_action_colour(i), label=name) for i, name in enumerate(names)]
    handles.append(Patch(facecolor=OPEN, edgecolor="#555555", hatch=HATCH, label="open"))
    handles.append(Line2D([], [], linestyle="", marker=".", color="black", label="site"))
    width = 0.07 * max(len(str(handle.get_label())) for handle in handles) + 0.6
    n_columns = max(min(len(handles), int(canvas.get_figwidth() / width)), 1)
    canvas.legend(handles=handles, loc="outside upper center", ncols=n_columns, handlelength=1.6)


# --------------------------------------------------------------------------------------------------------------- worlds


def draw_strip(pictures: Mapping[str, NDArray[np.uint8]], path: Path) -> Path:
    """The worlds' pictures side by side; name -> picture (height, width, 3)."""
    with style():
        canvas = plot_strip(pictures)
    return save(canvas, path)


def plot_strip(pictures: Mapping[str, NDArray[np.uint8]]) -> "Canvas":
    """One panel per world."""
    if not pictures:
        raise BadSpecError("figure domains needs at least one picture; give name -> array (height, width, 3)")
    tallest = max(picture.shape[0] / picture.shape[1] for picture in pictures.values())
    canvas = new_canvas(TWO_COLUMNS, 0.3 + tallest * TWO_COLUMNS / len(pictures))
    panels = canvas.subplots(1, len(pictures), squeeze=False).ravel()
    for letter, axes, (name, picture) in zip("abcdefgh", panels, pictures.items(), strict=False):
        axes.imshow(picture)
        axes.set(xticks=[], yticks=[], anchor="N")
        axes.grid(visible=False)
        for spine in axes.spines.values():
            spine.set_visible(True)
        axes.set_title(f"{letter}) {TITLES.get(name, name)}")
    return canvas
