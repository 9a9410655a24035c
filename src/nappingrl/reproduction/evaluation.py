"""The paper's evaluation: every agent and method in every domain, as runs below one folder.

What runs follows from the registry: a registered domain, method or scripted agent takes part unless its entry says
otherwise (`in_paper`), and a method that cannot run somewhere is left out with the reason. The paper's own method runs
once for each of the `columns`; where two of them are the same run, it runs once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from nappingrl.agents import agent_names, load, zoo_names
from nappingrl.errors import BadSpecError, check_name
from nappingrl.registry import Entry, agents, domains, methods
from nappingrl.report.runs import Run, read_run
from nappingrl.reproduction.columns import COLUMNS, OTHER_SCORES, OURS, PRINTED, Column
from nappingrl.reproduction.times import Times, timed
from nappingrl.trials.estimates import episode_microseconds
from nappingrl.trials.protocol import phases
from nappingrl.trials.runner import run_into, why_not
from nappingrl.trials.spec import RunSpec
from nappingrl.trials.store import RunFolder

SCALES = ("quick", "full")
SLOW = 100.0
"""Cost of a domain from which on the oracle, controls that take longer than the frozen agent, and costly methods are
left out."""
COSTLY = 40.0
"""Cost of a method that has fewer trials, and at scale "quick" is left out of slow domains."""


@dataclass(frozen=True, slots=True)
class PaperSetup:
    """How the paper evaluates a domain."""

    quick: int = 8
    """Trials per agent, method and novelty at scale "quick"; costly methods have a third."""
    full: int = 100
    """The same at scale "full": what the paper ran."""
    learners: int = 100
    """The same for baselines that train the network at every step, which would take days."""
    planned: int = 100
    """The same for costly methods that leave the network as it is."""
    novelty: str = ""
    """Empty: the domain's default."""
    statistic: str = ""
    """Median or mean over trials in its figures; empty: the figure's default."""
    larger: Mapping[str, int] = field(default_factory=dict)
    """Trials per novelty of single runs at scale "full", by agent and method ("sb3-ppo-auto"): more than others have,
    because they decide a claim."""

    def trials(self, scale: str, method: Entry | None = None, run: str = "") -> int:
        """Trials per agent, method and novelty; None: of the frozen agent. `run`: agent and method."""
        if scale == "full" and run in self.larger:
            return self.larger[run]
        if method is None or method.cost < COSTLY:
            return self.quick if scale == "quick" else self.full
        if scale == "quick":
            return -(-self.quick // 3)
        return min(self.learners if method.role == "baseline" else self.planned, self.full)


def _of_each(agents: Sequence[str], trials: Mapping[str, int]) -> dict[str, int]:
    """Trials per novelty by agent and method, from those by method; the same for each of these agents."""
    return {f"{agent}-{method}": n for agent in agents for method, n in trials.items()}


PAPER: Mapping[str, PaperSetup] = {
    "cartpole": PaperSetup(
        40, 5000, 100, 500, statistic="median", larger=_of_each(("zoo-dqn", "zoo-ppo"), {"auto": 5000})
    ),
    "mountaincar": PaperSetup(24, 2000, 100, 2000, statistic="mean"),
    "crossroad": PaperSetup(
        8, 100, 10, 40, "all", "mean",
        _of_each(("sb3-dqn", "sb3-ppo"), {"napping": 1000, "napping-printed": 1000, "auto": 150}),
    ),
    "angrybirds": PaperSetup(
        2, 40, 10, 40, "all", "mean", _of_each(("dqn", "dqn-rel"), {"frozen": 160, "napping": 80, "auto": 225})
    ),
}  # fmt: skip
"""The paper's domains; others have the defaults of PaperSetup."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which part of the evaluation to run; empty: all of it."""

    domains: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    """By the names of run folders: those of the registry, napping-printed and napping-goal."""

    def check(self) -> None:
        """Raise for names that do not exist."""
        for name in self.domains:
            check_name("domain", name, domains.names())
        known = {agent for domain in self.domains or domains.names() for agent in agent_names(domain)}
        for name in self.agents:
            check_name("agent", name, known)
        for name in self.methods:
            others = [f"{COLUMNS[OURS].method}-{score}" for score in OTHER_SCORES.values()]
            check_name("method", name, [*methods.names(), COLUMNS[PRINTED].folder, *others])

    def takes(self, agent: str, *names: str) -> bool:
        """Whether a run is of this part; `names` are those of its method."""
        return (not self.agents or agent in self.agents) and (
            not self.methods or not set(self.methods).isdisjoint(names)
        )


OnStageProgress = Callable[[int, int, str], None]
"""Called with (work done, work in all, what is running)."""
CommandFor = Callable[[RunSpec, Path], str]
"""The shell command that repeats a run into a folder, for its manifest."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One run of the evaluation."""

    spec: RunSpec
    folder: Path
    method: str
    """The method, napping-printed or napping-goal."""

    @property
    def episodes(self) -> int:
        """Episodes of all its trials."""
        return self.spec.n_trials * sum(count for _, count in phases(self.spec.protocol))

    @property
    def cost(self) -> float:
        """About how many CPU microseconds one of its episodes takes: for the estimate of time left."""
        return episode_microseconds(self.spec) or 1.0

    @property
    def label(self) -> str:
        """What is running, in words."""
        return f"{self.spec.domain} {self.spec.agent} {self.method}"

    @property
    def has_begun(self) -> bool:
        """Whether its folder holds a run with its settings."""
        if not RunFolder.holds(self.folder):
            return False
        return bool(RunFolder.open(self.folder).manifest.spec == msgspec.to_builtins(self.spec))


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
    out: Path, scale: str = "quick", seed: int = 0, selection: Selection | None = None
) -> tuple[list[Stage], list[LeftOut]]:
    """All runs, or a selection, and what is left out; the cheap runs of each domain come first."""
    check_name("scale", scale, SCALES)
    selection = selection or Selection()
    selection.check()
    stages: list[Stage] = []
    left_out: list[LeftOut] = []
    for domain in (name for name in domains.names() if not selection.domains or name in selection.domains):
        planned, missing = _plan_domain(out / "runs", domain, scale, seed, selection)
        stages += sorted(planned, key=lambda stage: stage.cost)
        left_out += missing
    if not stages and not left_out:
        raise BadSpecError("no run has these --domains, --agents and --methods together; see `napping list`")
    return stages, left_out


def _plan_domain(
    runs: Path, domain: str, scale: str, seed: int, selection: Selection
) -> tuple[list[Stage], list[LeftOut]]:
    """Every agent with every method; agents with a memory of their own only frozen."""
    prefix, setup = f"{domain}-", PAPER.get(domain, PaperSetup())
    registered = [
        name.removeprefix(prefix) for name in agents if name.startswith(prefix) and agents.entry(name).in_paper
    ]
    stateful = [agent for agent in registered if load(agent, domain).is_stateful]
    names = [*zoo_names(domain), *(agent for agent in registered if agent not in stateful)]
    stages: list[Stage] = []
    left_out: list[LeftOut] = []
    for entry, column, also in _methods(domain):
        reasons: dict[str, str] = {}
        for agent in (name for name in names if selection.takes(name, column.folder, *also)):
            trials = setup.trials(scale, entry, f"{agent}-{column.folder}")
            spec = column.spec(domain, agent, setup.novelty, trials, seed)
            reasons[agent] = _too_slow(domain, entry, scale) or why_not(spec)
            if not reasons[agent]:
                stages.append(Stage(spec, runs / f"{prefix}{agent}-{column.folder}", column.folder))
        if len(set(reasons.values())) == 1:
            reasons = {"": next(iter(reasons.values()))}
        left_out += [LeftOut(domain, agent, column.folder, reason) for agent, reason in reasons.items() if reason]
    for agent in (name for name in stateful if selection.takes(name, "frozen")):
        spec = RunSpec(domain, agent, "frozen", setup.novelty, setup.trials(scale), seed).complete()
        stages.append(Stage(spec, runs / f"{prefix}{agent}-frozen", "frozen"))
    if not names and not stateful:
        left_out.append(LeftOut(domain, "", "any method", f"it has no agent; register one as '{prefix}NAME'"))
    return stages, left_out


def _methods(domain: str) -> list[tuple[Entry, Column, list[str]]]:
    """The methods of the evaluation; the paper's own also as printed, and with another score where there is one.

    Each with the names of those that are left out because they would be the same run.
    """
    literal = COLUMNS[PRINTED]
    others = [literal]
    if domain in OTHER_SCORES:
        others.append(replace(COLUMNS[OURS], other_score=OTHER_SCORES[domain]))
    chosen = [entry for entry in methods.entries() if entry.in_paper]
    planned: list[tuple[Entry, Column, list[str]]] = [(entry, Column(entry.title, entry.name), []) for entry in chosen]
    for other in others:
        for entry, column, also in [item for item in planned if item[1].folder == literal.method]:
            if other.adaptation(domain) == column.adaptation(domain):
                also.append(other.folder)
            else:
                planned.append((entry, other, []))
    return planned


def _too_slow(domain: str, method: Entry, scale: str) -> str:
    is_control = method.role == "control" and method.cost > 1
    is_costly = method.role == "method" and method.cost >= COSTLY and scale == "quick"
    is_slow = domains.entry(domain).cost >= SLOW and (is_control or is_costly or method.role == "oracle")
    return "to keep the time short, as trials here are slow" if is_slow else ""


def estimate(stages: Sequence[Stage], times: Mapping[str, Times], workers: int) -> dict[str, float]:
    """About how many seconds each stage takes, by its folder's name; from those that have run, if any have."""
    done = [stage for stage in stages if times.get(stage.folder.name, Times()).wall > 0]
    work = sum(stage.cost * stage.episodes for stage in done)
    rate = sum(times[stage.folder.name].wall for stage in done) / work if work else 1e-6 / workers
    return {stage.folder.name: rate * stage.cost * stage.episodes for stage in stages}


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

        with timed(stage.folder):
            agent = load(stage.spec.agent, stage.spec.domain)
            command = "" if command_for is None else command_for(stage.spec, stage.folder)
            run_into(stage.folder, stage.spec, agent, workers, report, command)
        runs.append(read_run(stage.folder))
        before += weight * stage.episodes
    return runs
