"""Looking at runs: reports."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from tyro.conf import Positional

from nappingrl.commands.console import print_table
from nappingrl.commands.figure import open_runs


@dataclass(frozen=True)
class Report:
    """Compare runs: a table, a PNG with their curves, and a page to open.

    Example: napping report runs/cartpole-ppo-frozen-1 runs/cartpole-ppo-napping-1 --out report
    """

    runs: Positional[tuple[Path, ...]]
    """Folders of runs."""
    out: Path | None = None
    """Folder for the picture and the page. Default: the first run's folder."""
    statistic: str = "median"
    """median or mean over trials."""
    json: bool = False
    """Print one JSON object on the last line of standard output."""

    def __call__(self) -> None:
        """Write the picture and the page, print the table."""
        from nappingrl.errors import BadSpecError
        from nappingrl.registry import check_name
        from nappingrl.report import figures, page
        from nappingrl.report.controls import best_control
        from nappingrl.report.summary import summarise
        from nappingrl.trials.store import make_folder

        check_name("statistic", self.statistic, ("median", "mean"))
        if not self.runs:
            raise BadSpecError("no run given; give the --out folder of at least one run")
        runs = open_runs(self.runs)
        compared = [(run[0].label, summarise(*run), best_control(run, runs)) for run in runs]
        out = self.out or self.runs[0]
        make_folder(out)
        picture = figures.curves(runs, out / "curves.png", self.statistic)
        opened = page.write(out / "report.html", compared, picture, [manifest.command for manifest, _ in runs])
        if self.json:
            by_run = {
                str(path): asdict(summary) | {"best_control": against and asdict(against)}
                for path, (_, summary, against) in zip(self.runs, compared, strict=True)
            }
            print(json.dumps({"runs": by_run, "picture": str(picture), "page": str(opened)}))
            return
        print_table(page.HEAD, page.table(compared))
        print(f"picture: {picture}\nopen {opened} in a browser")
