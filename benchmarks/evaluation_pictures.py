"""The pictures of docs/results.md, drawn from the published rows of the paper's evaluation.

python benchmarks/evaluation_pictures.py docs/paper docs/images
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nappingrl.report.figures import FIGURES
from nappingrl.report.figures.style import save, style
from nappingrl.report.runs import Run, label_runs
from nappingrl.reproduction.published import read_evidence

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

COLUMNS = ("frozen", "napping", "napping-printed", "auto", "oracle")
LEVELS = (-262, -15)
"""What MountainCar's picture shows: more would make lines one that are 30 apart."""


def named(runs: Sequence[Run], domain: str, agents: Sequence[str], methods: Sequence[str]) -> list[Run]:
    """These agents with these methods; some agents lack some."""
    by_name = {run.name: run for run in runs}
    names = [f"{domain}-{agent}-{method}" for agent in agents for method in methods]
    return label_runs([by_name[name] for name in names if name in by_name])


def plot_cartpole(runs: Sequence[Run]) -> "Canvas":
    return FIGURES["overall"].plot(named(runs, "cartpole", ("zoo-ppo", "zoo-dqn"), COLUMNS), "median")


def plot_mountaincar(runs: Sequence[Run]) -> "Canvas":
    shown = named(runs, "mountaincar", ("dqn", "ppo-strong", "ppo-weak"), COLUMNS)
    canvas = FIGURES["overall"].plot(shown, "mean")
    for axes, agent in zip(canvas.axes, ("dqn", "ppo-strong", "ppo-weak"), strict=True):
        frozen, printed = (
            named(shown, "mountaincar", [agent], [method])[0] for method in ("frozen", "napping-printed")
        )
        words = f"NAPPING as printed\nends at {printed.summary().last10_mean:.0f}"
        before = frozen.summary().pre_mean
        if before is not None and before < LEVELS[0]:
            words += f"\n{before:.0f} before the novelty"
        axes.set_ylim(*LEVELS)
        axes.annotate(words.replace("-", "\N{MINUS SIGN}"), (0.97, 0.4), xycoords="axes fraction", ha="right",
                      fontsize=6.5)  # fmt: skip
    return canvas


def plot_crossroad(runs: Sequence[Run]) -> "Canvas":
    return FIGURES["overall"].plot(named(runs, "crossroad", ("sb3-dqn", "sb3-ppo"), COLUMNS), "mean")


def plot_angrybirds(runs: Sequence[Run]) -> "Canvas":
    networks = named(runs, "angrybirds", ("dqn", "dqn-rel", "dqn-raster"), ("frozen", "napping", "auto"))
    scripted = named(runs, "angrybirds", ("hydra", "replanner", "naive", "naive-adaptation", "datalab"), ("frozen",))
    return FIGURES["angrybirds-agents"].plot(label_runs([*networks, *scripted]))


PICTURES = {
    "paper-cartpole": plot_cartpole,
    "paper-mountaincar": plot_mountaincar,
    "paper-crossroad": plot_crossroad,
    "paper-angrybirds": plot_angrybirds,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path, help="folder of the published rows")
    parser.add_argument("folder", type=Path, help="folder for the pictures")
    parser.add_argument("--only", choices=PICTURES, nargs="+", default=list(PICTURES))
    args = parser.parse_args()
    runs = read_evidence([args.rows])
    for name in args.only:
        with style():
            print(save(PICTURES[name](runs), args.folder / f"{name}.png"))


if __name__ == "__main__":
    main()
