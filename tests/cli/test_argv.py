"""A command as words and back: whatever the program prints or stores as a command parses to the same command."""

import html
import re
import shlex
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tyro.conf import Positional

import nappingrl
from command_line import Napping
from nappingrl.agents.zoo import card, zoo_names
from nappingrl.cli.argv import COMMANDS, load_command, parse, rebuild
from nappingrl.cli.run import Run, command_for
from nappingrl.registry import domains
from nappingrl.trials.spec import RunSpec
from nappingrl.trials.store import RunFolder

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
PATHS = TEXTS.map(Path).filter(lambda path: str(path) != "None")
"""tyro reads None as the absence of an optional path; ./None is the file."""
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXTS,
    int: st.integers(),
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
    Path: PATHS,
    tuple[str, ...]: st.lists(TEXTS.filter(lambda text: not text.startswith("-"))).map(tuple),
    tuple[Path, ...]: st.lists(PATHS).map(tuple),
    Path | None: st.none() | PATHS,
    int | None: st.none() | st.integers(),
}


@st.composite
def options(draw: st.DrawFn, name: str) -> Any:
    """A command with some of its options given."""
    command_class = load_command(name)
    hints = get_type_hints(command_class, include_extras=True)
    chosen = {}
    for field in fields(command_class):
        hint = get_args(hints[field.name])[0] if _is_positional(hints[field.name]) else hints[field.name]
        if field.default is MISSING or draw(st.booleans()):
            chosen[field.name] = draw(VALUES[hint])
    return command_class(**chosen)


def _is_positional(hint: Any) -> bool:
    return get_args(hint)[1:] == get_args(Positional[str])[1:]


def words_of(line: str) -> list[str]:
    program, *words = shlex.split(line)
    assert program == "napping"
    return words


@pytest.mark.parametrize("name", COMMANDS)
@given(data=st.data())
def test_the_words_of_a_command_parse_to_it(name: str, data: st.DataObject) -> None:
    command = data.draw(options(name))
    assert parse(words_of(rebuild(command))) == command


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (Run("cartpole"), "cartpole"),
        (Run("cartpole", guard=True), "cartpole --guard"),
        (Run("cartpole", guard=False, agent=""), "cartpole"),
        (Run("cartpole", option=("choice=random", "layer=1")), "cartpole --option choice=random layer=1"),
        (Run(env="Acrobot-v1", novelty="a=1; b=2"), "--env Acrobot-v1 --novelty 'a=1; b=2'"),
        (Run("cartpole", agent="-odd.zip"), "cartpole --agent=-odd.zip"),
    ],
)
def test_words_are_those_a_person_would_write(command: Run, words: str) -> None:
    assert rebuild(command) == f"napping run {words}"


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_of_the_help_parse(name: str) -> None:
    examples = re.findall(r"^ *Example: (napping .*)$", load_command(name).__doc__ or "", re.MULTILINE)
    assert examples
    for example in examples:
        assert isinstance(parse(words_of(example)), load_command(name))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_has_the_first_line_of_their_help(name: str) -> None:
    assert (load_command(name).__doc__ or "").splitlines()[0] == COMMANDS[name]


@pytest.mark.parametrize("domain", domains.names())
def test_a_spec_as_a_command_asks_for_the_same_run(domain: str) -> None:
    spec = RunSpec(domain=domain, method="napping", trials=3, guard=True, options={"choice": "preference"}).complete()
    command = parse(words_of(command_for(spec, Path("out"))))
    assert isinstance(command, Run)
    assert command.spec().complete() == spec


def test_cards_of_the_zoo_hold_commands_that_parse() -> None:
    for domain in domains.names():
        for agent in zoo_names(domain):
            words = words_of(card(domain, agent)["command"])
            assert words[:3] == ["train", domain, agent] or (words[0], *words[2:4]) == ("convert", domain, agent)
            parse(words)


def test_commands_that_a_run_prints_and_stores_parse(napping: Napping) -> None:
    short = ("--trials", "1", "--protocol", "1+1", "--workers", "1", "--guard")
    done = napping("run", "cartpole", *short, "--out", "a folder")
    assert done.status == 0
    stored = RunFolder.open(Path("a folder")).manifest.command
    assert parse(words_of(stored)) == Run("cartpole", trials=1, protocol="1+1", guard=True, out=Path("a folder")), (
        "workers and output do not define a run"
    )
    following = re.search(r"next: (napping .*)", done.out)
    assert following is not None
    assert napping(*words_of(following[1])).status == 0
    shown = re.search(r"<pre><code>(napping .*?)</code></pre>", Path("a folder/report.html").read_text(), re.DOTALL)
    assert shown is not None
    lines = html.unescape(shown[1]).splitlines()
    assert [line.split()[1] for line in lines] == ["run", "report"]
    assert all(parse(words_of(line)) for line in lines)


def test_a_run_from_python_gets_a_command_that_repeats_it(napping: Napping) -> None:
    nappingrl.run("cartpole", "ppo", "napping", trials=1, protocol="1+1", guard=True, out="r")
    assert napping("report", "r", "--trial", "none").status == 0
    shown = re.search(r"<pre><code>(napping run .*?)\n", Path("r/report.html").read_text())
    assert shown is not None
    assert napping(*words_of(html.unescape(shown[1]))).status == 0, "the same run, which is finished"
