"""`napping train`."""

import json
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from nappingrl.cli import argv
from nappingrl.cli.console import print_note, progress
from nappingrl.errors import MissingExtraError


@dataclass(frozen=True)
class Train:
    """Train a zoo agent from its committed recipe.

    Writes the weights and a card that describes them.

    Example: napping train cartpole ppo --out zoo
    """

    domain: Positional[str]
    """Domain to train in."""
    agent: Positional[str]
    """Name of a recipe, such as ppo or dqn."""
    out: Path = Path("zoo")
    """Folder for the weights (.npz) and the card (.json)."""
    seed: int | None = None
    """Random seed. Default: the recipe's."""
    total_steps: int | None = None
    """Training steps, or episodes if the recipe counts those. Default: the recipe's."""
    tensorboard: Path | None = None
    """Folder for training curves in TensorBoard's format."""

    def __call__(self) -> None:
        """Train, then print the card."""
        try:
            from nappingrl.agents.training.sb3 import train
        except ModuleNotFoundError as error:
            raise MissingExtraError(f'training needs {error.name}: pip install "nappingrl[sb3]"') from error
        try:
            with progress(f"train {self.domain} {self.agent}") as on_progress:
                card = train(
                    self.domain, self.agent, self.out, seed=self.seed, total_steps=self.total_steps,
                    on_progress=on_progress, tensorboard=self.tensorboard,
                )  # fmt: skip
        except KeyboardInterrupt:
            print_note(f"stopped; an unfinished agent is not written. Start again with: {argv.rebuild(self)}")
            raise
        print(json.dumps(card, indent=2))
