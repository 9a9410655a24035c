"""The command line, `napping`: one module per command, and no logic of its own."""

import sys

from nappingrl.cli.argv import parse
from nappingrl.errors import NappingError


def main(arguments: list[str] | None = None) -> None:
    """Run a command; a user's mistake is one line on standard error and exit status 2."""
    try:
        parse(sys.argv[1:] if arguments is None else arguments)()
    except NappingError as error:
        print(f"napping: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
