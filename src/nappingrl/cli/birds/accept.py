"""`napping birds accept`."""

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from tyro.conf import Positional

from nappingrl.cli.console import print_table, progress
from nappingrl.domains.angrybirds.acceptance.gates import Gate, judge
from nappingrl.domains.angrybirds.acceptance.measuring import Measured
from nappingrl.domains.angrybirds.acceptance.playing import Policy
from nappingrl.domains.angrybirds.acceptance.results import measure_all
from nappingrl.domains.angrybirds.levels.templates import LEVELS, TEMPLATES
from nappingrl.errors import check_name, check_whole
from nappingrl.scripted.datalab import DataLabPolicy
from nappingrl.trials.limits import MAX_SEED

PHASES = {False: "before", True: "after"}


@dataclass(frozen=True)
class Accept:
    """Test whether Angry Birds levels need a trained agent.

    Each level is played before and after its novelty by a search of at most 400 shots, by every action repeated for all
    birds, by every first shot, at random, and by DataLab. Exit status 1: at least one gate was missed.

    Example: napping birds accept bone --levels 30 --out accepted.jsonl
    """

    templates: Positional[tuple[str, ...]] = ()
    """Names of templates; all seven if none is given."""
    levels: int = 100
    """Levels per template."""
    number: int = 100
    """Number of the first level."""
    out: Path | None = None
    """A file of measured levels, which a later call continues; without it nothing is kept."""
    json: bool = False
    """Print a single machine-readable object."""

    def __call__(self) -> None:
        """Measure, judge, print."""
        templates = [check_name("template", name, TEMPLATES) for name in self.templates] or list(TEMPLATES)
        check_whole("--levels", self.levels, 1, LEVELS)
        check_whole("--number", self.number, 0, MAX_SEED)
        numbers = range(self.number, self.number + self.levels)
        total = 2 * len(templates) * len(numbers)
        measured: list[Measured] = []
        with progress("levels") as update:
            for level in measure_all(templates, numbers, self.out, _datalab):
                measured.append(level)
                update(len(measured), total, f"{level.template} {level.number}")
        judged = {
            (name, phase): judge([one for one in measured if one.template == name and one.is_after == is_after])
            for name in templates
            for is_after, phase in PHASES.items()
        }
        self._print(judged)
        if not all(gate.passed for gates in judged.values() for gate in gates):
            sys.exit(1)

    def _print(self, judged: dict[tuple[str, str], list[Gate]]) -> None:
        if self.json:
            rows = [
                {"template": name, "phase": phase, "gates": [asdict(gate) for gate in gates]}
                for (name, phase), gates in judged.items()
            ]
            print(json.dumps({"levels": self.levels, "number": self.number, "judged": rows}))
            return
        first = next(iter(judged.values()))
        head = ("template", "", *(f"{gate.name} {gate.limit}" for gate in first))
        print_table(head, [(name, phase, *map(_mark, gates)) for (name, phase), gates in judged.items()])


def _datalab(number: int) -> Policy:
    """DataLab, whose random choices differ from level to level."""
    return DataLabPolicy(np.random.default_rng(number)).act


def _mark(gate: Gate) -> str:
    value = f"{gate.value:.2f}" if gate.value <= 1 else f"{gate.value:g}"
    return f"{value} {'' if not gate.limit else 'pass' if gate.passed else 'MISS'}".rstrip()
