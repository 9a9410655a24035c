"""The running server: what reaches it over the network, and what does not."""

import http.client
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from nappingrl.play.gate import MAX_BODY
from patience import PATIENCE, wait_for
from play.running import playground
from processes import Process, members


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Process, str]]:
    with playground() as found:
        yield found


def ask(link: str, method: str = "GET", path: str = "", body: bytes | None = None, **headers: str) -> tuple[int, str]:
    """Status and text of an answer."""
    parts = urlsplit(link)
    connection = http.client.HTTPConnection(parts.netloc, timeout=PATIENCE)
    connection.request(
        method, path or f"/?{parts.query}", body, {name.replace("_", "-"): value for name, value in headers.items()}
    )
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def tab_of(link: str) -> str:
    """The number of a new tab, as the page has it."""
    status, text = ask(link)
    assert status == 200
    found = re.search(r'name=\\*"tab\\*" content=\\*"([0-9a-f]+)', text)
    assert found is not None
    return found[1]


def stream(link: str, tab: str, origin: str = "", token: str = "") -> ClientConnection:
    parts = urlsplit(link)
    token = token or parts.query.removeprefix("token=")
    address = f"ws://{parts.netloc}/stream?tab={tab}&token={token}"
    return connect(address, origin=origin or f"http://{parts.netloc}", open_timeout=PATIENCE, max_size=None)  # type: ignore[arg-type]


def test_the_link_opens_the_page(server: tuple[Process, str]) -> None:
    assert tab_of(server[1])


@pytest.mark.parametrize(
    ("headers", "path", "status"),
    [
        ({"Host": "evil.example"}, "", 403),
        ({"Host": "evil.example:80"}, "/static/play.js", 403),
        ({"Origin": "http://evil.example"}, "", 403),
        ({}, "/", 403),
        ({}, "/?token=wrong", 403),
        ({}, "/_nicegui_ws/socket.io/?EIO=4&transport=polling", 403),
        ({}, "/static/play.js", 403),
    ],
)
def test_hostile_requests_are_refused(
    server: tuple[Process, str], headers: dict[str, str], path: str, status: int
) -> None:
    assert ask(server[1], path=path, **headers)[0] == status


def test_a_large_body_is_refused(server: tuple[Process, str]) -> None:
    assert ask(server[1], "POST", body=b"x" * (MAX_BODY + 1))[0] == 413


def test_sockets_of_other_sites_are_refused(server: tuple[Process, str]) -> None:
    for options in ({"origin": "http://evil.example"}, {"token": "wrong"}):
        with pytest.raises(InvalidStatus) as refusal:
            stream(server[1], tab_of(server[1]), **options)
        assert refusal.value.response.status_code == 403


def test_an_unknown_tab_is_turned_away(server: tuple[Process, str]) -> None:
    with stream(server[1], "0" * 24) as socket, pytest.raises(ConnectionClosed):
        socket.recv(PATIENCE)


def until(socket: ClientConnection, kind: str) -> dict[str, object]:
    """The next message of a kind."""
    while True:
        message: dict[str, object] = json.loads(socket.recv(PATIENCE))
        if message["kind"] == kind:
            return message


def test_nonsense_is_answered_in_one_line_and_the_match_goes_on(server: tuple[Process, str]) -> None:
    with stream(server[1], tab_of(server[1])) as socket:
        until(socket, "frame")
        for text in (
            "{",
            '{"do": "begin", "domain": "os:X-v0"}',
            "x" * 20_000,
            '{"do": "change", "changes": {"length": -1}}',
        ):
            socket.send(text)
            assert "\n" not in str(until(socket, "problem")["text"])
        socket.send('{"do": "step"}')
        until(socket, "frame")


def test_an_oversized_message_ends_the_stream_and_nothing_else(server: tuple[Process, str]) -> None:
    with stream(server[1], tab_of(server[1])) as socket:
        until(socket, "frame")
        socket.send("x" * (MAX_BODY + 1))
        with pytest.raises(ConnectionClosed):
            until(socket, "never")
    assert tab_of(server[1])


def test_processes_end_with_their_tabs_and_with_the_server() -> None:
    with playground() as (process, link):
        wait_for(lambda: len(members(process.pid)) >= 2)
        with ExitStack() as tabs:
            for _ in range(3):
                until(tabs.enter_context(stream(link, tab_of(link))), "frame")
            n_busy = len(members(process.pid))
        wait_for(lambda: len(members(process.pid)) <= n_busy - 2)
        process.terminate()
        wait_for(lambda: process.poll() is not None)
        wait_for(lambda: not members(process.pid))
