"""Help, dispatch, and what is imported when."""

import re
import subprocess
import sys
from dataclasses import MISSING, fields

import pytest

import nappingrl
from cli.results import assert_refused, last_json
from command_line import Napping
from nappingrl.cli.argv import COMMANDS, load_command
from nappingrl.cli.commands import GROUPS
from nappingrl.cli.help import describe

AFFECTED = ("nappingrl.cli.birds", "nappingrl.domains.angrybirds.pictures", "nappingrl.domains.angrybirds.play",
            "nappingrl.play.server")  # fmt: skip
"""Modules that must be imported anew to miss a package."""


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


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_every_option_once_and_no_empty_default(napping: Napping, command: str) -> None:
    done = napping(*command.split(), "--help")
    shown = re.findall(r"^  (?:--([\w-]+)|([A-Z]+)\b)", done.out, re.MULTILINE)
    names = [field.name for field in fields(load_command(command))]
    assert sorted((option.replace("-", "_") or argument.lower()) for option, argument in shown) == sorted(names)
    assert "STR" not in done.out
    assert "default: )" not in done.out
    assert "--no-no" not in done.out
    lines = [line for line in done.out.splitlines() if not line.startswith("Example:")]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_the_defaults_of_the_command(command: str) -> None:
    """Help is read from the source; here it is compared with the class itself."""
    described = {one.name: one for one in describe(command).parameters}
    for field in fields(load_command(command)):
        one = described[field.name]
        assert one.is_required == (field.default is MISSING)
        assert one.about
        value = "" if field.default in (None, "", ()) or field.default is False else str(field.default)
        assert one.default == ("" if one.is_required else value)


def test_options_are_grouped(napping: Napping) -> None:
    out = napping("run", "--help").out
    titles = ["arguments:", "where and who:", "what changes:", "adaptation:", "the run:", "machines:"]
    places = [out.index(f"\n{title}\n") for title in titles]
    assert places == sorted(places)


def test_version(napping: Napping) -> None:
    assert napping("--version") == (0, f"nappingrl {nappingrl.__version__}\n", "")


def test_every_command_is_in_a_group_of_the_help() -> None:
    assert {name.split()[0] for name in COMMANDS} == {name for names in GROUPS.values() for name in names}


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("PIL", ("birds", "play", "--headless", "--agent", "naive")),
        ("PIL", ("birds", "levels", "x.png")),
        ("nicegui", ("play",)),
    ],
)
def test_a_missing_extra_is_one_line(
    module: str, words: tuple[str, ...], napping: Napping, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == module or name.startswith(AFFECTED)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    done = napping(*words)
    assert_refused(done, module, "not installed", 'pip install "nappingrl[')


def test_a_module_that_no_extra_brings_is_a_fault_of_ours(napping: Napping, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "nappingrl.cli.export", raising=False)
    monkeypatch.setitem(sys.modules, "nappingrl.report.export", None)
    with pytest.raises(ModuleNotFoundError):
        napping("export", "run", "--out", "x")


def test_doctor(napping: Napping) -> None:
    found = last_json(napping("doctor", "--json"))
    assert found["version"] == nappingrl.__version__
    assert found["is_good"]
    assert set(found["extras"]) >= {"sb3", "report", "birds", "play"}
    assert all(found["packages"].values())


def test_help_imports_no_command() -> None:
    code = (
        "import contextlib, sys\n"
        "from nappingrl.cli import main\n"
        "for words in (['--help'], ['run', '--help'], ['--version']):\n"
        "    with contextlib.suppress(SystemExit): main(words)\n"
        "heavy = {'numba', 'polars', 'torch', 'matplotlib', 'tyro', 'rich', 'nappingrl.cli.run'}\n"
        "assert heavy.isdisjoint(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
