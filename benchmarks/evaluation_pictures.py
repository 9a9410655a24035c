"""The pictures of docs/results.md and docs/figures.md, drawn from the published rows of the paper's evaluation.

python benchmarks/evaluation_pictures.py docs/paper docs/images
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nappingrl.report.figures import FIGURES
from nappingrl.report.figures.style import save, style
from nappingrl.report.runs import Run, label_runs
from nappingrl.reproduction.published import read_evidence

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

COLUMNS = ("frozen", "napping", "napping-printed", "auto", "oracle")
DPI = 150
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


def of_all_birds(figure: str) -> Callable[[Sequence[Run]], "Canvas"]:
    """A figure of every agent of Angry Birds: networks with each method, and scripted ones."""

    def plot(runs: Sequence[Run]) -> "Canvas":
        shown = named(runs, "angrybirds", ("dqn", "dqn-rel", "dqn-raster"), ("frozen", "napping", "auto"))
        shown += named(runs, "angrybirds", ("hydra", "replanner", "naive", "naive-adaptation", "datalab"), ("frozen",))
        return FIGURES[figure].plot(label_runs(shown))

    return plot


def plot_birds_by_novelty(runs: Sequence[Run]) -> "Canvas":
    few = named(runs, "angrybirds", ("dqn", "dqn-rel"), ("frozen", "napping"))
    few += named(runs, "angrybirds", ("hydra", "naive-adaptation", "datalab"), ("frozen",))
    return FIGURES["by-novelty"].plot(label_runs(few))


def plot_map(runs: Sequence[Run]) -> "Canvas":
    return FIGURES["mountaincar-map"].plot(named(runs, "mountaincar", ("dqn", "ppo-weak"), ("frozen", "napping")))


def plot_road_novelties(runs: Sequence[Run]) -> "Canvas":
    shown = named(runs, "crossroad", ("sb3-dqn", "sb3-ppo"), ("frozen", "napping", "auto"))
    return FIGURES["by-novelty"].plot(shown, "mean")


def of_napping(figure: str, domain: str, agents: Sequence[str], statistic: str) -> Callable[[Sequence[Run]], "Canvas"]:
    """A figure of NAPPING alone, with our rule and score."""
    return lambda runs: FIGURES[figure].plot(named(runs, domain, agents, ("napping",)), statistic)


PICTURES = {
    "paper-cartpole": plot_cartpole,
    "paper-cartpole-by-value": of_napping("by-value", "cartpole", ("zoo-ppo", "zoo-dqn"), "median"),
    "paper-mountaincar": plot_mountaincar,
    "paper-mountaincar-by-value": of_napping("by-value", "mountaincar", ("dqn", "ppo-strong", "ppo-weak"), "mean"),
    "paper-mountaincar-map": plot_map,
    "paper-crossroad": plot_crossroad,
    "paper-crossroad-by-agent": of_napping("by-agent", "crossroad", ("sb3-dqn", "sb3-ppo"), "mean"),
    "paper-crossroad-by-novelty": plot_road_novelties,
    "paper-angrybirds": of_all_birds("angrybirds-agents"),
    "paper-angrybirds-by-novelty": plot_birds_by_novelty,
    "paper-angrybirds-asymptotic": of_all_birds("angrybirds-asymptotic"),
}
"""For each picture what draws it from all published runs."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path, help="folder of the published rows")
    parser.add_argument("folder", type=Path, help="folder for the pictures")
    parser.add_argument("--only", choices=PICTURES, nargs="+", default=list(PICTURES))
    args = parser.parse_args()
    runs = read_evidence([args.rows])
    for name in args.only:
        with style():
            print(save(PICTURES[name](runs), args.folder / f"{name}.png", DPI))


if __name__ == "__main__":
    main()
