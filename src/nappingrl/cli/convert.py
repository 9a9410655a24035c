"""`napping convert`."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

from tyro.conf import Positional

from nappingrl.cli import argv
from nappingrl.cli.run import read_pairs
from nappingrl.cli.train import summarise
from nappingrl.domains import find_domain
from nappingrl.errors import BadSpecError, MissingExtraError, check_name
from nappingrl.registry import domains
from nappingrl.trials.store import make_folder


@dataclass(frozen=True)
class Convert:
    """Convert a zip of SB3's DQN or PPO to an agent as this package ships them.

    Writes the weights (.npz) and a card with the source, the licence, hashes, the hyperparameters and the mean return
    before a novelty. The agent then loads without torch. Pickles in the zip are never loaded.

    Example: napping convert ppo-CartPole-v1.zip cartpole zoo-ppo --source 'RL Zoo' --licence LICENSE --out agents
    """

    file: Positional[Path]
    """The zip that SB3's model.save() wrote."""
    domain: Positional[str]
    """Domain of the agent."""
    name: Positional[str]
    """Name of the agent there: letters, digits and dashes."""
    source: str
    """Where the zip comes from."""
    licence: Path
    """File with the text of its licence."""
    about: str = ""
    """Sentence about the agent. Default: the algorithm and the source."""
    option: tuple[str, ...] = ()
    """Hyperparameters that cannot be read from the zip, as NAME=VALUE, such as learning_rate=lin_0.001."""
    out: Path = Path("zoo")
    """Folder for the agent."""
    json: bool = False
    """Print the card as a single machine-readable object."""

    def __call__(self) -> None:
        """Convert, then print what became of it."""
        check_name("domain", self.domain, domains.names())
        if not self.name.replace("-", "").isalnum() or not self.name.isascii():
            raise BadSpecError(f"name '{self.name}'; allowed: letters, digits and dashes")
        try:
            from nappingrl.agents.training.conversion import Origin, convert, read_licence
        except ModuleNotFoundError as error:
            raise MissingExtraError(f'a conversion needs {error.name}: pip install "nappingrl[sb3]"') from error
        command = argv.rebuild(replace(self, json=False))
        origin = Origin(self.about or f"From {self.source}.", self.source, read_licence(self.licence), command)
        make_folder(self.out)
        card = convert(
            self.file, find_domain(self.domain), domains.entry(self.domain).env_id, self.name, origin,
            read_pairs(self.option), self.out,
        )  # fmt: skip
        print(json.dumps(card) if self.json else summarise(card, self.out))
