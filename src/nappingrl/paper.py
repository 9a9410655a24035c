"""The paper's whole evaluation: every agent and method in every domain that is there, as runs below one folder."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from nappingrl.agents import load, zoo_names
from nappingrl.registry import check_name
from nappingrl.trials.launch import run_into
from nappingrl.trials.spec import RunSpec, phases
from nappingrl.trials.store import RunFolder

METHODS = (
    "frozen",
    "online",
    "finetune",
    "napping",
    "controller",
    "replay-success",
    "napping-wiped",
    "random",
    "oracle",
)
"""The paper's four, the controls, and the ceiling."""

TRIALS: Mapping[str, Mapping[str, int]] = {
    "quick": {"cartpole": 128, "mountaincar": 96, "crossroad": 14},
    "full": {"cartpole": 5000, "mountaincar": 2000, "crossroad": 100},
}
"""Trials per agent and method (per novelty in CrossRoad); "full" is what the paper ran."""

_COST = {"online": 60.0, "finetune": 40.0, "napping": 3.0, "napping-wiped": 2.0, "oracle": 3.0}
"""About how long an episode takes, frozen = 1: only for the estimate of the time left."""

OnProgress = Callable[[int, int, str], None]
"""Called with (work done, work in all, what is running)."""


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
    def label(self) -> str:
        """What is running, in words."""
        return f"{self.spec.domain} {self.spec.agent} {self.spec.method}"

    @property
    def command(self) -> str:
        """The same run by itself."""
        spec = self.spec
        options = {"agent": spec.agent, "method": spec.method, "novelty": spec.novelty, "trials": spec.trials,
                   "seed": spec.seed, "out": self.folder}  # fmt: skip
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        return shlex.join(["napping", "run", spec.domain, *words])


def stages(out: Path, scale: str = "quick", seed: int = 0) -> list[Stage]:
    """All runs, the cheap ones of each domain first, so that a stopped evaluation has something to show."""
    found = []
    for domain, trials in TRIALS[check_name("scale", scale, TRIALS)].items():
        for method in sorted(METHODS, key=lambda name: _COST.get(name, 1.0)):
            for agent in zoo_names(domain):
                spec = RunSpec(domain, agent, method, "all" if domain == "crossroad" else "", trials, seed).complete()
                found.append(Stage(spec, out / "runs" / f"{domain}-{agent}-{method}"))
    return found


def run_stages(todo: list[Stage], workers: int, on_progress: OnProgress | None = None) -> list[RunFolder]:
    """Run or continue every stage; finished ones cost nothing."""
    weights = [_COST.get(stage.spec.method, 1.0) for stage in todo]
    total = round(sum(weight * stage.episodes for weight, stage in zip(weights, todo, strict=True)))
    before, folders = 0.0, []
    for stage, weight in zip(todo, weights, strict=True):

        def tell(done: int, _: int, start: float = before, weight: float = weight, label: str = stage.label) -> None:
            if on_progress is not None:
                on_progress(round(start + weight * done), total, label)

        agent = load(stage.spec.agent, stage.spec.domain)
        folders.append(run_into(stage.folder, stage.spec, agent, workers, tell, stage.command))
        before += weight * stage.episodes
    return folders
