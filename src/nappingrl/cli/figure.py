"""`napping figure`."""

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from nappingrl.cli.console import print_note, warn_incomplete
from nappingrl.errors import BadSpecError, check_name
from nappingrl.report import figures
from nappingrl.report.runs import read_run
from nappingrl.reproduction.published import read_named


@dataclass(frozen=True)
class Figure:
    """Draw a figure from run folders.

    Example: napping figure overall runs/a runs/b --out overall.png
    Example: napping figure mountaincar-map docs/paper/mountaincar.parquet/mountaincar-dqn-frozen
    """

    name: Positional[str]
    """Name of the figure.
    Runs of any one domain: overall, profiles, by-parameter, by-value, by-novelty, by-agent, regions-over-time,
    detection-delay.
    Runs of MountainCar: mountaincar-map. Runs of Angry Birds: angrybirds-agents, angrybirds-asymptotic.
    One run and --trial: embedding-map.
    No runs: domains, architecture, method."""
    runs: Positional[tuple[Path, ...]] = ()
    """Folders of runs; or a published file (paper/rows/*.parquet), or FILE/RUN for one of its runs."""
    out: Path | None = None
    """File to write: .png, .pdf or .svg. Default: the figure's name with .png."""
    statistic: str = ""
    """Curve to draw: median or mean over trials. Default: median, or mean if returns are passes and failures."""
    trial: str = ""
    """Number or id of the trial for embedding-map. Default: the first one with at least two regions."""
    env: tuple[str, ...] = ()
    """Environments module:id that may be imported to repeat a trial; what a run's files say is not enough."""
    partial: bool = False
    """Accept unfinished runs and use their finished parts."""

    def __call__(self) -> None:
        """Draw it."""
        figure = figures.FIGURES[check_name("figure", self.name, figures.FIGURES)]
        path = self.out or Path(f"{self.name}.png")
        if figure.needs == figures.PICTURES:
            if self.runs:
                raise BadSpecError(f"figure {self.name} is made without runs; {len(self.runs)} given")
            figures.draw_domains(path)
        elif figure.needs == figures.PRINCIPLES:
            self._draw_map(path)
        else:
            runs = read_named(self.runs, self.partial)
            figures.draw_figure(self.name, runs, path, self.statistic)
            warn_incomplete(runs)
        print(f"{figure.title}: {path}")

    def _draw_map(self, path: Path) -> None:
        """Repeat the trial and draw its principles."""
        if len(self.runs) != 1:
            raise BadSpecError(f"figure {self.name} needs one run and --trial; {len(self.runs)} runs given")
        run = read_run(self.runs[0], self.partial, self.env)
        warn_incomplete([run])
        again = figures.draw_trial_map(run, path, self.trial)
        if not again.is_same:
            print_note(f"trial {again.id} gave other rows than {run.path} has stored")
