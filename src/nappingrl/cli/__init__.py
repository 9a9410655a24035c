"""The command line, `napping`: one module per command, without other logic."""

import os
import signal
import sys

from nappingrl.signals import Stoppable, exit_stopped

BROKEN_PIPE = 141
"""Exit status if standard output is closed, as in `napping list | head`."""


def main(arguments: list[str] | None = None) -> None:
    """Run a command; a user's mistake is one line on standard error and exit status 2."""
    from nappingrl.errors import NappingError

    try:
        try:
            _run(sys.argv[1:] if arguments is None else arguments)
        finally:
            if sys.stdout:
                sys.stdout.flush()
    except NappingError as error:
        print(f"napping: {error}", file=sys.stderr)
        sys.exit(2)
    except ModuleNotFoundError as error:
        from nappingrl.cli.extras import extra_of

        if not (extra := extra_of(error.name or "")):
            raise
        needed = f'{error.name}, which is not installed: pip install "nappingrl[{extra}]"'
        print(f"napping: this command needs {needed}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except (BrokenPipeError, SystemExit) as error:
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):  # rich exits with 1
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still to be flushed
        sys.exit(BROKEN_PIPE)


def _run(words: list[str]) -> None:
    """Run a command; a signal that stops it sets the exit status."""
    from nappingrl.cli.argv import parse

    command = parse(words)
    with Stoppable() as stop:
        try:
            command()
        except BaseException:
            if not stop:
                raise
            exit_stopped(stop)  # whatever the code in between made of the interruption
    if stop.number not in (0, signal.SIGINT):  # Ctrl-C is the regular end of some commands
        exit_stopped(stop)
