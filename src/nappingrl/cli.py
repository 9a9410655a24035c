"""The command line: `napping list | run | report | replay | train | bench`."""

import json
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Protocol

import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from tyro.conf import Positional

import nappingrl
from nappingrl.errors import NappingError


class Command(Protocol):
    """A sub-command: a record of its options that can be called."""

    def __call__(self) -> None:
        """Do it."""
        ...


@dataclass(frozen=True)
class List:
    """Show what there is: domains with their agents, novelties and scores, methods, rules, detectors.

    Example: napping list
    """

    json: bool = False
    """Print one JSON object instead of tables."""

    def __call__(self) -> None:
        """Print the tables."""
        from nappingrl.agents import zoo_names
        from nappingrl.methods.napping import CHOICES, SPACES
        from nappingrl.principles import RULES
        from nappingrl.registry import detectors, domains, methods

        kinds = {name: domains.get(name) for name in domains.names()}
        found: dict[str, Any] = {
            "domains": {
                name: {
                    "agents": zoo_names(name),
                    "novelties": {n.name: n.description for n in kind.novelties.values()},
                    "scores": {s.name: s.description for s in kind.scores.values()},
                    "defaults": asdict(kind.defaults),
                }
                for name, kind in kinds.items()
            },
            "methods": methods.names(),
            "rules": list(RULES),
            "spaces": list(SPACES),
            "choices": list(CHOICES),
            "detectors": detectors.names(),
        }
        if self.json:
            print(json.dumps(found))
            return
        console = Console()
        for name, entry in found["domains"].items():
            table = Table(title=f"domain {name}", title_justify="left", show_header=False, box=None)
            table.add_row("agents", ", ".join(entry["agents"]) + "  (or the path of an SB3 .zip)")
            for kind in ("novelties", "scores"):
                default = entry["defaults"][{"novelties": "novelty", "scores": "score"}[kind]]
                for i, (key, text) in enumerate(entry[kind].items()):
                    table.add_row(kind if i == 0 else "", f"{key}{' (default)' if key == default else ''}: {text}")
            table.add_row("rule, space", f"{entry['defaults']['rule']}, {entry['defaults']['space']} (defaults)")
            console.print(table, "")
        for kind in ("methods", "rules", "spaces", "choices", "detectors"):
            console.print(f"{kind}: {', '.join(found[kind])}")


@dataclass(frozen=True)
class Run:
    """Run trials: a trained agent meets a novelty, with or without adaptation.

    Example: napping run cartpole --agent ppo --method napping --trials 300 --seed 11
    """

    domain: Positional[str]
    """World to run in; see `napping list`."""
    agent: str = ""
    """Name of a shipped agent, or the path of an SB3 .zip. Default: the domain's."""
    method: str = "napping"
    """frozen, napping or oracle (a ceiling: knows the true parameters)."""
    novelty: str = ""
    """Name of a novelty, "all" (trials of each) or "none" (a control). Default: the domain's."""
    strength: float = 1.0
    """How far the novelty goes, in (0, 1]."""
    rule: str = ""
    """Reading of the update: printed, text, revised, fallback. Default: the domain's."""
    space: str = ""
    """Where regions live: embedding or raw. Default: the domain's."""
    score: str = ""
    """The Eval that judges actions; see `napping list`. Default: the domain's."""
    choice: str = "random"
    """How an open principle tries candidates: random or preference."""
    detector: str = "rolling-mean"
    """rolling-mean (the paper's), given or never."""
    protocol: str = "paper"
    """paper (40+40 episodes) or PRE+POST, such as 10+40."""
    trials: int = 100
    """Trials per novelty."""
    seed: int = 0
    """All draws follow from it."""
    workers: int = 0
    """Worker processes; 0: one per core. Rows do not depend on it."""
    out: Path | None = None
    """Folder of the run; the same command continues a stopped run. Default: a fresh folder under runs/."""
    json: bool = False
    """Print one JSON object on the last line of standard output."""

    def __call__(self) -> None:
        """Run, then print the summary."""
        from nappingrl.agents import load
        from nappingrl.methods.napping import CHOICES
        from nappingrl.registry import check_name
        from nappingrl.report import page
        from nappingrl.report.metrics import summarise_folder
        from nappingrl.trials.launch import default_workers, run_into
        from nappingrl.trials.spec import RunSpec

        check_name("choice", self.choice, CHOICES)
        spec = RunSpec(
            self.domain, self.agent, self.method, self.novelty, self.trials, self.seed, self.strength, self.rule,
            self.space, self.score, self.detector, self.protocol,
            {} if self.choice == "random" else {"choice": self.choice},
        ).complete()  # fmt: skip
        agent = load(spec.agent, self.domain)
        out = self.out or _fresh_folder(f"{self.domain}-{agent.name}-{self.method}")
        started = time.perf_counter()
        try:
            with _progress(f"{self.domain} {agent.name} {self.method}") as on_progress:
                folder = run_into(out, spec, agent, self.workers or default_workers(), on_progress, self._again(out))
        except KeyboardInterrupt:
            print(
                f"napping: stopped; finished parts are safe. Continue with the same command and --out {out}",
                file=sys.stderr,
            )
            raise
        summary = summarise_folder(folder, time.perf_counter() - started)
        if self.json:
            print(json.dumps(asdict(summary)))
            return
        _print_table([(folder.manifest.label, summary)], page.HEAD, page.table)
        print(f"rows: {out}   next: napping report {out}")

    def _again(self, out: Path) -> str:
        """The command that continues this run, with every option that is not the default."""
        words = ["napping", "run", self.domain]
        for option in fields(self):
            value = getattr(self, option.name)
            if option.name not in ("domain", "out", "json", "workers") and value != option.default:
                words += [f"--{option.name}", str(value)]
        return shlex.join([*words, "--out", str(out)])


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
        from nappingrl.report.metrics import summarise
        from nappingrl.trials.store import RunFolder, make_folder

        check_name("statistic", self.statistic, ("median", "mean"))
        if not self.runs:
            raise BadSpecError("no run given; give the --out folder of at least one run")
        folders = [RunFolder.open(path) for path in self.runs]
        runs = [(folder.manifest, folder.read()) for folder in folders]
        for folder, (manifest, rows) in zip(folders, runs, strict=True):
            if (n_trials := rows["trial"].n_unique()) < manifest.n_trials:
                print(
                    f"napping: {folder.path} is unfinished: {n_trials} of {manifest.n_trials} trials", file=sys.stderr
                )
        summaries = [(manifest.label, summarise(manifest, rows)) for manifest, rows in runs]
        out = self.out or self.runs[0]
        make_folder(out)
        picture = figures.curves(runs, out / "curves.png", self.statistic)
        opened = page.write(out / "report.html", summaries, picture, [manifest.command for manifest, _ in runs])
        if self.json:
            by_run = {str(path): asdict(summary) for path, (_, summary) in zip(self.runs, summaries, strict=True)}
            print(json.dumps({"runs": by_run, "picture": str(picture), "page": str(opened)}))
            return
        _print_table(summaries, page.HEAD, page.table)
        print(f"picture: {picture}\nopen {opened} in a browser")


@dataclass(frozen=True)
class Replay:
    """Run one trial of a run again: check its rows, write its principles, print them as rules.

    Example: napping replay runs/cartpole-ppo-napping-1 17
    """

    run: Positional[Path]
    """Folder of the run."""
    trial: Positional[str]
    """Number or id of the trial."""
    rules: int = 10
    """How many rules to print, the most visited first."""
    json: bool = False
    """Print one JSON object on the last line of standard output."""

    def __call__(self) -> None:
        """Run it again, then print."""
        import numpy as np

        from nappingrl.explain import read_rules
        from nappingrl.registry import domains
        from nappingrl.trials.launch import replay
        from nappingrl.trials.store import RunFolder, make_folder

        folder = RunFolder.open(self.run)
        again = replay(folder, self.trial)
        make_folder(self.run / "principles")
        file = self.run / "principles" / f"{again.id.replace('/', '_')}.npz"
        np.savez_compressed(file, allow_pickle=False, **again.table)
        domain = domains.get(folder.manifest.spec["domain"])
        rules = read_rules(again.table, domain.describe, domain.action_names) if again.table else []
        returns = again.rows["return"].to_list()
        if self.json:
            texts = [str(rule) for rule in rules]
            found = {"trial": again.id, "same": again.is_same, "returns": returns, "rules": texts, "file": str(file)}
            print(json.dumps(found))
            return
        print(f"trial {again.id}: {'the same rows as stored' if again.is_same else 'OTHER ROWS THAN STORED'}")
        print("returns:", " ".join(f"{value:g}" for value in returns))
        for rule in rules[: self.rules]:
            print(f"  {rule}")
        print(f"principles: {file}")


@dataclass(frozen=True)
class Train:
    """Train an agent of the zoo by its committed recipe, and write its weights and card.

    Example: napping train cartpole ppo --out zoo
    """

    domain: Positional[str]
    """World to train in."""
    agent: Positional[str]
    """Name of a recipe, such as ppo or dqn."""
    out: Path = Path("zoo")
    """Folder for the weights (.npz) and the card (.json)."""
    seed: int | None = None
    """Default: the recipe's."""
    total_steps: int | None = None
    """Default: the recipe's."""

    def __call__(self) -> None:
        """Train, then print the card."""
        from nappingrl.errors import MissingExtraError

        try:
            from nappingrl.agents.training import train
        except ModuleNotFoundError as error:
            raise MissingExtraError(f'training needs {error.name}: pip install "nappingrl[sb3]"') from error
        with _progress(f"train {self.domain} {self.agent}") as on_progress:
            card = train(
                self.domain, self.agent, self.out, seed=self.seed, total_steps=self.total_steps, on_progress=on_progress
            )
        print(json.dumps(card, indent=2))


@dataclass(frozen=True)
class Bench:
    """Measure the engine against the loop a user would write, on the same trials, one core each.

    Example: napping bench --json
    """

    regions: int = 1000
    """About how many regions the agents have while they are measured."""
    json: bool = False
    """Print one JSON object on the last line of standard output."""

    def __call__(self) -> None:
        """Measure, then print."""
        from nappingrl.bench import measure

        with _progress("bench") as on_progress:
            found = measure(self.regions, on_progress)
        if self.json:
            print(json.dumps(found))
            return
        table = Table("measure", "value", box=None)
        for name, value in found.items():
            table.add_row(name, f"{value:.2f}" if isinstance(value, float) else str(value))
        Console().print(table)


def main(arguments: list[str] | None = None) -> None:
    """Entry point: user mistakes are one line and exit status 2."""
    commands = (
        Annotated[List, tyro.conf.subcommand("list")]
        | Annotated[Run, tyro.conf.subcommand("run")]
        | Annotated[Report, tyro.conf.subcommand("report")]
        | Annotated[Replay, tyro.conf.subcommand("replay")]
        | Annotated[Train, tyro.conf.subcommand("train")]
        | Annotated[Bench, tyro.conf.subcommand("bench")]
    )
    command: Command = tyro.cli(commands, prog="napping", description=nappingrl.__doc__, args=arguments)
    try:
        command()
    except NappingError as error:
        print(f"napping: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


@contextmanager
def _progress(text: str) -> Iterator[Any]:
    """A bar with the time left on standard error; none where it is not a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True) as bar:
        task = bar.add_task(text, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _print_table(summaries: list[Any], head: tuple[str, ...], cells: Any) -> None:
    table = Table(*head, box=None)
    for row in cells(summaries):
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 120).print(table)


def _fresh_folder(name: str) -> Path:
    number = 1
    while (path := Path("runs") / f"{name}-{number}").exists():
        number += 1
    return path
