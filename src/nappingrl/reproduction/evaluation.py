"""The paper's whole evaluation: every agent and method in every domain that is there, as runs below one folder."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nappingrl import agents
from nappingrl.agents import zoo_names
from nappingrl.errors import check_name
from nappingrl.trials.protocol import phases
from nappingrl.trials.runner import run_into
from nappingrl.trials.spec import RunSpec
from nappingrl.trials.store import RunFolder, make_folder

METHODS = (
    "frozen",
    "online",
    "finetune",
    "napping",
    "controller",
    "replay-success",
    "napping-no-memory",
    "random",
    "oracle",
)
"""The paper's four, the controls, and the ceiling."""

TRIALS: Mapping[str, Mapping[str, int]] = {
    "quick": {"cartpole": 64, "mountaincar": 32, "crossroad": 8, "angrybirds": 2},
    "full": {"cartpole": 5000, "mountaincar": 2000, "crossroad": 100, "angrybirds": 40},
}
"""Trials per agent and method (per novelty in CrossRoad and Angry Birds); "full" is what the paper ran."""

NOVELTIES = {"crossroad": "all", "angrybirds": "all"}
"""Elsewhere: the domain's default."""

PLAYERS = {"angrybirds": ("naive", "naive-adaptation", "datalab", "replanner", "hydra")}
"""Agents by rules that the paper compares with, or that stand in for them."""

LEFT_OUT: Mapping[str, Mapping[str, str]] = {
    "angrybirds": {
        "online": "no learner here trains a network over objects",
        "finetune": "no learner here trains a network over objects",
        "oracle": "no ceiling is known",
        "napping-no-memory": "to keep the time short",
    }
}
"""Domain -> methods that are not run there, and why."""

_WORLD_COST = {"angrybirds": 100.0}
_PLAYER_COST = {"hydra": 2.0, "datalab": 1.5}
_COST = {"online": 60.0, "finetune": 40.0, "napping": 3.0, "napping-no-memory": 2.0, "oracle": 3.0}
"""About how long an episode takes, frozen in CartPole = 1: only for the estimate of the time left."""

SECONDS = "seconds.json"
"""Beside the runs: how long each has taken."""

OnProgress = Callable[[int, int, str], None]
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
        """About how long one of its episodes takes."""
        spec = self.spec
        return _WORLD_COST.get(spec.domain, 1.0) * _COST.get(spec.method, 1.0) * _PLAYER_COST.get(spec.agent, 1.0)

    @property
    def label(self) -> str:
        """What is running, in words."""
        return f"{self.spec.domain} {self.spec.agent} {self.spec.method}"


def stages(out: Path, scale: str = "quick", seed: int = 0, domains: Sequence[str] = ()) -> list[Stage]:
    """All runs, or those of some domains; the cheap ones of each first, so that a stopped evaluation can be shown."""
    by_domain = TRIALS[check_name("scale", scale, TRIALS)]
    wanted = [check_name("domain", domain, by_domain) for domain in domains]
    found = []
    for domain, trials in by_domain.items():
        if wanted and domain not in wanted:
            continue
        methods = [method for method in METHODS if method not in LEFT_OUT.get(domain, ())]
        runs = [(agent, method) for method in methods for agent in zoo_names(domain)]
        runs += [(player, "frozen") for player in PLAYERS.get(domain, ())]
        of_domain = [
            Stage(
                RunSpec(domain, agent, method, NOVELTIES.get(domain, ""), trials, seed).complete(),
                out / "runs" / f"{domain}-{agent}-{method}",
            )
            for agent, method in runs
        ]
        found += sorted(of_domain, key=lambda stage: stage.cost)
    return found


def run_stages(
    todo: list[Stage], workers: int, on_progress: OnProgress | None = None, command_for: CommandFor | None = None
) -> list[RunFolder]:
    """Run or continue every stage; finished ones cost nothing."""
    weights = [stage.cost for stage in todo]
    total = round(sum(weight * stage.episodes for weight, stage in zip(weights, todo, strict=True)))
    before, folders = 0.0, []
    for stage, weight in zip(todo, weights, strict=True):

        def tell(done: int, _: int, start: float = before, weight: float = weight, label: str = stage.label) -> None:
            if on_progress is not None:
                on_progress(round(start + weight * done), total, label)

        agent = agents.load(stage.spec.agent, stage.spec.domain)
        command = command_for(stage.spec, stage.folder) if command_for is not None else ""
        with _timed(stage.folder):
            folders.append(run_into(stage.folder, stage.spec, agent, workers, tell, command))
        before += weight * stage.episodes
    return folders


@contextmanager
def _timed(run: Path) -> Iterator[None]:
    """Add the time spent inside to that of the run, stopped or not."""
    started = time.perf_counter()
    try:
        yield
    finally:
        seconds = read_seconds(run.parent)
        seconds[run.name] = round(seconds.get(run.name, 0.0) + time.perf_counter() - started, 1)
        make_folder(run.parent)
        (run.parent / SECONDS).write_text(json.dumps(seconds, indent=2) + "\n", "utf-8")


def read_seconds(runs: Path) -> dict[str, float]:
    """How long each of the runs in a folder has taken, over all calls that it took."""
    file = runs / SECONDS
    return json.loads(file.read_text("utf-8")) if file.exists() else {}
