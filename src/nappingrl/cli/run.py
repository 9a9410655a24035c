"""`napping run`."""

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from tyro.conf import Positional

from nappingrl.agents import load_agent
from nappingrl.cli import argv
from nappingrl.cli.console import new_run_folder, print_note, print_table, progress
from nappingrl.cli.domain_or_env import domain_or_env
from nappingrl.env_wrappers import SEPARATOR
from nappingrl.errors import BadSpecError, check_whole
from nappingrl.novelties.subject import find_spec
from nappingrl.registry import domains
from nappingrl.report.runs import Run as TrialRun
from nappingrl.report.runs import read_run
from nappingrl.report.table import HEAD, Result, runs_table
from nappingrl.trials.estimates import expected_seconds
from nappingrl.trials.limits import MAX_WORKERS
from nappingrl.trials.notes import suspect
from nappingrl.trials.runner import run_into
from nappingrl.trials.spec import RunSpec
from nappingrl.trials.store import RunFolder
from nappingrl.trials.workers import default_workers

LONG = 120.0
"""Seconds from which on a run is announced with an estimate."""


@dataclass(frozen=True)
class Run:
    """Run trials: a trained agent meets a novelty, with or without adaptation.

    Example: napping run cartpole --agent ppo --method napping --trials 300 --seed 11
    Example: napping run --env Acrobot-v1 --agent my_agent.zip --novelty "LINK_LENGTH_1=2.0" --trials 20
    """

    domain: Positional[str] = ""
    """Domain to run in; see `napping list`."""
    env: str = ""
    """Instead of a domain: id of any gymnasium environment, or module:id if that module registers it."""
    wrap: tuple[str, ...] = ()
    """Wrappers around --env that make its observations one row of numbers, such as flatten; see `napping list`."""
    agent: str = ""
    """Name of a shipped agent, or the path of an SB3 .zip. Default: the domain's."""
    method: str = ""
    """Adaptation method; see `napping list`. Default: napping, or auto with --env."""
    novelty: str = ""
    """Name of a novelty, "all" (every novelty in turn), "none" (no change, as a control), or a description such as
    "gravity=20; force=5..7; action-delay=1", see docs/any-environment.md. Default: the domain's."""
    strength: float = 1.0
    """Strength of the novelty, in (0, 1]."""
    rule: str = ""
    """Interpretation of the paper's update rule: printed, text, revised or fallback. Default: the domain's."""
    space: str = ""
    """Space of the regions: embedding or raw. Default: the domain's."""
    score: str = ""
    """Score that judges actions (the paper's Eval); see `napping list`. Default: the domain's."""
    option: tuple[str, ...] = ()
    """Options of the method as NAME=VALUE; see `napping list`."""
    domain_option: tuple[str, ...] = ()
    """Options of the domain as NAME=VALUE; see `napping list`. Default: those that the agent was trained with."""
    detector: str = ""
    """Novelty detector; see `napping list`. Default: the method's, or else the domain's."""
    guard: bool = False
    """Fall back to the frozen agent while adaptation does not pay; see docs/methods/guard.md for the bound."""
    protocol: str = "paper"
    """Episodes per trial: paper, PRE+POST such as 10+40, LEAST..MOST+POST such as 1..40+40 to draw the number before
    the novelty for each trial, or return (40+40+40+40: the novelty goes away, then comes back)."""
    trials: int = 100
    """Trials per novelty; a finished run of one novelty continues with more of them."""
    seed: int = 0
    """Random seed; every draw derives from it."""
    workers: int = 0
    """Worker processes; 0: one per core. Rows do not depend on it."""
    executor: str = "local"
    """Where trials run: local (processes on this machine) or ray (see --address). Rows do not depend on it."""
    address: str = ""
    """Ray cluster to join: auto, or HOST:PORT of its head. Default: start Ray with --workers CPUs on this machine."""
    out: Path | None = None
    """Folder of the run; the same command continues a stopped run. Default: a new folder under runs/."""
    json: bool = False
    """Print a single machine-readable object."""

    groups: ClassVar = {
        "where and who": ("env", "wrap", "agent", "domain_option"),
        "what changes": ("novelty", "strength", "protocol"),
        "adaptation": ("method", "option", "score", "detector", "guard", "rule", "space"),
        "the run": ("trials", "seed", "out", "json"),
        "machines": ("workers", "executor", "address"),
    }

    def __call__(self) -> None:
        """Run, then print the summary."""
        check_whole("workers", self.workers, 0, MAX_WORKERS)
        spec = self.spec().complete()
        domain = spec.domain
        agent = load_agent(spec.agent, domain)
        out = self.out or new_run_folder(f"{re.sub(r'[^A-Za-z0-9.-]+', '-', domain)}-{agent.name}-{spec.method}")
        command = argv.rebuild(replace(self, out=out, json=False, workers=0, executor="local", address=""))
        workers = self.workers or default_workers()
        expected = 0.0 if RunFolder.holds(out) else expected_seconds(spec, workers) or 0.0

        def announce() -> None:
            if expected > LONG:
                minutes = f"about {expected / 60:.0f} minutes on {workers} workers"
                print_note(f"{minutes}; Ctrl-C stops it, and nothing is lost")

        started = time.perf_counter()
        try:
            with progress(f"{domain} {agent.name} {spec.method}") as on_progress:
                folder = run_into(
                    out, spec, agent, workers, on_progress, command, self.executor, self.address, announce
                )
        except KeyboardInterrupt:
            print_note(f"stopped; finished parts are safe. Continue with: {command}")
            raise
        run = read_run(out, env=spec.module_ids)
        notes = [*run.notes, *_idle_notes(run)]
        for note in notes:
            print_note(note)
        summary = run.summary(time.perf_counter() - started)
        if self.json:
            print(json.dumps(asdict(summary) | {"notes": notes}))
            return
        print_table(HEAD, runs_table([Result(folder.manifest.label, summary)]))
        print(f"rows: {out}   next: {argv.line('report', out)}")

    def spec(self) -> RunSpec:
        """The run that the options ask for, without defaults."""
        options = {name: value for name, value in (("rule", self.rule), ("space", self.space)) if value}
        return RunSpec(
            domain=self._domain_name(), agent=self.agent, method=self.method, novelty=self.novelty, trials=self.trials,
            seed=self.seed, strength=self.strength, score=self.score, detector=self.detector, protocol=self.protocol,
            options=options | read_pairs(self.option), guard=self.guard,
            domain_options=read_pairs(self.domain_option),
        )  # fmt: skip

    def _domain_name(self) -> str:
        """The domain, or the id of the gymnasium environment."""
        name = domain_or_env(self.domain, self.env)
        if self.wrap and not self.env:
            raise BadSpecError(f"--wrap {' '.join(self.wrap)} is for environments: give --env instead of a domain")
        name = SEPARATOR.join([name, *self.wrap])
        if self.env:
            find_spec(name)
        return name


def _idle_notes(run: TrialRun) -> list[str]:
    """Whether the method had nothing to do after an alarm; runs one trial again where the rows leave it open."""
    trial = suspect(run.spec, run.rows)
    status = run.replay(trial).status if trial else ""
    return [f"{run.method} acted as the frozen agent in trial {trial}: {status}"] if status else []


def command_for(spec: RunSpec, out: Path | None) -> str:
    """The command that runs a completed spec into a folder."""
    is_domain, options = spec.domain in domains, dict(spec.options)
    env, *wrappers = ("",) if is_domain else spec.domain.split(SEPARATOR)
    command = Run(
        domain=spec.domain if is_domain else "", env=env, wrap=tuple(wrappers), agent=spec.agent,
        method=spec.method, novelty=spec.novelty, trials=spec.trials, seed=spec.seed, strength=spec.strength,
        rule=options.pop("rule", ""), space=options.pop("space", ""), score=spec.score, detector=spec.detector,
        protocol=spec.protocol, option=_pairs(options), domain_option=_pairs(spec.domain_options), guard=spec.guard,
        out=out,
    )  # fmt: skip
    return argv.rebuild(command)


def _pairs(options: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(f"{name}={value}" for name, value in options.items())


def read_pairs(pairs: Sequence[str]) -> dict[str, str]:
    """Read ("a=1", "b=2") as {"a": "1", "b": "2"}."""
    options = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign:
            raise BadSpecError(f"option '{pair}' is not of the form NAME=VALUE; example: --option choice=preference")
        options[name] = value
    return options
