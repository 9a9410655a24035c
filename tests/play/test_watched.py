"""Watching an agent that plays through a server of Angry Birds."""

import socket
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from domains.angrybirds.server.toy_world import ToyWorld, toy_level
from nappingrl.cli import main
from nappingrl.domains.angrybirds.server.client import Client
from nappingrl.domains.angrybirds.server.server import Server
from nappingrl.domains.angrybirds.server.trial_plan import one_trial
from nappingrl.play import commands
from nappingrl.play.choices import Choices
from nappingrl.play.session import Session
from nappingrl.play.watched import WatchedPane
from patience import wait_for

TOYS = [toy_level(name) for name in "ab"]


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(one_trial(TOYS), ToyWorld, port=0, observer_port=0) as server:
        yield server


def test_the_picture_is_that_of_the_game(server: Server) -> None:
    with Client(port=server.port) as agent:
        agent.ready_for_new_set()
        agent.ready_for_new_set()
        agent.next_level()
        pane = WatchedPane(str(server.observer_port))
        expected = agent.screenshot()
        wait_for(lambda: np.array_equal(pane.sketch().picture, expected))
        assert pane.note == f"live from 127.0.0.1:{server.observer_port}"
        pane.close()


def test_it_says_that_there_is_no_server_and_waits_for_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    pane = WatchedPane(f"127.0.0.1:{port}")
    wait_for(lambda: "no game server" in pane.note)
    with Server(one_trial(TOYS), ToyWorld, port=0, observer_port=port):
        wait_for(lambda: pane.note.startswith("live"))
    pane.close()


def test_the_connected_agent_is_shown_beside_ours(server: Server) -> None:
    session = Session(Choices("angrybirds", "naive", "frozen", str(server.observer_port)))
    session.do(commands.Begin("angrybirds"))
    wait_for(lambda: session.frame()["panes"][0]["note"].startswith("live"))
    session.advance()
    left, right = session.frame()["panes"]
    assert left["image"]
    assert "note" not in right
    session.do(commands.Begin("cartpole", method="frozen"))
    assert "note" not in session.frame()["panes"][0]  # the frozen agent
    assert session._watched is not None
    session._watched.close()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("angrybirds", "--watch", "here"), "--watch 'here' is no address"),
        (("--watch", "99999"), "--watch 99999 is not a whole number from 1 to 65535"),
        (("cartpole", "--watch", "2006"), "--watch shows a server of Angry Birds, not cartpole"),
    ],
)
def test_bad_addresses(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], text: str) -> None:
    with pytest.raises(SystemExit):
        main(["play", "--no-browser", *words])
    assert text in capsys.readouterr().err


def test_the_playground_needs_no_box2d() -> None:
    code = "import sys; sys.modules['Box2D'] = None; import nappingrl.play.session"
    subprocess.run([sys.executable, "-c", code], check=True)
