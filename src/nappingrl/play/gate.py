"""What stands before the server: who may speak to it, how much, and how many at once."""

import hmac
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_BODY = 65_536
"""Bytes of a request or of a message on a WebSocket."""
MAX_SOCKETS = 160
"""WebSockets that may be open: two for each tab."""
GONE = "No response returned."
"""What Starlette raises where a tab was closed before its answer was ready."""
_HEADERS = [
    (b"content-security-policy",
     b"default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
     b"img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self' data:; frame-ancestors 'none'; "
     b"form-action 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]  # fmt: skip


class Gate:
    """Lets a request pass if Host, Origin, token and size are right.

    The token comes in the query of the printed link; the answer sets a cookie, which brings it from then on.
    """

    def __init__(self, app: App, hosts: Iterable[str], token: str, cookie: str) -> None:
        self.app, self._token, self._cookie = app, token, cookie
        self._hosts = frozenset(hosts)
        self._origins = frozenset(f"http://{host}" for host in self._hosts)
        self._n_sockets = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await _refuse(scope, receive, send, *refusal)
        elif scope["type"] == "http":
            await self._pass(scope, receive, send)
        else:
            self._n_sockets += 1
            try:
                await self.app(scope, receive, send)
            finally:
                self._n_sockets -= 1

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self.app(scope, _limited(receive), self._with_headers(scope, send))
        except RuntimeError as error:
            if str(error) != GONE:
                raise

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Status and reason of a refusal; None: it may pass."""
        headers = _headers(scope)
        hosts, origins = headers.get("host", []), headers.get("origin", [])
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return 403, "this host name is not allowed; open the link that napping play printed"
        is_socket = scope["type"] == "websocket"
        if (is_socket and not origins) or any(origin.lower() not in self._origins for origin in origins):
            return 403, "requests from other sites are not allowed"
        if not self._has_token(scope, headers):
            return 403, "the token is missing or wrong; open the link that napping play printed, with its token"
        if is_socket and self._n_sockets >= MAX_SOCKETS:
            return 503, "too many tabs are open; close one and reload"
        lengths = headers.get("content-length", ["0"])
        if not all(length.isdecimal() and int(length[:12]) <= MAX_BODY for length in lengths):
            return 413, f"a request may have at most {MAX_BODY} bytes"
        return None

    def _has_token(self, scope: Scope, headers: dict[str, list[str]]) -> bool:
        return any(self._is_token(text) for text in (*_query_tokens(scope), *self._cookie_tokens(headers)))

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self._token.encode())

    def _cookie_tokens(self, headers: dict[str, list[str]]) -> list[str]:
        found = []
        for text in headers.get("cookie", []):
            try:
                cookie = SimpleCookie(text)
            except CookieError:
                continue
            found += [cookie[self._cookie].value] if self._cookie in cookie else []
        return found

    def _with_headers(self, scope: Scope, send: Send) -> Send:
        """Adds security headers, and the cookie where the token came in the query."""
        is_new = any(map(self._is_token, _query_tokens(scope)))
        cookie = f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict".encode()

        async def send_with(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [*_HEADERS, *([(b"set-cookie", cookie)] if is_new else [])]
                message["headers"] = [*message.get("headers", []), *own]
            await send(message)

        return send_with


def _headers(scope: Scope) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


def _query_tokens(scope: Scope) -> list[str]:
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"), max_num_fields=None)
    return query.get("token", [])


def _limited(receive: Receive) -> Receive:
    """The same, ending where a body without a stated length grows too large."""
    n_bytes = 0

    async def receive_limited() -> Message:
        nonlocal n_bytes
        message = await receive()
        n_bytes += len(message.get("body", b""))
        return message if n_bytes <= MAX_BODY else {"type": "http.disconnect"}

    return receive_limited


async def _refuse(scope: Scope, receive: Receive, send: Send, status: int, reason: str) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008, "reason": reason})
        return
    body = f"napping play: {reason}\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *_HEADERS]})
    await send({"type": "http.response.body", "body": body})
