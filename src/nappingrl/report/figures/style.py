"""The look of all figures: sizes, colours, lines, names. A method has one colour everywhere, an agent one dash."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nappingrl.errors import BadSpecError, MissingExtraError
from nappingrl.report.best_control import Run
from nappingrl.trials.store import Manifest, make_folder

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from nappingrl.report.intervals import Band

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Okabe and Ito's palette: safe for colour-blind readers."""
FAILED = "#e00000"
DPI = 300
ONE_COLUMN, TWO_COLUMNS = 3.5, 7.0
"""Printed widths in inches."""
MOST_LINES = 8
"""More lines than this hide each other: then every agent has a panel of its own."""
PLAYERS = "players by rules"
"""Title of the panel of all agents without a network."""
SUFFIXES = (".png", ".pdf", ".svg")
TITLES = {"cartpole": "CartPole", "mountaincar": "MountainCar", "crossroad": "CrossRoad", "angrybirds": "Angry Birds"}

_METHODS = {
    "napping": ("#0072b2", "o"),
    "frozen": ("#d55e00", "s"),
    "online": ("#009e73", "^"),
    "finetune": ("#cc79a7", "v"),
    "oracle": ("#000000", "*"),
    "switch-on-failure": ("#e69f00", "D"),
    "napping-no-memory": ("#56b4e9", "p"),
    "random": ("#888888", "X"),
    "controller": ("#332288", "P"),
    "replay-success": ("#882255", "h"),
}
"""Method -> colour and marker; a marker also tells the method where print has no colour."""
_PLAYERS = {
    "naive": ("Naive", "#56b4e9", "<"),
    "naive-adaptation": ("Naive Adaptation", "#009e73", "^"),
    "datalab": ("DataLab", "#cc79a7", "v"),
    "replanner": ("replanner", "#e69f00", "D"),
    "hydra": ("HYDRA", "#8c510a", ">"),
}
"""Player -> name, colour and marker of its own: its method says nothing of it."""
_OTHER_METHOD = ("#666666", "d")
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (6, 2, 1, 2)), (0, (1, 1.3)), (0, (8, 2, 1, 2, 1, 2)), (0, (3, 1)))
_AGENT_DASHES = {"ppo": 0, "ppo-strong": 0, "dqn-rel": 0, "dqn": 1, "ppo-weak": 2}
_RC = {
    "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "xtick.labelsize": 8, "ytick.labelsize": 8,
    "legend.fontsize": 8, "axes.linewidth": 0.6, "xtick.major.width": 0.6, "ytick.major.width": 0.6,
    "xtick.major.size": 2.5, "ytick.major.size": 2.5, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "axes.axisbelow": True, "grid.color": "#dddddd", "grid.linewidth": 0.5,
    "lines.linewidth": 1.2, "lines.markersize": 3.5, "lines.markeredgewidth": 0.5, "legend.frameon": False,
    "legend.handlelength": 3.2, "legend.columnspacing": 1.5, "hatch.linewidth": 0.4, "hatch.color": "#555555",
    "pdf.fonttype": 42, "svg.fonttype": "none", "font.family": "sans-serif", "figure.dpi": 100,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Look:
    """How a run is drawn, and what it is called."""

    label: str
    colour: str
    marker: str
    dash: Any
    agent: str = ""
    """As it is shown, with what differs from other runs."""
    method: str = ""

    @property
    def line(self) -> dict[str, Any]:
        """Keywords for Axes.plot."""
        return {
            "color": self.colour, "linestyle": self.dash, "marker": self.marker, "label": self.label,
            "markerfacecolor": "white", "zorder": 2.4 if self.method == "napping" else 2.2,
        }  # fmt: skip


# --------------------------------------------------------------------------------------------------------- the canvas


@contextmanager
def style() -> Iterator[None]:
    """Figures that are made inside have the common look; nothing of it stays behind."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtraError('figures need matplotlib: pip install "nappingrl[report]"') from error
    with matplotlib.rc_context(_RC):  # type: ignore[arg-type]
        yield


def new_canvas(width: float, height: float) -> "Canvas":
    """An empty figure of this printed size in inches."""
    from matplotlib.figure import Figure as Canvas

    return Canvas(figsize=(width, height), layout="constrained")


def save(canvas: "Canvas", path: Path, dpi: int = DPI) -> Path:
    """Write a figure as its name's ending says: .png, .pdf or .svg."""
    if path.suffix.lower() not in SUFFIXES:
        raise BadSpecError(f"{path} does not end in one of {', '.join(SUFFIXES)}; a figure is written as its name ends")
    make_folder(path.parent)
    settle(canvas)
    with style():
        canvas.savefig(path, dpi=dpi)
    return path


def settle(canvas: "Canvas") -> None:
    """Lay it out once before it is drawn: the ticks of the final size may need more room than those of the first."""
    with style():
        canvas.draw_without_rendering()


def add_legend(canvas: "Canvas", panels: "Iterable[Axes]", most: int = 4, title: str | None = None) -> None:
    """One legend for all panels, below them and outside all data, in as many columns as fit its width."""
    handles, labels = legend_entries(panels)
    if not handles:
        return
    widths = [0.068 * max(len(line) for line in label.splitlines()) + 0.6 for label in labels]
    page = canvas.get_figwidth()
    fitting = len(labels) if sum(widths) <= page else max(int(page / max(widths)), 1)
    n_rows = -(-len(labels) // min(most, fitting))
    canvas.legend(handles, labels, loc="outside lower center", ncols=-(-len(labels) // n_rows), title=title)


def legend_entries(panels: "Iterable[Axes]") -> tuple[list[Any], list[str]]:
    """What the panels show, each name once."""
    entries: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    return list(entries.values()), list(entries)


# ----------------------------------------------------------------------------------------------------- lines and names


def looks(runs: list[Run]) -> list[Look]:
    """A look for each run: colour and marker of its method, dash of its agent; options are named where they differ.

    Players have a colour and marker of their own, and no method in their names.
    """
    manifests = [manifest for manifest, _ in runs]
    variants = [(agent_name(m), _differences(m, manifests)) for m in manifests]
    dashes = _give_dashes([variant for variant in variants if variant[0] not in _PLAYERS])
    found = []
    for manifest, (agent, differs) in zip(manifests, variants, strict=True):
        method = str(manifest.spec["method"])
        note = f" ({differs})" if differs else ""
        if agent in _PLAYERS:
            name, colour, marker = _PLAYERS[agent]
            found.append(Look(name + note, colour, marker, "-", name + note, method))
            continue
        colour, marker = _METHODS.get(method, _OTHER_METHOD)
        label = f"{_shown(agent)} {method}{note}"
        found.append(Look(label, colour, marker, dashes[agent, differs], _shown(agent) + note, method))
    return found


def by_agent(runs: list[Run]) -> dict[str, tuple[list[Run], list[Look]]]:
    """The runs of each agent, called and drawn by their methods alone: for panels of one agent; players share one."""
    found: dict[str, tuple[list[Run], list[Look]]] = {}
    for run, look in zip(runs, looks(runs), strict=True):
        is_one = is_player(run[0])
        of_agent = found.setdefault(PLAYERS if is_one else look.agent, ([], []))
        of_agent[0].append(run)
        of_agent[1].append(look if is_one else replace(look, label=look.method, dash="-"))
    return found


def is_player(manifest: Manifest) -> bool:
    """Whether the agent plays by rules and a memory of its own."""
    return agent_name(manifest) in _PLAYERS


def agent_name(manifest: Manifest) -> str:
    """The agent's name; of a file its stem, without the domain in front."""
    return Path(str(manifest.spec["agent"])).stem.removeprefix(f"{manifest.spec['domain']}-")


def _shown(agent: str) -> str:
    """ppo-strong -> PPO-Strong; other names as they are."""
    words = agent.split("-")
    if words[0] not in ("ppo", "dqn"):
        return agent
    return "-".join([words[0].upper(), *(word.capitalize() for word in words[1:])])


def _differences(manifest: Manifest, manifests: list[Manifest]) -> str:
    """What a legend must say besides agent and method: conditions that differ, and options of the same method."""
    same = [m for m in manifests if m.spec["method"] == manifest.spec["method"]]
    told = []
    for keys, others in (
        (("novelty", "seed", "strength", "detector", "protocol"), manifests),
        (("rule", "space", "score", "options"), same),
    ):
        for key in keys:
            mine = manifest.spec.get(key)
            if any(other.spec.get(key) != mine for other in others):
                told.append(_told(key, mine))
    return ", ".join(word for word in told if word)


def _told(key: str, value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={entry}" for name, entry in value.items())
    return f"{key} {value}" if key in ("seed", "strength", "protocol") else str(value)


def _give_dashes(variants: list[tuple[str, str]]) -> dict[tuple[str, str], Any]:
    """The dash an agent always has where it is free, else the next free one."""
    given: dict[tuple[str, str], int] = {}
    for variant in dict.fromkeys(variants):
        free = [i for i in range(len(_DASHES)) if i not in given.values()] or [len(given) % len(_DASHES)]
        wished = _AGENT_DASHES.get(variant[0], free[0])
        given[variant] = wished if wished in free else free[0]
    return {variant: _DASHES[i] for variant, i in given.items()}


def plot_interval(axes: "Axes", x: NDArray[Any], found: "Band", look: Look, markevery: Any = None) -> None:
    """A line with its interval as a band, broken where the novelty comes."""
    edge: dict[str, Any] = {"color": look.colour, "linestyle": look.dash, "linewidth": 0.4, "alpha": 0.5}
    for part in (x < 0, x >= 0):
        axes.fill_between(x[part], found.lower[part], found.upper[part], color=look.colour, alpha=0.13, linewidth=0)
        axes.plot(x[part], np.stack([found.lower[part], found.upper[part]], axis=1), **edge)
    at = int((x < 0).sum())
    if 0 < at < len(x):  # a gap in the line
        x, centre = np.insert(x.astype(np.float64), at, -0.5), np.insert(found.centre, at, np.nan)
        markevery = None if markevery is None else [i + (i >= at) for i in markevery]
    else:
        centre = found.centre
    axes.plot(x, centre, markevery=markevery, **look.line)


def mark_novelty(axes: "Axes", runs: list[Run], is_named: bool = True) -> None:
    """A line where the novelty comes, and one where methods are first told of it."""
    axes.axvline(-0.5, color="#444444", linewidth=0.9)
    told = [r.filter((pl.col("episode") >= 0) & pl.col("detected"))["episode"] for _, r in runs]
    first = min((int(series.to_numpy().min()) for series in told if len(series)), default=0)
    if first > 0:
        axes.axvline(first - 0.5, color="#444444", linewidth=0.7, linestyle=":")
    if is_named:
        above: Any = {"xycoords": axes.get_xaxis_transform(), "textcoords": "offset points", "annotation_clip": False}
        if first > 0:
            axes.annotate("first alarm", (first - 0.5, 1.0), (0, 2), ha="left", va="bottom", **above)
        axes.annotate("novelty ", (-0.5, 1.0), (0, 2), ha="right" if first > 0 else "center", va="bottom", **above)


def episodes_by_trial(rows: pl.DataFrame, column: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The episodes' numbers, and a column as (trials, episodes), trials in the order of the rows.

    NaN where a trial has no such episode.
    """
    places = {name: i for i, name in enumerate(rows["trial"].unique(maintain_order=True))}
    number = rows["episode"].to_numpy().astype(np.int64)
    episodes = np.arange(number.min(), number.max() + 1)
    table = np.full((len(places), len(episodes)), np.nan)
    table[rows["trial"].replace_strict(places).to_numpy(), number - number.min()] = rows[column].to_numpy()
    return episodes, table


def count_words(counts: list[int]) -> str:
    """Such as "100 trials" or "20-100 trials"."""
    least, most = min(counts), max(counts)
    return f"{most} trial{'s' * (most != 1)}" if least == most else f"{least}-{most} trials"
