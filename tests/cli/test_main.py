"""Help, dispatch, and what is imported when."""

import subprocess
import sys

import pytest

from command_line import Napping
from nappingrl.cli.argv import COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example(napping: Napping, command: str) -> None:
    done = napping(*command.split(), "--help")
    assert (done.status, done.err) == (0, "")
    assert f"Example: napping {command}" in " ".join(done.out.split())


def test_help_names_the_commands(napping: Napping) -> None:
    done = napping("--help")
    assert (done.status, done.err) == (0, "")
    assert all(command.split()[0] in done.out for command in COMMANDS)


@pytest.mark.parametrize("words", [("birds",), ("birds", "--help")])
def test_birds_names_its_commands(napping: Napping, words: tuple[str, ...]) -> None:
    done = napping(*words)
    assert (done.status, done.err) == (0, "")
    assert "Example: napping birds play" in done.out
    assert all(command.split()[1] in done.out for command in COMMANDS if command.startswith("birds "))


def test_an_unknown_command_is_refused(napping: Napping) -> None:
    done = napping("rnu")
    assert done.status == 2
    assert "rnu" in done.err


def test_help_imports_no_command() -> None:
    code = (
        "import contextlib, sys\n"
        "from nappingrl.cli import main\n"
        "with contextlib.suppress(SystemExit): main(['--help'])\n"
        "heavy = {'numba', 'polars', 'torch', 'matplotlib'} | {f'nappingrl.cli.{name}' for name in ('run', 'birds')}\n"
        "assert heavy.isdisjoint(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
