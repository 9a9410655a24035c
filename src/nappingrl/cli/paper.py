"""`napping paper`."""

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import nappingrl.report.figures  # noqa: F401  # pass_rates and figures import each other: figures first
from nappingrl.cli import argv
from nappingrl.cli.birds.rates_table import find_rates, write_markdown
from nappingrl.cli.console import print_claims, print_note, print_table, progress
from nappingrl.cli.run import command_for
from nappingrl.report.best_control import Run
from nappingrl.reproduction import claims
from nappingrl.reproduction.evaluation import LEFT_OUT, read_seconds, run_stages, stages
from nappingrl.reproduction.outputs import draw_all
from nappingrl.trials.runner import default_workers
from nappingrl.trials.store import make_folder


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
        make_folder(self.out)
        todo, started = stages(self.out, self.scale, self.seed, self.domains), time.perf_counter()
        for domain in dict.fromkeys(stage.spec.domain for stage in todo):
            for method, why in LEFT_OUT.get(domain, {}).items():
                print_note(f"{domain} is not run with {method}: {why}")
        try:
            with progress("paper") as on_progress:
                folders = run_stages(todo, self.workers or default_workers(), on_progress, command_for)
        except KeyboardInterrupt:
            print_note(f"stopped; finished parts are safe. Continue with: {argv.rebuild(self)}")
            raise
        runs = [(folder.manifest, folder.read()) for folder in folders]
        pictures = draw_all(folders, self.out)
        judged = write_claims(runs, self.out)
        rates = write_rates(runs, self.out)
        seconds, by_run = time.perf_counter() - started, read_seconds(self.out / "runs")
        if self.json:
            found = {"out": str(self.out), "seconds": round(seconds, 1), "claims": judged, "files": pictures}
            print(json.dumps(found | {"seconds_by_run": by_run, "rates": rates}))
            return
        print_claims(judged)
        _print_cost([stage.folder.name for stage in todo], by_run)
        print(f"{len(folders)} runs in {seconds / 60:.1f} minutes; {len(pictures)} files:")
        for file in pictures:
            print(f"  {file}")


def write_claims(runs: list[Run], out: Path) -> list[dict[str, Any]]:
    """Judge the claims and leave them as claims.json and claims.md."""
    judged = judge_all(runs)
    (out / "claims.json").write_text(json.dumps(judged, indent=2) + "\n", "utf-8")
    head = ("claim", "ours", "status")
    lines = ["| " + " | ".join(head) + " |", "|---|---|---|"]
    lines += [f"| {entry['domain']}: {entry['text']} | {entry['ours']} | {entry['status']} |" for entry in judged]
    (out / "claims.md").write_text("\n".join(lines) + "\n", "utf-8")
    return judged


def write_rates(runs: list[Run], out: Path) -> dict[str, Any]:
    """The pass rates of each domain that has them; beside its page as rates.md."""
    found = {}
    for domain in dict.fromkeys(str(manifest.spec["domain"]) for manifest, _ in runs):
        of_domain = [run for run in runs if run[0].spec["domain"] == domain]
        rates = find_rates(of_domain)
        if rates is not None:
            found[domain] = rates
            write_markdown(of_domain, out / domain / "rates.md")
    return found


def _print_cost(names: list[str], seconds: dict[str, float]) -> None:
    """The time of each domain's runs over all calls; HYDRA's apart."""
    groups: dict[str, list[str]] = {}
    for name in names:
        domain = name.split("-")[0]
        groups.setdefault(f"{domain}, HYDRA" if "-hydra-" in name else domain, []).append(name)
    lines: list[tuple[str, ...]] = [
        (group, str(len(members)), f"{sum(seconds[name] for name in members):.0f}") for group, members in groups.items()
    ]
    print_table(("time", "runs", "seconds"), lines)


def judge_all(runs: list[Run]) -> list[dict[str, Any]]:
    """Judge every claim."""
    return [
        {"domain": claim.domain, "text": claim.text, "criterion": claim.criterion, **asdict(finding)}
        for claim, finding in claims.judge(claims.CLAIMS, runs)
    ]
