"""Words that tyro refuses are one line, for every command."""

from dataclasses import fields

import pytest

from cli.results import assert_refused
from command_line import Napping
from nappingrl.cli.argv import COMMANDS, flag, load_command

NUMBERS = {
    (name, flag(field.name)): "a whole number" if "int" in str(field.type) else "a number"
    for name in COMMANDS
    for field in fields(load_command(name))
    if field.type in (int, float, int | None)
}
"""Every option that takes a number, with what is allowed."""
REQUIRED = {
    "birds serve": "--out o", "birds external": "--out o --command x", "birds levels": "o", "paper": "--out o",
    "figure": "overall", "replay": "run 0", "claims": "runs", "export": "run", "convert": "model.zip cartpole new",
}  # fmt: skip


@pytest.mark.parametrize(("name", "option"), NUMBERS)
def test_a_value_that_is_no_number(napping: Napping, name: str, option: str) -> None:
    done = napping(*name.split(), *REQUIRED.get(name, "").split(), option, "1x")
    assert_refused(done, f"{option} is '1x'; allowed: {NUMBERS[name, option]}; see napping {name} --help")


def test_there_are_such_options() -> None:
    assert NUMBERS["run", "--trials"] == NUMBERS["train", "--steps"] == "a whole number"
    assert NUMBERS["birds external", "--timeout"] == "a number"
    assert len(NUMBERS) > 20


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_that_does_not_exist(napping: Napping, name: str) -> None:
    done = napping(*name.split(), *REQUIRED.get(name, "").split(), "--nonsense-option", "3")
    assert_refused(done, "--nonsense-option", f"see napping {name} --help")


@pytest.mark.parametrize(
    ("words", "texts"),
    [
        ("run cartpole --trails 3", ("--trails", "did you mean --trials?")),
        ("run cartpole --trials", ("missing value", "--trials")),
        ("run cartpole --trials " + "9x" * 3000, ("--trials", "see napping run --help")),
        ("birds serve", ("missing", "--out PATH", "see napping birds serve --help")),
        ("paper --domian x", ("--out PATH", "--domian")),
        ("rnu", ("unknown command 'rnu'", "Did you mean 'run'?")),
        ("birds plya", ("unknown command of birds 'plya'", "Did you mean 'play'?")),
        ("--nonsense", ("--nonsense", "allowed: --help, --version")),
        ("--versoin", ("Did you mean '--version'?",)),
        ("birds --nonsense", ("--nonsense", "allowed: --help")),
        ("run --env Foo-v0", ("unknown environment 'Foo-v0'", "registers.\n")),
        ("run --env Cartpol-v7", ("unknown environment", "Did you mean 'CartPole-v1'?")),
    ],
)
def test_other_mistakes(napping: Napping, words: str, texts: tuple[str, ...]) -> None:
    done = napping(*words.split())
    assert_refused(done, *texts)
    assert len(done.err) < 600


@pytest.mark.parametrize("words", ["", "birds", "--help", "run --help"])
def test_help_is_no_mistake(napping: Napping, words: str) -> None:
    done = napping(*words.split())
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("usage: napping")
