"""Figure of the regions of one trial: its sites projected on two principal components."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nappingrl.errors import BadRunError, import_extra
from nappingrl.report.figures.style import TWO_COLUMNS, new_canvas, save, style
from nappingrl.report.runs import Run
from nappingrl.trials.manifest_record import Manifest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from nappingrl.trials.runner import Replayed

ACTION_COLOURS = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#0072b2", "#d55e00")
OPEN = "#f4f4f4"
HATCH = "/////"
TAIL, MANY = 0.01, 200
"""Share of the sites at each end of an axis that may be out of view, from this many sites on."""
_GRID = 700
Points = NDArray[np.float64]


def draw_trial_map(run: Run, path: Path, trial: str = "") -> "Replayed":
    """Run a trial again and draw its regions; default: the first trial with two regions or more."""
    again = run.replay(trial or first_with_regions(run.rows))
    draw_replayed_map(run.manifest, again, path)
    return again


def draw_replayed_map(manifest: Manifest, again: "Replayed", path: Path) -> Path:
    """The regions of a replayed trial."""
    return draw_map(manifest, again.table, path, f"{again.rows['novelty'][0]} {again.rows['number'][0]}")


def first_with_regions(rows: pl.DataFrame) -> str:
    """The id of the first trial with two regions or more, else with one; a single region is a map of one colour."""
    return str(rows["trial"][int(rows["regions"].clip(0, 2).to_numpy().argmax())])


def draw_map(manifest: Manifest, table: Mapping[str, NDArray[Any]], path: Path, trial: str = "") -> Path:
    """The regions of one trial from its table of principles: `Replayed.table`, or what `napping replay` stores."""
    with style():
        canvas = plot_embedding(manifest, table, trial)
    return save(canvas, path)


def plot_embedding(manifest: Manifest, table: Mapping[str, NDArray[Any]], trial: str = "") -> "Canvas":
    """Left: what the agent wants at the sites. Right: what its principles do instead."""
    if not len(table.get("site", ())):
        raise BadRunError(
            f"trial {trial or '?'} of {manifest.label} has no principles: "
            "embedding-map needs a trial with principles in which the novelty was detected"
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
    """With more actions than colours: the most frequent ones by name, all others as one."""
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
    """The number of regions of each state, and what a cell is."""
    candidates = np.asarray(table["candidates"], np.bool_)
    is_open = candidates.sum(axis=1) > 1
    changed = int((~is_open & (candidates.argmax(axis=1) != table["wanted"])).sum())
    x, y = view
    outside = int(((flat[:, 0] < x[0]) | (flat[:, 0] > x[-1]) | (flat[:, 1] < y[0]) | (flat[:, 1] > y[-1])).sum())
    n_dimensions = table["site"].shape[1]
    counts = (
        f"{f'Trial {trial}: ' if trial else ''}{len(flat)} region{'s' * (len(flat) != 1)}, {int(is_open.sum())} open, "
        f"{changed} closed on another action than the agent's"
    )
    cells = "A cell belongs to the nearest site"
    if n_dimensions > 2:
        cells += f" in this projection, not in all {n_dimensions} dimensions"
    options = manifest.spec.get("options", {})
    if options.get("rule") == "text" or options.get("search") == "same-key":
        cells += "; this run sought it among the sites with the agent's action"
    return counts + (f"; out of view: {outside}" if outside else "") + "\n" + cells


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
    """A grid over the points and the index of the nearest point at each place; without the tails of many points."""
    tail = TAIL if len(flat) >= MANY else 0.0
    low, high = np.quantile(flat, [tail, 1 - tail], axis=0)
    span = high - low
    margin = np.where(span > 0, 0.08 * span, 0.5 * (span.max() or 1.0))  # points on a line, or a single one
    x, y = (np.linspace(low[i] - margin[i], high[i] + margin[i], _GRID) for i in range(2))
    places = np.stack(np.meshgrid(x, y), axis=-1)
    return x, y, np.asarray(nearest_tree(flat).query(places)[1], np.int64)


def nearest_tree(points: Points) -> Any:
    """Scipy's tree that finds the nearest of these points."""
    return import_extra("scipy.spatial", "a map of regions", "report").cKDTree(points)


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
