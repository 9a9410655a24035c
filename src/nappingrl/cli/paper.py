"""The paper's evaluation, its claims, and runs in other formats."""

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tyro.conf import Positional

from nappingrl.cli.console import print_table, progress, say, say_gaps

if TYPE_CHECKING:
    from nappingrl.report.best_control import Run


@dataclass(frozen=True)
class Paper:
    """Run the paper's whole evaluation, then write every figure, the page and the table of claims.

    Example: napping paper --scale quick --out paper
    """

    out: Path
    """Folder of the evaluation; the same command continues a stopped one."""
    scale: str = "quick"
    """quick (minutes) or full (the paper's numbers of trials; many hours)."""
    domains: tuple[str, ...] = ()
    """Only these worlds, such as angrybirds; default: all."""
    seed: int = 0
    """All draws follow from it."""
    workers: int = 0
    """Worker processes; 0: one per core."""
    json: bool = False
    """Print one JSON object on the last line of standard output."""

    def __call__(self) -> None:
        """Run, draw, judge."""
        from nappingrl.reproduction.evaluation import LEFT_OUT, read_seconds, run_stages, stages
        from nappingrl.reproduction.outputs import draw_all
        from nappingrl.trials.runner import default_workers
        from nappingrl.trials.store import make_folder

        make_folder(self.out)
        todo, started = stages(self.out, self.scale, self.seed, self.domains), time.perf_counter()
        for domain in dict.fromkeys(stage.spec.domain for stage in todo):
            for method, why in LEFT_OUT.get(domain, {}).items():
                say(f"{domain} is not run with {method}: {why}")
        try:
            with progress("paper") as on_progress:
                folders = run_stages(todo, self.workers or default_workers(), on_progress)
        except KeyboardInterrupt:
            say(f"stopped; finished parts are safe. Continue with the same command and --out {self.out}")
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
        _print_claims(judged)
        _print_cost([stage.folder.name for stage in todo], by_run)
        print(f"{len(folders)} runs in {seconds / 60:.1f} minutes; {len(pictures)} files:")
        for file in pictures:
            print(f"  {file}")


@dataclass(frozen=True)
class Claims:
    """The paper's quantitative claims against the runs below a folder: holds, does not hold, or not run.

    Exit status 0: all claims that were run hold; 1: at least one does not; 2: no run was found.

    Example: napping claims paper
    """

    folder: Positional[Path]
    """Folder with runs somewhere below it, such as the --out of `napping paper`."""
    partial: bool = False
    """Judge unfinished runs too, by the parts that are there."""
    json: bool = False
    """Print one JSON object on the last line of standard output."""

    def __call__(self) -> None:
        """Judge, then print."""
        from nappingrl.report.runs import load_run
        from nappingrl.reproduction.claims import FAILS
        from nappingrl.trials.store import RunFolder

        runs = [load_run(folder, self.partial) for folder in RunFolder.below(self.folder)]
        judged = _judge([run.run for run in runs])
        say_gaps(runs)
        if self.json:
            print(json.dumps({"claims": judged}))
        else:
            _print_claims(judged)
        if any(entry["status"] == FAILS for entry in judged):
            sys.exit(1)


@dataclass(frozen=True)
class Export:
    """Write a run in another format: SB3's Monitor files, WSU's columns, or TensorBoard.

    Example: napping export runs/cartpole-ppo-napping-1 --format wsu --out exported
    """

    run: Positional[Path]
    """Folder of the run."""
    out: Path
    """Folder for the files."""
    format: str = "monitor"
    """monitor, wsu or tensorboard."""
    partial: bool = False
    """Write an unfinished run too, the parts that are there."""

    def __call__(self) -> None:
        """Write the files and name them."""
        from nappingrl.report.export import export
        from nappingrl.report.runs import load_run
        from nappingrl.trials.store import RunFolder

        run = load_run(RunFolder.open(self.run), self.partial)
        files = export(run.run, self.format, self.out)
        say_gaps([run])
        print(f"{len(files)} file{'s' if len(files) != 1 else ''} in {self.out}: {files[0].name}, ...")


def write_claims(runs: "list[Run]", out: Path) -> list[dict[str, Any]]:
    """Judge the claims and leave them as claims.json and claims.md."""
    judged = _judge(runs)
    (out / "claims.json").write_text(json.dumps(judged, indent=2) + "\n", "utf-8")
    head = ("claim", "ours", "status")
    lines = ["| " + " | ".join(head) + " |", "|---|---|---|"]
    lines += [f"| {entry['domain']}: {entry['text']} | {entry['ours']} | {entry['status']} |" for entry in judged]
    (out / "claims.md").write_text("\n".join(lines) + "\n", "utf-8")
    return judged


def write_rates(runs: "list[Run]", out: Path) -> dict[str, Any]:
    """The pass rates of each domain that has them; beside its page as rates.md."""
    from nappingrl.cli.birds.rates_table import find_rates, write_markdown

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


def _judge(runs: "list[Run]") -> list[dict[str, Any]]:
    from nappingrl.reproduction.claims import CLAIMS, judge

    return [
        {"domain": claim.domain, "text": claim.text, "criterion": claim.criterion, **asdict(finding)}
        for claim, finding in judge(CLAIMS, runs)
    ]


def _print_claims(judged: list[dict[str, Any]]) -> None:
    print_table(
        ("domain", "claim of the paper", "ours", "status"),
        [(entry["domain"], entry["text"], entry["ours"], entry["status"]) for entry in judged],
    )
