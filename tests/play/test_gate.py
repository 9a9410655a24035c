"""Who may speak to the server: hostile hosts, origins, tokens and sizes are refused."""

import asyncio
from typing import Any

import pytest

from nappingrl.play.gate import MAX_BODY, MAX_SOCKETS, Gate, Message, Receive, Scope, Send

HOST, TOKEN = "127.0.0.1:8000", "right"
WITH_TOKEN = b"token=right"


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Says how many bytes came."""
    n = 0
    while scope["type"] == "http":
        message = await receive()
        n += len(message.get("body", b""))
        if message["type"] == "http.disconnect" or not message.get("more_body"):
            break
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(n).encode()})


def ask(
    gate: Gate | None = None,
    kind: str = "http",
    query: bytes = WITH_TOKEN,
    bodies: tuple[bytes, ...] = (b"",),
    **headers: str,
) -> list[Message]:
    """What the server sends to a request with these headers."""
    gate = gate or Gate(app, [HOST, "localhost:8000"], TOKEN, "napping8000")
    given = {"host": HOST} | headers
    scope: dict[str, Any] = {
        "type": kind, "path": "/", "query_string": query,
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items() if value],
    }  # fmt: skip
    waiting = [{"type": "websocket.connect"}] if kind == "websocket" else []
    for i, body in enumerate(bodies):
        waiting.append({"type": "http.request", "body": body, "more_body": i + 1 < len(bodies)})  # type: ignore[dict-item]
    sent: list[Message] = []

    async def receive() -> Message:
        return waiting.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(gate(scope, receive, send))
    return sent


def status(sent: list[Message]) -> Any:
    return sent[0].get("status", sent[0]["type"])


def test_the_printed_link_opens_the_page_and_sets_a_cookie_that_opens_the_rest() -> None:
    sent = ask()
    assert status(sent) == 200
    cookie = dict(sent[0]["headers"])[b"set-cookie"].decode()
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert status(ask(query=b"", cookie=cookie.split(";")[0])) == 200
    assert (
        status(ask(kind="websocket", query=b"", cookie=cookie.split(";")[0], origin=f"http://{HOST}"))
        == "websocket.accept"
    )


@pytest.mark.parametrize(
    "host", ["", "evil.example", "evil.example:8000", "127.0.0.1", "127.0.0.1:8001", "127.0.0.1:8000.evil.example"]
)
def test_a_foreign_host_is_refused_even_with_the_token(host: str) -> None:
    assert status(ask(host=host)) == 403
    assert status(ask(kind="websocket", host=host, origin=f"http://{HOST}")) == "websocket.close"


@pytest.mark.parametrize("origin", ["http://evil.example", "null", f"https://{HOST}", "http://127.0.0.1:8001"])
def test_a_foreign_origin_is_refused_even_with_the_token(origin: str) -> None:
    assert status(ask(origin=origin)) == 403
    assert status(ask(kind="websocket", origin=origin)) == "websocket.close"


def test_a_websocket_needs_an_origin() -> None:
    assert status(ask(kind="websocket")) == "websocket.close"


@pytest.mark.parametrize("query", [b"", b"token=", b"token=wrong", b"token=rig", b"token=right2", b"t=right", b"%ff"])
def test_a_wrong_token_is_refused(query: bytes) -> None:
    assert status(ask(query=query)) == 403
    assert status(ask(query=query, cookie="napping8000=wrong; other=right")) == 403
    assert status(ask(query=query, cookie="\x00;;=")) == 403


def test_a_refusal_is_one_line_of_text_without_the_token() -> None:
    sent = ask(query=b"")
    assert sent[1]["body"].count(b"\n") == 1
    assert TOKEN.encode() not in sent[1]["body"]


@pytest.mark.parametrize("length", [str(MAX_BODY + 1), "9" * 40, "-1", "1e3", "x"])
def test_a_large_request_is_refused(length: str) -> None:
    assert status(ask(content_length=length)) == 413


def test_a_request_without_a_length_ends_where_it_is_too_large() -> None:
    assert ask(bodies=(b"x" * 40_000,) * 4)[1]["body"] == b"40000"


def test_the_number_of_sockets_is_limited() -> None:
    gate = Gate(app, [HOST], TOKEN, "napping8000")
    gate._n_sockets = MAX_SOCKETS
    assert status(ask(gate, kind="websocket", origin=f"http://{HOST}")) == "websocket.close"
    gate._n_sockets = 0
    assert status(ask(gate, kind="websocket", origin=f"http://{HOST}")) == "websocket.accept"
    assert gate._n_sockets == 0


def test_no_page_of_ours_may_load_from_elsewhere_or_be_framed() -> None:
    policy = dict(ask()[0]["headers"])[b"content-security-policy"].decode()
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
