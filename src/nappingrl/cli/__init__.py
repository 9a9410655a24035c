"""`napping list | run | report | figure | replay | paper | claims | export | train | bench | birds`.

The commands are in `nappingrl.commands`.
"""

import sys
from typing import Annotated, Protocol

import tyro
from tyro.conf import subcommand

import nappingrl
from nappingrl.cli.birds.serve import Birds
from nappingrl.cli.figure import Figure
from nappingrl.cli.paper import Claims, Export, Paper
from nappingrl.cli.report import Report
from nappingrl.cli.run import List, Replay, Run
from nappingrl.cli.train import Bench, Train
from nappingrl.errors import NappingError


class Command(Protocol):
    """A sub-command: a record of its options that can be called."""

    def __call__(self) -> None:
        """Do it."""
        ...


def main(arguments: list[str] | None = None) -> None:
    """Entry point: user mistakes are one line and exit status 2."""
    commands = (
        Annotated[List, subcommand("list")]
        | Annotated[Run, subcommand("run")]
        | Annotated[Report, subcommand("report")]
        | Annotated[Figure, subcommand("figure")]
        | Annotated[Replay, subcommand("replay")]
        | Annotated[Paper, subcommand("paper")]
        | Annotated[Claims, subcommand("claims")]
        | Annotated[Export, subcommand("export")]
        | Annotated[Train, subcommand("train")]
        | Annotated[Bench, subcommand("bench")]
        | Birds
    )
    if (arguments := sys.argv[1:] if arguments is None else arguments) == ["birds"]:
        arguments = ["birds", "--help"]
    command: Command = tyro.cli(commands, prog="napping", description=nappingrl.__doc__, args=arguments)
    try:
        command()
    except NappingError as error:
        print(f"napping: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
