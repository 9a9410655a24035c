"""`napping record`."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tyro.conf import Positional

from nappingrl.cli.domain_or_env import domain_or_env
from nappingrl.errors import BadSpecError, MissingExtraError, check_whole
from nappingrl.play.choices import Choices
from nappingrl.play.match import Match, MatchSpec, default_method
from nappingrl.trials.limits import MAX_SEED

MAX_SECONDS = 60.0


@dataclass(frozen=True)
class Record:
    """Film a frozen and an adapting agent side by side while the world changes.

    The same as in the playground, without a browser.

    Example: napping record cartpole --novelty "action-remap=1,0" --seconds 3 --out runs/cartpole.gif
    """

    domain: Positional[str] = ""
    """One of `napping list`. Default: cartpole."""
    out: Path = Path("match.gif")
    """File to write: .gif, or .mp4 if ffmpeg is installed."""
    env: str = ""
    """Instead of a domain, the id of a gymnasium environment, such as LunarLander-v3."""
    agent: str = ""
    """Name of a shipped agent, or path of an SB3 .zip. Default: the domain's."""
    method: str = ""
    """Adaptation method. Default: auto where it fits."""
    novelty: str = ""
    """Name or description of what changes, such as "gravity=50". Default: the domain's."""
    seed: int = 0
    """Random seed; every draw derives from it."""
    seconds: float = 10.0
    """Length of the film."""
    change_at: float = 1.5
    """Second at which the world changes."""
    speed: float = 0.5
    """Pace of the world: 1 is its own."""
    width: int = 720
    """Width of the picture in pixels."""

    def __call__(self) -> None:
        """Film, then print the file."""
        name = domain_or_env(self.domain, self.env, default="cartpole")
        self._check()
        try:
            from nappingrl.domains.angrybirds.play.record import check_film
            from nappingrl.play.film import record
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                f'films need {error.name}, which is not installed: pip install "nappingrl[play]"'
            ) from None
        check_film(self.out)
        choices = Choices(name, self.agent, self.method)
        world, agent = choices.check(self.novelty)
        changes = world.draw(self.novelty, np.random.default_rng(self.seed))
        spec = MatchSpec(choices.domain, self.agent, self.method or default_method(world, agent), self.seed)
        match = Match(spec, world, agent)
        length = record(match, self.out, changes, self.seconds, self.change_at, self.speed, self.width)
        print(f"film: {self.out} ({length:.0f} s, {self.out.stat().st_size / 1e6:.1f} MB)")

    def _check(self) -> None:
        check_whole("--seed", self.seed, 0, MAX_SEED)
        check_whole("--width", self.width, 200, 1920)
        for name, value, low, high in (
            ("--seconds", self.seconds, 0.1, MAX_SECONDS),
            ("--change-at", self.change_at, 0.0, MAX_SECONDS),
            ("--speed", self.speed, 0.01, 100.0),
        ):
            if not low <= value <= high:
                raise BadSpecError(f"{name} {value:g} is outside its range, {low:g} to {high:g}")
