"""`napping train`."""

import json
from contextlib import closing
from dataclasses import dataclass, replace
from importlib.util import find_spec as find_module
from pathlib import Path
from typing import Any, ClassVar

from tyro.conf import Positional

from nappingrl.agents.zoo import recipes
from nappingrl.cli import argv
from nappingrl.cli.console import print_note, progress
from nappingrl.cli.run import read_pairs
from nappingrl.domains import find_domain
from nappingrl.env_wrappers import SEPARATOR
from nappingrl.errors import BadSpecError, MissingExtraError
from nappingrl.novelties.subject import find_spec, make_plain, time_limit
from nappingrl.trials.store import make_folder
from nappingrl.types import OnProgress


@dataclass(frozen=True)
class Train:
    """Train an agent in any gymnasium environment, or a shipped one from its recipe.

    Writes the agent and a card that describes it. The same command resumes an interrupted training.

    Example: napping train --env LunarLander-v3 --algorithm ppo --steps 1000000 --seed 0 --out lander.zip
    Example: napping train cartpole ppo --out zoo
    """

    domain: Positional[str] = ""
    """Domain of a shipped agent."""
    agent: Positional[str] = ""
    """Name of a recipe of that domain, such as ppo or dqn."""
    env: str = ""
    """Instead of a domain: id of any gymnasium environment, or module:id if that module registers it."""
    wrap: tuple[str, ...] = ()
    """Wrappers around --env, such as flatten; see `napping list`."""
    algorithm: str = "ppo"
    """With --env: ppo, dqn, qrdqn or sac."""
    steps: int | None = None
    """Training steps, or episodes if a recipe counts those. Default: the tuned number or the recipe's, else 100000."""
    seed: int | None = None
    """Random seed. Default: the recipe's, or 0."""
    option: tuple[str, ...] = ()
    """With --env: hyperparameters as NAME=VALUE, such as learning_rate=lin_0.001, net_arch=64,64 or normalise=true."""
    domain_option: tuple[str, ...] = ()
    """With a domain: options of the domain as NAME=VALUE; see `napping list`. Default: the recipe's."""
    out: Path = Path("zoo")
    """With --env: the agent's file (.zip), or a folder for it; the card is beside it. With a domain: folder."""
    tensorboard: Path | None = None
    """Folder for training curves in TensorBoard's format."""
    json: bool = False
    """Print the card as a single machine-readable object."""

    groups: ClassVar = {
        "any environment": ("env", "wrap", "algorithm", "option"),
        "shipped agents": ("domain_option",),
        "both": ("steps", "seed", "out", "tensorboard", "json"),
    }

    def __call__(self) -> None:
        """Train, then print what became of it."""
        if bool(self.domain) == bool(self.env) or bool(self.domain) != bool(self.agent):
            raise BadSpecError(
                "give either DOMAIN and AGENT (a recipe of a shipped agent), or --env with the id of an environment; "
                "example: napping train --env CartPole-v1 --algorithm ppo"
            )
        try:
            import nappingrl.agents.training.learning  # noqa: F401
        except ModuleNotFoundError as error:
            raise MissingExtraError(f'training needs {error.name}: pip install "nappingrl[sb3]"') from error
        if self.tensorboard and not find_module("tensorboard"):
            raise MissingExtraError('--tensorboard needs tensorboard: pip install "nappingrl[tensorboard]"')
        try:
            with progress(f"train {self.domain or self.env} {self.agent or self.algorithm}") as on_progress:
                card = self._train_env(on_progress) if self.env else self._train_shipped(on_progress)
        except KeyboardInterrupt:
            advice = "Continue" if self.env else "An unfinished agent is not written. Start again"
            print_note(f"stopped. {advice} with: {argv.rebuild(self)}")
            raise
        print(json.dumps(card) if self.json else summarise(card, self.file if self.env else self.out))

    @property
    def env_name(self) -> str:
        """The environment with its wrappers."""
        return SEPARATOR.join([self.env, *self.wrap])

    @property
    def file(self) -> Path:
        """The agent's file, with --env."""
        if self.out.suffix == ".zip":
            return self.out
        is_folder = self.out.is_dir() or self.out == Path("zoo")
        name = f"{self.env_name.replace('/', '-').replace(':', '-')}-{self.algorithm}"
        return self.out / f"{name}.zip" if is_folder else self.out.with_name(f"{self.out.name}.zip")

    def _train_env(self, on_progress: OnProgress) -> dict[str, Any]:
        from nappingrl.agents.training.env import train_env
        from nappingrl.agents.training.recipes import make_recipe

        if self.domain_option:
            raise BadSpecError("--domain-option needs DOMAIN and AGENT; an environment has no such options")
        spec = find_spec(self.env_name)
        with closing(make_plain(spec)) as env:
            spaces, has_limit = (env.observation_space, env.action_space), time_limit(spec, env) > 0
        if not has_limit:
            raise BadSpecError(
                f"{self.env} has no time limit, so an episode may never end; register it with max_episode_steps=..."
            )
        recipe = make_recipe(self.env_name, spaces, self.algorithm, self.steps, self.seed or 0, read_pairs(self.option))
        command = argv.rebuild(replace(self, json=False, tensorboard=None))
        return train_env(recipe, self.file, command, on_progress, tensorboard=self.tensorboard)

    def _train_shipped(self, on_progress: OnProgress) -> dict[str, Any]:
        from nappingrl.agents.training.recipes import check_limits
        from nappingrl.agents.training.sb3 import train

        if self.option or self.wrap or self.algorithm != "ppo":
            raise BadSpecError("--option, --wrap and --algorithm need --env; the recipe of a shipped agent is fixed")
        if self.out.suffix == ".zip":
            raise BadSpecError(f"--out is '{self.out}'; shipped agents need a folder: they are an .npz and a card")
        check_limits(self.steps, self.seed)  # before a folder is made
        options = find_domain(self.domain, read_pairs(self.domain_option)).chosen if self.domain_option else {}
        if f"{self.domain}-{self.agent}" in recipes():
            make_folder(self.out)
        return train(
            self.domain, self.agent, self.out, seed=self.seed, total_steps=self.steps,
            on_progress=on_progress, tensorboard=self.tensorboard, domain_options=options,
        )  # fmt: skip


def summarise(card: dict[str, Any], where: Path) -> str:
    """What became of a training, in two lines."""
    if "pass_rate" in card:
        result = f"pass rates {card['pass_rate']}"
    else:
        returns = card["pre_novelty_return"]
        low, high = returns["interval"]
        result = (
            f"mean return {returns['mean']:g} (95 % interval {low:g} to {high:g}) over {returns['episodes']} episodes"
        )
    lines = [f"{card['domain']} {card['algorithm']}: {result}", f"agent: {where}"]
    if card.get("loads"):
        env, *wrappers = card["domain"].split(SEPARATOR)
        options = ("--wrap", *wrappers) if wrappers else ()
        lines.append(f"next: {argv.line('run', '--env', env, *options, '--agent', where)}")
    elif "loads" in card:
        lines.append("next: load it with SB3 and pass the model to NappingAgent; it is no plain perceptron")
    return "\n".join(lines)
