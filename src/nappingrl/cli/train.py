"""For who works on agents and on the package: training and speed."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from tyro.conf import Positional

from nappingrl.cli.console import progress


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
    """Default: the recipe's. Episodes where the recipe counts those."""
    tensorboard: Path | None = None
    """Folder for curves of the training that TensorBoard shows."""

    def __call__(self) -> None:
        """Train, then print the card."""
        from nappingrl.errors import MissingExtraError

        try:
            from nappingrl.agents.training.sb3 import train
        except ModuleNotFoundError as error:
            raise MissingExtraError(f'training needs {error.name}: pip install "nappingrl[sb3]"') from error
        with progress(f"train {self.domain} {self.agent}") as on_progress:
            card = train(
                self.domain, self.agent, self.out, seed=self.seed, total_steps=self.total_steps,
                on_progress=on_progress, tensorboard=self.tensorboard,
            )  # fmt: skip
        print(json.dumps(card, indent=2))


@dataclass(frozen=True)
class Bench:
    """Measure the engine against the loop a user would write, and the learners against SB3's, one core each.

    Example: napping bench --json
    """

    part: str = "all"
    """engine, learners or all."""
    regions: int = 1000
    """About how many regions the agents have while they are measured."""
    json: bool = False
    """Print one JSON object on the last line of standard output."""

    def __call__(self) -> None:
        """Measure, then print."""
        from nappingrl.benchmark.engine import measure
        from nappingrl.benchmark.learners import measure_learners
        from nappingrl.errors import check_name

        check_name("part", self.part, ("all", "engine", "learners"))
        found: dict[str, Any] = {}
        if self.part != "learners":
            with progress("bench of the engine") as on_progress:
                found |= measure(self.regions, on_progress)
        if self.part != "engine":
            with progress("bench of the learners") as on_progress:
                found |= measure_learners(on_progress)
        if self.json:
            print(json.dumps(found))
            return
        table = Table("measure", "value", box=None)
        for name, value in found.items():
            table.add_row(name, f"{value:.2f}" if isinstance(value, float) else str(value))
        Console().print(table)
