"""`napping bench`."""

import json
from dataclasses import dataclass
from typing import Any

from nappingrl.benchmark.engine import measure
from nappingrl.benchmark.learners import measure_learners
from nappingrl.cli.console import print_table, progress
from nappingrl.errors import check_name, check_whole
from nappingrl.trials.limits import MAX_COUNT


@dataclass(frozen=True)
class Bench:
    """Measure the speed of the engine and the learners.

    The engine is compared with the loop that a user would write, the learners with SB3's; both on one core.

    Example: napping bench --json
    """

    part: str = "all"
    """What to measure: engine, learners or all."""
    regions: int = 1000
    """Approximate number of regions per agent during the measurement."""
    json: bool = False
    """Print a single machine-readable object."""

    def __call__(self) -> None:
        """Measure, then print."""
        check_name("part", self.part, ("all", "engine", "learners"))
        check_whole("--regions", self.regions, 1, MAX_COUNT)
        measured: dict[str, Any] = {}
        if self.part != "learners":
            with progress("engine") as on_progress:
                measured |= measure(self.regions, on_progress)
        if self.part != "engine":
            with progress("learners") as on_progress:
                measured |= measure_learners(on_progress)
        if self.json:
            print(json.dumps(measured))
            return
        rows: list[tuple[str, ...]] = [
            (name, f"{value:.2f}" if isinstance(value, float) else str(value)) for name, value in measured.items()
        ]
        print_table(("measure", "value"), rows)
