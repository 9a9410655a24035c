"""`napping paper`."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nappingrl.cli import argv
from nappingrl.cli.console import print_claims, print_note, print_table, progress
from nappingrl.cli.report import report_command
from nappingrl.cli.run import command_for
from nappingrl.errors import check_whole
from nappingrl.files import remove_temporaries
from nappingrl.files.lock import locked
from nappingrl.reproduction.evaluation import Stage, plan_evaluation, read_seconds, run_stages
from nappingrl.reproduction.outputs import write_claims, write_outputs, write_pass_rates
from nappingrl.trials.limits import MAX_SEED, MAX_WORKERS
from nappingrl.trials.store import make_folder
from nappingrl.trials.workers import default_workers


@dataclass(frozen=True)
class Paper:
    """Run the paper's whole evaluation, then write its figures, pages and claims.

    Example: napping paper --scale quick --out paper
    """

    out: Path
    """Folder of the evaluation; the same command continues a stopped one."""
    scale: str = "quick"
    """Number of trials: quick (minutes) or full (as in the paper; many hours)."""
    domains: tuple[str, ...] = ()
    """Domains to run, such as angrybirds. Default: all."""
    seed: int = 0
    """Random seed; every draw derives from it."""
    workers: int = 0
    """Worker processes; 0: one per core."""
    json: bool = False
    """Print a single machine-readable object."""

    def __call__(self) -> None:
        """Run, draw, judge."""
        check_whole("--workers", self.workers, 0, MAX_WORKERS)
        check_whole("--seed", self.seed, 0, MAX_SEED)
        make_folder(self.out)
        with locked(self.out):
            for folder in (self.out, *(path for path in self.out.iterdir() if path.is_dir())):
                remove_temporaries(folder)
            self._evaluate()

    def _evaluate(self) -> None:
        started = time.perf_counter()
        todo, left_out = plan_evaluation(self.out, self.scale, self.seed, self.domains)
        for entry in left_out:
            print_note(str(entry))
        try:
            with progress("paper") as on_progress:
                runs = run_stages(todo, self.workers or default_workers(), on_progress, command_for)
        except KeyboardInterrupt:
            print_note(f"stopped; finished parts are safe. Continue with: {argv.rebuild(self)}")
            raise
        files = [str(file) for file in write_outputs(runs, self.out, report_command)]
        judged = write_claims(runs, self.out)
        rates = write_pass_rates(runs, self.out)
        seconds, by_run = time.perf_counter() - started, read_seconds(self.out / "runs")
        if self.json:
            found = {"out": str(self.out), "seconds": round(seconds, 1), "claims": judged, "files": files}
            print(json.dumps(found | {"seconds_by_run": by_run, "rates": rates}))
            return
        print_claims(judged)
        _print_cost(todo, by_run)
        print(f"{len(runs)} runs in {seconds / 60:.1f} minutes; {len(files)} files:")
        for file in files:
            print(f"  {file}")


def _print_cost(stages: Sequence[Stage], seconds: Mapping[str, float]) -> None:
    """Print the time of each domain's runs over all calls; scripted agents that take longer apart."""
    groups: dict[str, list[float]] = {}
    for stage in stages:
        groups.setdefault(stage.group, []).append(seconds[stage.folder.name])
    rows: list[tuple[str, ...]] = [(name, str(len(group)), f"{sum(group):.0f}") for name, group in groups.items()]
    print_table(("time", "runs", "seconds"), rows)
