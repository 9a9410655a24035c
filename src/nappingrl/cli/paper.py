"""`napping paper`."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from nappingrl.cli import argv
from nappingrl.cli.claims import print_claims
from nappingrl.cli.console import print_note, print_table, progress
from nappingrl.cli.report import report_command
from nappingrl.cli.run import command_for
from nappingrl.errors import BadRunError, check_whole
from nappingrl.files import remove_temporaries
from nappingrl.files.lock import locked
from nappingrl.report.runs import Run, read_run
from nappingrl.reproduction.evaluation import Selection, Stage, estimate, plan_evaluation, run_stages
from nappingrl.reproduction.outputs import judge_claims, write_claims, write_outputs, write_pass_rates, write_rows
from nappingrl.reproduction.tables import costs_markdown, markdown, results_markdown, times_table
from nappingrl.reproduction.times import Times, read_times
from nappingrl.trials.limits import MAX_SEED, MAX_WORKERS
from nappingrl.trials.store import make_folder, write_output
from nappingrl.trials.workers import default_workers


@dataclass(frozen=True)
class Paper:
    """Run the paper's whole evaluation, then write its figures, pages and claims.

    Example: napping paper --scale quick --out paper
    Example: napping paper --scale full --out paper --domains cartpole --agents zoo-ppo --methods frozen napping
    """

    out: Path
    """Folder of the evaluation; the same command continues a stopped one."""
    scale: str = "quick"
    """Number of trials: quick (minutes) or full (as in the paper; many hours)."""
    domains: tuple[str, ...] = ()
    """Domains to run, such as angrybirds. Default: all."""
    agents: tuple[str, ...] = ()
    """Agents to run, such as zoo-ppo. Default: all."""
    methods: tuple[str, ...] = ()
    """Methods to run, such as napping, napping-printed or auto. Default: all of the evaluation."""
    seed: int = 0
    """Random seed; every draw derives from it."""
    workers: int = 0
    """Worker processes; 0: one per core."""
    estimate: bool = False
    """Only print the stages, how long they are expected to take, and how long finished ones took; runs nothing."""
    json: bool = False
    """Print a single machine-readable object."""

    def __call__(self) -> None:
        """Run, draw, judge."""
        check_whole("--workers", self.workers, 0, MAX_WORKERS)
        check_whole("--seed", self.seed, 0, MAX_SEED)
        if self.estimate:
            self._print_estimate()
            return
        make_folder(self.out)
        with locked(self.out):
            for folder in (self.out, *(path for path in self.out.iterdir() if path.is_dir())):
                remove_temporaries(folder)
            self._evaluate()

    def _plan(self) -> tuple[list[Stage], dict[str, float], int]:
        """The stages, the seconds that each is expected to take, and the number of workers."""
        selection = Selection(self.domains, self.agents, self.methods)
        todo, left_out = plan_evaluation(self.out, self.scale, self.seed, selection)
        for entry in left_out:
            print_note(str(entry))
        workers = self.workers or default_workers()
        return todo, estimate(todo, read_times(self.out / "runs"), workers), workers

    def _print_estimate(self) -> None:
        todo, expected, workers = self._plan()
        times = read_times(self.out / "runs")
        if self.json:
            by_run = {stage.folder.name: asdict(times.get(stage.folder.name, Times())) for stage in todo}
            print(json.dumps({"workers": workers, "estimated_seconds": expected, "seconds_by_run": by_run}))
            return
        _print(times_table(todo, expected, times))
        longest = max(expected.values()) / 60
        print(
            f"{sum(expected.values()) / 3600:.1f} hours on {workers} workers; the longest stage: {longest:.0f} minutes"
        )

    def _evaluate(self) -> None:
        started = time.perf_counter()
        todo, expected, workers = self._plan()
        print_note(f"{len(todo)} runs, about {sum(expected.values()) / 60:.0f} minutes on {workers} workers")
        try:
            with progress("paper") as on_progress:
                runs = run_stages(todo, workers, on_progress, command_for)
        except KeyboardInterrupt:
            print_note(f"stopped; finished parts are safe. Continue with: {argv.rebuild(self)}")
            raise
        runs, stages = self._add_earlier(runs)
        changed = [run for run in runs if run.domain in {stage.spec.domain for stage in todo}]
        files = [str(file) for file in write_outputs(changed, self.out, report_command)]
        files += [str(file) for file in write_rows(changed, self.out / "rows")]
        judged = judge_claims(runs)
        write_claims(judged, self.out)
        rates = write_pass_rates(runs, self.out)
        seconds, times = time.perf_counter() - started, read_times(self.out / "runs")
        timing = times_table(stages, estimate(stages, times, workers), times)
        tables = {"results.md": results_markdown(runs), "costs.md": costs_markdown(runs)}
        tables["times.md"] = "\n".join([*markdown(timing), ""])
        for name, text in tables.items():
            write_output(self.out / name, text.encode())
            files.append(str(self.out / name))
        if self.json:
            found = {"out": str(self.out), "seconds": round(seconds, 1), "claims": judged, "files": files}
            by_run = {stage.folder.name: asdict(times[stage.folder.name]) for stage in todo}
            print(json.dumps(found | {"seconds_by_run": by_run, "estimated_seconds": expected, "rates": rates}))
            return
        print_claims(judged)
        _print(times_table(todo, expected, times))
        print(f"{len(todo)} runs in {seconds / 60:.1f} minutes; {len(files)} files:")
        for file in files:
            print(f"  {file}")

    def _add_earlier(self, runs: Sequence[Run]) -> tuple[list[Run], list[Stage]]:
        """Add the finished runs of earlier calls: tables are of the whole evaluation, of which a call may run a part.

        Also gives the stages of the whole evaluation.
        """
        stages, _ = plan_evaluation(self.out, self.scale, self.seed)
        of_call = {run.path: run for run in runs}
        found = []
        for stage in stages:
            if stage.folder in of_call:
                found.append(of_call[stage.folder])
            elif stage.has_begun:
                try:
                    found.append(read_run(stage.folder))
                except BadRunError as error:
                    print_note(f"not in the tables: {str(error).removesuffix(', or take the rest with --partial')}")
        if len(found) > len(runs):
            n_versions = len({run.manifest.source_sha256 for run in found})
            versions = f"; they and those of this call are of {n_versions} versions of the source" * (n_versions > 1)
            print_note(f"the tables include {len(found) - len(runs)} runs of earlier calls in {self.out}{versions}")
        return found, stages


def _print(table: Sequence[tuple[str, ...]]) -> None:
    head, *rows = table
    print_table(head, rows)
