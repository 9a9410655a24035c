"""`napping figure`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import polars as pl
from tyro.conf import Positional

from nappingrl.cli.console import print_note, warn_incomplete
from nappingrl.domains import find_domain
from nappingrl.errors import BadSpecError, check_name
from nappingrl.registry import domains
from nappingrl.report import figures
from nappingrl.report.figures import draw_map
from nappingrl.report.runs import load_run, load_runs
from nappingrl.trials.runner import replay
from nappingrl.trials.store import RunFolder

_STEPS = {"cartpole": 25, "mountaincar": 60, "crossroad": 6}
"""How far a world is played for its picture."""


@dataclass(frozen=True)
class Figure:
    """Draw a figure from run folders.

    Example: napping figure cartpole-overall runs/a runs/b --out overall.png
    """

    name: Positional[str]
    """Name of the figure.
    CartPole: cartpole-overall, cartpole-by-parameter.
    MountainCar: mountaincar-overall, mountaincar-by-value, mountaincar-map.
    CrossRoad: crossroad-overall, crossroad-by-novelty.
    Angry Birds: angrybirds-overall, angrybirds-by-novelty, angrybirds-agents, angrybirds-asymptotic.
    Any one domain: regions-over-time, detection-delay.
    One run and --trial: embedding-map.
    No runs: domains, method."""
    runs: Positional[tuple[Path, ...]] = ()
    """Folders of runs."""
    out: Path | None = None
    """File to write: .png, .pdf or .svg. Default: the figure's name with .png."""
    trial: str = ""
    """Number or id of the trial for embedding-map. Default: the first one with at least two regions."""
    partial: bool = False
    """Accept unfinished runs and use their finished parts."""

    def __call__(self) -> None:
        """Draw it."""
        figure = figures.FIGURES[check_name("figure", self.name, figures.FIGURES)]
        path = self.out or Path(f"{self.name}.png")
        if figure.needs == figures.PICTURES:
            _refuse_runs(self.name, self.runs)
            figures.draw_strip(take_pictures(), path)
        elif figure.needs == figures.PRINCIPLES:
            self._draw_map(path)
        else:
            runs = load_runs(list(self.runs), self.partial)
            figure.draw([run.run for run in runs], path)
            warn_incomplete(runs)
        print(f"{figure.title}: {path}")

    def _draw_map(self, path: Path) -> None:
        """Repeat the trial and draw its principles."""
        if len(self.runs) != 1:
            raise BadSpecError(f"figure {self.name} needs one run and --trial; {len(self.runs)} runs given")
        folder = RunFolder.open(self.runs[0])
        run = load_run(folder, self.partial)
        warn_incomplete([run])
        again = replay(folder, self.trial or _first_with_regions(run.rows))
        if not again.is_same:
            print_note(f"trial {again.id} gave other rows than {folder.path} has stored")
        novelty, number = again.rows["novelty"][0], again.rows["number"][0]
        draw_map(folder.manifest, again.table, path, f"{novelty} {number}")


def _first_with_regions(rows: pl.DataFrame) -> str:
    """The id of the first trial with the most regions up to two; one region alone is a map of one colour."""
    return str(rows["trial"][int(rows["regions"].clip(0, 2).to_numpy().argmax())])


def _refuse_runs(name: str, runs: tuple[Path, ...]) -> None:

    if runs:
        raise BadSpecError(f"figure {name} is made without runs; {len(runs)} given")


def take_pictures() -> dict[str, Any]:
    """A picture of every world a few steps into an episode, each by its own environment."""
    pictures: dict[str, Any] = {}
    for name in domains.names():
        env = gymnasium.make(find_domain(name).env_id, render_mode="rgb_array")
        env.action_space.seed(0)
        env.reset(seed=0)
        for _ in range(_STEPS.get(name, 10)):
            _, _, terminated, truncated, _ = env.step(env.action_space.sample())
            if terminated or truncated:
                env.reset()
        pictures[name] = env.render()
        env.close()
    return pictures
