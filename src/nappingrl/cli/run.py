"""Experiments: what there is, runs of trials, one trial again."""

import json
import re
import shlex
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from tyro.conf import Positional

from nappingrl.cli.console import fresh_folder, print_table, progress, say


@dataclass(frozen=True)
class List:
    """Show what there is: domains with their agents, novelties and scores, methods, rules, detectors.

    Example: napping list
    """

    json: bool = False
    """Print one JSON object instead of tables."""

    def __call__(self) -> None:
        """Print the tables."""
        from nappingrl import scripted as players
        from nappingrl.domains import find_domain
        from nappingrl.methods.napping.principles import RULES
        from nappingrl.methods.napping.space import SPACES
        from nappingrl.registry import detectors, domains, methods

        kinds = {name: find_domain(name) for name in domains.names()}
        found: dict[str, Any] = {
            "domains": {
                name: {
                    "agents": players.names(name),
                    "novelties": {n.name: n.description for n in kind.novelties.values()},
                    "scores": {s.name: s.description for s in kind.scores.values()},
                    "defaults": asdict(kind.defaults),
                }
                for name, kind in kinds.items()
            },
            "methods": {name: _describe_method(methods.get(name)) for name in methods.names()},
            "rules": list(RULES),
            "spaces": list(SPACES),
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
        console.print(
            "any gymnasium environment: napping run --env ID --agent PATH.zip --novelty "
            "'NAME=VALUE; action-delay=1', see docs/any-environment.md",
            "",
            soft_wrap=True,
        )
        table = Table(title="methods and their options", title_justify="left", show_header=False, box=None)
        for name, entry in found["methods"].items():
            table.add_row(name, entry["about"])
            for key, text in entry["options"].items():
                table.add_row("", f"--option {key}=...: {text}")
        console.print(table, "")
        for kind in ("rules", "spaces", "detectors"):
            console.print(f"{kind}: {', '.join(found[kind])}")


@dataclass(frozen=True)
class Run:
    """Run trials: a trained agent meets a novelty, with or without adaptation.

    Example: napping run cartpole --agent ppo --method napping --trials 300 --seed 11
    Example: napping run --env Acrobot-v1 --agent my_agent.zip --novelty "LINK_LENGTH_1=2.0" --trials 20
    """

    domain: Positional[str] = ""
    """World to run in; see `napping list`."""
    env: str = ""
    """Instead of a world: id of any gymnasium environment, or module:id for one that a module of yours registers."""
    agent: str = ""
    """Name of a shipped agent, or the path of an SB3 .zip. Default: the domain's."""
    method: str = "napping"
    """What is done with experience: frozen, online, finetune, napping, a control, oracle; see `napping list`."""
    novelty: str = ""
    """Name of a novelty, "all" (trials of each) or "none" (a control). Default: the domain's.
    With --env also a description: "NAME=VALUE; NAME=LOW..HIGH; action-delay=1", see docs/any-environment.md."""
    strength: float = 1.0
    """How far the novelty goes, in (0, 1]."""
    rule: str = ""
    """Reading of the update: printed, text, revised, fallback. Default: the domain's."""
    space: str = ""
    """Where regions live: embedding or raw. Default: the domain's."""
    score: str = ""
    """The Eval that judges actions; see `napping list`. Default: the domain's."""
    option: tuple[str, ...] = ()
    """Options of the method as NAME=VALUE; see `napping list`."""
    detector: str = ""
    """When the world counts as changed; see `napping list`. Default: the method's, else the paper's in the domain."""
    guard: bool = False
    """Let the frozen agent take over where adaptation does not pay; see docs/methods/guard.md for its bound."""
    protocol: str = "paper"
    """paper, PRE+POST episodes such as 10+40, 1..40+40: a number before the novelty drawn for each trial, or return
    (40+40+40+40): then the old world again, then the novelty again."""
    trials: int = 100
    """Trials per novelty."""
    seed: int = 0
    """All draws follow from it."""
    workers: int = 0
    """Worker processes; 0: one per core. Rows do not depend on it."""
    executor: str = "local"
    """local (processes of this machine) or ray (see --address). Rows do not depend on it."""
    address: str = ""
    """Ray cluster to join: auto, or HOST:PORT of its head. Default: a Ray of --workers CPUs on this machine."""
    out: Path | None = None
    """Folder of the run; the same command continues a stopped run. Default: a fresh folder under runs/."""
    json: bool = False
    """Print one JSON object on the last line of standard output."""

    def __call__(self) -> None:
        """Run, then print the summary."""
        from nappingrl.report import page
        from nappingrl.report.summary import summarise_folder
        from nappingrl.scripted import load
        from nappingrl.trials.runner import default_workers, run_into
        from nappingrl.trials.spec import RunSpec

        world = self._world()
        spec = RunSpec(
            world, self.agent, self.method, self.novelty, self.trials, self.seed, self.strength, self.rule,
            self.space, self.score, self.detector, self.protocol,
            _read_pairs(self.option), self.guard,
        ).complete()  # fmt: skip
        agent = load(spec.agent, world)
        out = self.out or fresh_folder(f"{re.sub(r'[^A-Za-z0-9.-]+', '-', world)}-{agent.name}-{self.method}")
        started = time.perf_counter()
        try:
            with progress(f"{world} {agent.name} {self.method}") as on_progress:
                place = (self.executor, self.address)
                workers = self.workers or default_workers()
                folder = run_into(out, spec, agent, workers, on_progress, self._again(out), *place)
        except KeyboardInterrupt:
            say(f"stopped; finished parts are safe. Continue with the same command and --out {out}")
            raise
        for note in folder.manifest.notes:
            say(note)
        summary = summarise_folder(folder, time.perf_counter() - started)
        if self.json:
            print(json.dumps(asdict(summary)))
            return
        print_table(page.HEAD, page.table([(folder.manifest.label, summary, None)]))
        print(f"rows: {out}   next: napping report {out}")

    def _world(self) -> str:
        """The domain, or the id of the environment that is given instead."""
        from nappingrl.errors import BadSpecError
        from nappingrl.novelties.subject import find_spec

        if bool(self.domain) == bool(self.env):
            given = f"both DOMAIN ({self.domain}) and --env ({self.env}) are" if self.env else "no world is"
            raise BadSpecError(
                f"{given} given; allowed: a DOMAIN of `napping list`, or --env with the id of a gymnasium environment"
            )
        if self.env:
            find_spec(self.env)
        return self.domain or self.env

    def _again(self, out: Path) -> str:
        """The command that continues this run, with every option that is not the default."""
        words = ["napping", "run", *([self.domain] if self.domain else [])]
        unnamed = ("domain", "out", "json", "workers", "executor", "address")
        for option in fields(self):
            value = getattr(self, option.name)
            if option.name not in unnamed and value != option.default:
                words += [f"--{option.name}", *(value if isinstance(value, tuple) else [str(value)])]
        return shlex.join([*words, "--out", str(out)])


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

        from nappingrl.domains import find_domain
        from nappingrl.explain import summarise_principles
        from nappingrl.methods.napping.candidates import choice_names
        from nappingrl.trials.runner import replay
        from nappingrl.trials.store import RunFolder, make_folder

        folder = RunFolder.open(self.run)
        again = replay(folder, self.trial)
        make_folder(self.run / "principles")
        file = self.run / "principles" / f"{again.id.replace('/', '_')}.npz"
        np.savez_compressed(file, allow_pickle=False, **again.table)
        domain = find_domain(folder.manifest.spec["domain"])
        rules = summarise_principles(again.table, domain.describe, choice_names(domain.facts())) if again.table else []
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


def _read_pairs(pairs: tuple[str, ...]) -> dict[str, str]:
    """{"a": "1"} of ("a=1",)."""
    from nappingrl.errors import BadSpecError

    read = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign:
            raise BadSpecError(f"option '{pair}' is not of the form NAME=VALUE; example: --option choice=preference")
        read[name] = value
    return read


def _describe_method(method: Any) -> dict[str, Any]:
    about = {name: f"{option.description} ({_allowed(option)})" for name, option in method.options.items()}
    return {"about": method.__doc__.splitlines()[0], "options": about}


def _allowed(option: Any) -> str:
    default = "" if option.default is None else f"; default {option.default}"
    return (", ".join(option.words) or "a number") + default
