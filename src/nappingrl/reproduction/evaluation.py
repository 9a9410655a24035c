"""The paper's evaluation: every agent and method in every domain, as runs below one folder.

What runs follows from the registry: a registered domain, method or scripted agent takes part unless its entry says
otherwise (`in_paper`), and a method that cannot run somewhere is left out with the reason.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from nappingrl.agents import load, zoo_names
from nappingrl.errors import BadRunError, check_name
from nappingrl.registry import Entry, agents, domains, methods
from nappingrl.report.runs import Run, read_run
from nappingrl.trials.protocol import phases
from nappingrl.trials.runner import run_into, why_not
from nappingrl.trials.spec import RunSpec
from nappingrl.trials.store import make_folder, write_output

SCALES = ("quick", "full")


@dataclass(frozen=True, slots=True)
class PaperSetup:
    """How the paper evaluates a domain."""

    quick: int = 8
    """Trials per agent, method and novelty at scale "quick"."""
    full: int = 100
    """The same at scale "full": what the paper ran."""
    novelty: str = ""
    """Empty: the domain's default."""
    statistic: str = ""
    """Median or mean over trials in its figures; empty: the figure's default."""


PAPER: Mapping[str, PaperSetup] = {
    "cartpole": PaperSetup(64, 5000, statistic="median"),
    "mountaincar": PaperSetup(32, 2000, statistic="mean"),
    "crossroad": PaperSetup(8, 100, "all", statistic="mean"),
    "angrybirds": PaperSetup(2, 40, "all", statistic="mean"),
}
"""The paper's domains; others have the defaults of PaperSetup."""

SLOW = 100.0
"""Cost of a domain from which on controls that take longer than the frozen agent are left out."""

SECONDS = "seconds.json"
"""File beside the runs: how long each took."""

OnStageProgress = Callable[[int, int, str], None]
"""Called with (work done, work in all, what is running)."""
CommandFor = Callable[[RunSpec, Path], str]
"""The shell command that repeats a run into a folder, for its manifest."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One run of the evaluation."""

    spec: RunSpec
    folder: Path

    @property
    def episodes(self) -> int:
        """Episodes of all its trials."""
        return self.spec.n_trials * sum(count for _, count in phases(self.spec.protocol))

    @property
    def cost(self) -> float:
        """About how long one of its episodes takes, the frozen agent in CartPole = 1: for the estimate of time left."""
        return domains.entry(self.spec.domain).cost * methods.entry(self.spec.method).cost * self._agent_cost

    @property
    def group(self) -> str:
        """Its line in the table of times: the domain, with the agent where that is costly."""
        return f"{self.spec.domain}, {self.spec.agent}" if self._agent_cost >= 2 else self.spec.domain

    @property
    def _agent_cost(self) -> float:
        name = f"{self.spec.domain}-{self.spec.agent}"
        return agents.entry(name).cost if name in agents else 1.0

    @property
    def label(self) -> str:
        """What is running, in words."""
        return f"{self.spec.domain} {self.spec.agent} {self.spec.method}"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A method that is not run in a domain, and why."""

    domain: str
    agent: str
    """Empty: with no agent of the domain."""
    method: str
    reason: str

    def __str__(self) -> str:
        return f"{self.domain} {self.agent}{' ' * bool(self.agent)}is not run with {self.method}: {self.reason}"


def plan_evaluation(
    out: Path, scale: str = "quick", seed: int = 0, only: Sequence[str] = ()
) -> tuple[list[Stage], list[LeftOut]]:
    """All runs, or those of some domains, and what is left out; the cheap runs of each domain come first."""
    check_name("scale", scale, SCALES)
    names = [check_name("domain", name, domains.names()) for name in only] or domains.names()
    stages: list[Stage] = []
    left_out: list[LeftOut] = []
    for domain in (name for name in domains.names() if name in names):
        setup = PAPER.get(domain, PaperSetup())
        trials = setup.quick if scale == "quick" else setup.full
        planned, missing = _plan_domain(domain, trials, setup.novelty, seed)
        of_domain = [Stage(spec, out / "runs" / f"{domain}-{spec.agent}-{spec.method}") for spec in planned]
        stages += sorted(of_domain, key=lambda stage: stage.cost)
        left_out += missing
    return stages, left_out


def _plan_domain(domain: str, trials: int, novelty: str, seed: int) -> tuple[list[RunSpec], list[LeftOut]]:
    """Every agent with every method; agents with a memory of their own only frozen."""
    prefix = f"{domain}-"
    registered = [
        name.removeprefix(prefix) for name in agents if name.startswith(prefix) and agents.entry(name).in_paper
    ]
    stateful = [agent for agent in registered if load(agent, domain).is_stateful]
    names = [*zoo_names(domain), *(agent for agent in registered if agent not in stateful)]
    specs: list[RunSpec] = []
    left_out: list[LeftOut] = []
    for method in (entry for entry in methods.entries() if entry.in_paper):
        reasons: dict[str, str] = {}
        for agent in names:
            spec = RunSpec(domain, agent, method.name, novelty, trials, seed).complete()
            reasons[agent] = _too_slow(domain, method) or why_not(spec)
            if not reasons[agent]:
                specs.append(spec)
        if len(set(reasons.values())) == 1:
            reasons = {"": reasons[names[0]]}
        left_out += [LeftOut(domain, agent, method.name, reason) for agent, reason in reasons.items() if reason]
    specs += [RunSpec(domain, agent, "frozen", novelty, trials, seed).complete() for agent in stateful]
    if not specs and not left_out:
        left_out.append(LeftOut(domain, "", "any method", f"it has no agent; register one as '{prefix}NAME'"))
    return specs, left_out


def _too_slow(domain: str, method: Entry) -> str:
    is_slow = domains.entry(domain).cost >= SLOW and method.role == "control" and method.cost > 1
    return "to keep the time short, as trials here are slow" if is_slow else ""


def run_stages(
    todo: Sequence[Stage],
    workers: int,
    on_progress: OnStageProgress | None = None,
    command_for: CommandFor | None = None,
) -> list[Run]:
    """Run or continue every stage; finished ones cost nothing."""
    weights = [stage.cost for stage in todo]
    total = round(sum(weight * stage.episodes for weight, stage in zip(weights, todo, strict=True)))
    before = 0.0
    runs = []
    for stage, weight in zip(todo, weights, strict=True):

        def report(done: int, _: int, start: float = before, weight: float = weight, label: str = stage.label) -> None:
            if on_progress is not None:
                on_progress(round(start + weight * done), total, label)

        with _timed(stage.folder):
            agent = load(stage.spec.agent, stage.spec.domain)
            command = "" if command_for is None else command_for(stage.spec, stage.folder)
            run_into(stage.folder, stage.spec, agent, workers, report, command)
        runs.append(read_run(stage.folder))
        before += weight * stage.episodes
    return runs


@contextmanager
def _timed(run: Path) -> Iterator[None]:
    """Add the time spent inside to that of the run, even if it is stopped."""
    started = time.perf_counter()
    try:
        yield
    finally:
        seconds = read_seconds(run.parent)
        seconds[run.name] = round(seconds.get(run.name, 0.0) + time.perf_counter() - started, 1)
        make_folder(run.parent)
        write_output(run.parent / SECONDS, f"{json.dumps(seconds, indent=2)}\n".encode())


def read_seconds(runs: Path) -> dict[str, float]:
    """How long each run in a folder took, over all calls."""
    file = runs / SECONDS
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, float])
    except FileNotFoundError:
        return {}
    except msgspec.MsgspecError as error:
        raise BadRunError(f"{file} cannot be read ({error}); delete it: only times are lost") from error
