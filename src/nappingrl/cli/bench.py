"""`napping bench`."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nappingrl.benchmark.before_after import compare_commits
from nappingrl.benchmark.engine import measure
from nappingrl.benchmark.history import append_to_history
from nappingrl.benchmark.learners import measure_learners
from nappingrl.benchmark.overview import measure_overview
from nappingrl.cli.console import print_table, progress
from nappingrl.errors import check_name, check_whole
from nappingrl.registry import domains, methods
from nappingrl.trials.limits import MAX_COUNT

PARTS = ("overview", "engine", "learners")
_OVERVIEW = {
    "us per step": "step_us", "steps per second": "steps_per_second", "x user's loop": "times_loop",
    "x forward pass": "times_forward", "memory (MB)": "memory_mb",
}  # fmt: skip


@dataclass(frozen=True)
class Bench:
    """Measure the speed of every domain and method, of the engine and of the learners.

    The engine is compared with the loop that a user would write, the learners with SB3's; all on one core.

    Example: napping bench --part overview
    Example: napping bench --before HEAD~10
    """

    part: str = "all"
    """What to measure: overview (every domain with every method), engine, learners or all."""
    regions: int = 1000
    """Approximate number of regions per agent while the engine is measured."""
    domains: tuple[str, ...] = ()
    """Domains of the overview. Default: all."""
    methods: tuple[str, ...] = ()
    """Methods of the overview. Default: all."""
    before: str = ""
    """Instead: compare the last commit with this one, in a checkout of nappingrl."""
    rounds: int = 5
    """With --before: alternating repeats."""
    trials: int = 256
    """With --before: trials of NAPPING; foresight has an eighth, the frozen agent twice as many."""
    history: Path | None = None
    """Add a line with the results, the machine and the commit to this file."""
    json: bool = False
    """Print a single machine-readable object."""

    def __call__(self) -> None:
        """Measure, then print."""
        check_name("part", self.part, ("all", *PARTS))
        for name, value in (("--regions", self.regions), ("--rounds", self.rounds), ("--trials", self.trials)):
            check_whole(name, value, 1, MAX_COUNT)
        measured = self._compare() if self.before else self._measure()
        if self.history is not None:
            append_to_history(self.history, measured)
        if self.json:
            print(json.dumps(measured))
        else:
            _print(measured)

    def _measure(self) -> dict[str, Any]:
        for name in self.domains:
            check_name("domain", name, domains)
        for name in self.methods:
            check_name("method", name, methods)
        measured: dict[str, Any] = {}
        if self.part in ("all", "overview"):
            with progress("overview") as on_progress:
                measured["overview"] = list(map(asdict, measure_overview(self.domains, self.methods, on_progress)))
        if self.part in ("all", "engine"):
            with progress("engine") as on_progress:
                measured |= measure(self.regions, on_progress)
        if self.part in ("all", "learners"):
            with progress("learners") as on_progress:
                measured |= measure_learners(on_progress)
        return measured

    def _compare(self) -> dict[str, Any]:
        with progress("commits") as on_progress:
            compared = compare_commits(self.before, "HEAD", self.trials, self.rounds, on_progress)
        return {"before": self.before, "comparisons": list(map(asdict, compared))}


def _print(measured: dict[str, Any]) -> None:
    if cases := measured.pop("overview", None):
        rows = [
            (case["domain"], case["agent"], case["method"], "yes" if case["is_compiled"] else "no",
             *(_show(case[field]) for field in _OVERVIEW.values()))
            for case in cases if not case["refused"]
        ]  # fmt: skip
        print_table(("domain", "agent", "method", "kernel", *_OVERVIEW), rows)
        for case in cases:
            if case["refused"]:
                print(f"{case['domain']} {case['method']}: {case['refused']}")
    if compared := measured.pop("comparisons", None):
        head = ("domain", "agent", "method", "trials", "before", "now", "ratio", "same_rows")
        print_table(head, [tuple(_show(c[name]) for name in head) for c in compared])
    if measured:
        print_table(("measure", "value"), [(name, _show(value)) for name, value in measured.items()])


def _show(value: Any) -> str:
    """A number with three digits; "-" where there is none."""
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if not isinstance(value, float):
        return "-" if value is None else str(value)
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
