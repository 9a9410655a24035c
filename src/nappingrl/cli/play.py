"""`napping play`."""

from dataclasses import dataclass

from tyro.conf import Positional

from nappingrl.cli.domain_or_env import domain_or_env
from nappingrl.errors import BadSpecError, MissingExtraError, check_whole


@dataclass(frozen=True)
class Play:
    """Watch a frozen and an adapting agent side by side in the browser, and change the world under them.

    Prints a link with a random token; only this machine can open it. Ctrl-C ends it.

    Example: napping play mountaincar --method foresight
    """

    domain: Positional[str] = ""
    """One of `napping list`. Default: cartpole."""
    env: str = ""
    """Instead of a domain, the id of a gymnasium environment, such as LunarLander-v3."""
    agent: str = ""
    """Name of a shipped agent, or path of an SB3 .zip. Default: the domain's."""
    method: str = ""
    """Adaptation method, or you: arrow keys. Default: auto where it fits."""
    watch: str = ""
    """Angry Birds: show the agent of a running `napping birds serve` or `external` instead of the frozen one: its
    --observer-port, or HOST:PORT."""
    port: int = 0
    """Port of the server. Default: any free one."""
    no_browser: bool = False
    """Print the link, and open no browser."""

    def __call__(self) -> None:
        """Serve until Ctrl-C."""
        check_whole("--port", self.port, 0, 65535)
        name = domain_or_env(self.domain, self.env, default="angrybirds" if self.watch else "cartpole")
        if self.watch and name != "angrybirds":
            raise BadSpecError(f"--watch shows a server of Angry Birds, not {name}; give angrybirds as the domain")
        try:
            from nappingrl.play.server import Server
        except ModuleNotFoundError as error:
            if error.name is None or error.name.startswith("nappingrl"):
                raise
            raise MissingExtraError(
                f'the playground needs {error.name}, which is not installed: pip install "nappingrl[play]"'
            ) from None
        from nappingrl.play.choices import Choices

        choices = Choices(name, self.agent, self.method, self.watch)
        choices.check()
        Server(choices, self.port).run(opens_browser=not self.no_browser)
