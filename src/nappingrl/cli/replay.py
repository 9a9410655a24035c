"""`napping replay`."""

import json
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from nappingrl.trials.runner import readable_rules, replay
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
    rules: int = 10
    """Number of rules to print, most visited first."""
    json: bool = False
    """Print a single machine-readable object."""

    def __call__(self) -> None:
        """Repeat the trial, then print."""
        folder = RunFolder.open(self.run)
        trial = replay(folder, self.trial)
        file = folder.write_principles(trial.id, trial.table)
        rules = readable_rules(folder.manifest.spec["domain"], trial.table)
        returns = trial.rows["return"].to_list()
        if self.json:
            texts = [str(rule) for rule in rules]
            result = {"trial": trial.id, "same": trial.is_same, "returns": returns, "rules": texts, "file": str(file)}
            print(json.dumps(result))
            return
        print(f"trial {trial.id}: {'the same rows as stored' if trial.is_same else 'OTHER ROWS THAN STORED'}")
        print("returns:", " ".join(f"{value:g}" for value in returns))
        for rule in rules[: self.rules]:
            print(f"  {rule}")
        print(f"principles: {file}")
