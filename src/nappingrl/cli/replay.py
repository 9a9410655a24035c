"""`napping replay`."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from nappingrl.cli.console import print_note
from nappingrl.errors import check_whole
from nappingrl.explain import ReadableRule, explained
from nappingrl.trials.limits import MAX_COUNT
from nappingrl.trials.runner import Replayed, readable_rules, replay
from nappingrl.trials.store import RunFolder


@dataclass(frozen=True)
class Replay:
    """Repeat one trial of a run, check its rows and print its principles as rules.

    The principles are also stored in the folder of the run, where `napping report` finds them.

    Example: napping replay runs/cartpole-ppo-napping-1 17
    """

    run: Positional[Path]
    """Folder of the run."""
    trial: Positional[str]
    """Number or id of the trial."""
    env: tuple[str, ...] = ()
    """Environments module:id that may be imported to repeat a trial; what a run's files say is not enough."""
    rules: int = 10
    """Number of rules to print, most visited first."""
    json: bool = False
    """Print a single machine-readable object."""

    def __call__(self) -> None:
        """Repeat the trial, then print."""
        check_whole("--rules", self.rules, 0, MAX_COUNT)
        folder = RunFolder.open(self.run)
        trial = replay(folder, self.trial, self.env)
        file = folder.write_principles(trial.id, trial.table)
        rules = readable_rules(folder.manifest.spec["domain"], trial.table)
        returns = trial.rows["return"].to_list()
        if self.json:
            texts = [str(rule) for rule in rules]
            result = {"trial": trial.id, "same": trial.is_same, "returns": returns, "rules": texts, "file": str(file)}
            print(json.dumps(result))
        else:
            self._print(trial, returns, rules, file)
        if not trial.is_same:
            print_note(f"trial {trial.id} gave other rows than {folder.path} has; was it run with another version?")
            sys.exit(1)

    def _print(self, trial: Replayed, returns: list[float], rules: list[ReadableRule], file: Path) -> None:
        print(f"trial {trial.id}: {'the same rows as stored' if trial.is_same else 'OTHER ROWS THAN STORED'}")
        print("returns:", " ".join(f"{value:g}" for value in returns))
        if trial.description:
            print(f"  everywhere: {trial.description}")
        shown = [] if trial.description else rules[: self.rules]
        for rule in shown:
            print(f"  {rule}")
        if shown:
            print(f"these rules describe {explained(shown):.0%} of what the principles do, by visits")
        print(f"principles: {file}")
