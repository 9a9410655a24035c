"""The server of the playground: a page, a stream of frames for each tab, nothing else."""

import asyncio
import secrets
import socket
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
from fastapi import FastAPI, WebSocket, WebSocketDisconnect
from nicegui import app as nicegui_app
from nicegui import core, ui
from starlette.requests import Request
from starlette.staticfiles import StaticFiles

from nappingrl.errors import BadSpecError, NappingError
from nappingrl.play.choices import Choices
from nappingrl.play.commands import MAX_MESSAGE, read_command
from nappingrl.play.gate import MAX_BODY, Gate
from nappingrl.play.link import read_link
from nappingrl.play.page import Tab, build
from nappingrl.play.worker import FILE, FRAME
from nappingrl.play.workers import MAX_WORKERS, Worker, Workers

STATIC = Path(__file__).parent / "static"
MAX_TABS = 64
UNKNOWN_TAB = 4004
"""With this code, the page reloads itself."""
RECONNECT_SECONDS = 20.0
"""For so long a page may be silent, on a busy machine too, before it is forgotten."""
WAITING = f"{MAX_WORKERS} playgrounds are open already. Close one of their tabs, and this one begins by itself."
BROKEN = "The process behind this tab has ended. Reload the page to begin again."


class Server:
    """One playground, reached by its link only."""

    def __init__(self, choices: Choices, port: int = 0, host: str = "127.0.0.1") -> None:
        self.choices, self.token = choices, secrets.token_urlsafe(18)
        self._socket = _listen(host, port)
        self.port = int(self._socket.getsockname()[1])
        self.tabs: dict[str, Tab] = {}
        self.workers = Workers(choices)
        names = dict.fromkeys([host, "127.0.0.1", "localhost"])
        self.link = f"http://{host}:{self.port}/?token={self.token}"
        self._app = self._make_app()
        self._gate = Gate(self._app, [f"{name}:{self.port}" for name in names], self.token, f"napping{self.port}")

    def _make_app(self) -> FastAPI:
        app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=self._lifespan)
        app.mount("/static", StaticFiles(directory=STATIC))
        app.add_api_websocket_route("/stream", self._stream)
        ui.page("/", title="nappingrl playground", favicon=STATIC / "icon.svg")(self._page)
        core.sio.eio.max_http_buffer_size = MAX_BODY
        ui.run_with(app, dark=None, show_welcome_message=False, tailwind=False, reconnect_timeout=RECONNECT_SECONDS)
        nicegui_app.on_shutdown(self.workers.end)
        return app

    @asynccontextmanager
    async def _lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        self.workers.prepare()
        yield
        self.workers.end()

    def run(self, opens_browser: bool) -> None:
        """Serve until Ctrl-C."""
        config = uvicorn.Config(
            self._gate, log_level="error", ws_max_size=MAX_BODY, ws_max_queue=64, timeout_graceful_shutdown=1,
            server_header=False, lifespan="on",
        )  # fmt: skip
        print(f"playground: {self.link} (Ctrl-C ends it)", flush=True)
        if opens_browser:
            webbrowser.open(self.link)
        uvicorn.Server(config).run(sockets=[self._socket])

    def _page(self, request: Request) -> None:
        """The page of a new tab."""
        try:
            begin = read_link(request.query_params.multi_items(), self.choices)
            problem = "" if len(self.tabs) < MAX_TABS else "too many tabs are open; close some and reload"
        except NappingError as error:
            begin, problem = read_link([], self.choices), str(error)
        tab = Tab(ui.context.client, begin, problem)
        if len(self.tabs) < MAX_TABS:
            self.tabs[tab.id] = tab
        tab.client.on_delete(lambda: self.tabs.pop(tab.id, None))
        build(tab)

    async def _stream(self, stream: WebSocket) -> None:
        """Frames to a tab and commands from it, until one side ends."""
        tab = self.tabs.get(stream.query_params.get("tab", ""))
        await stream.accept()
        if tab is None or tab.is_streaming:
            await stream.close(UNKNOWN_TAB, "no such tab; reload the page")
            return
        tab.is_streaming = True
        try:
            if self.workers.is_full:
                await _say(stream, {"kind": "wait", "text": WAITING})
            gone = asyncio.create_task(_wait_for_end(stream, tab))
            async with self._worker(gone) as worker:
                if worker is not None:
                    tab.worker = worker
                    worker.send(tab.begin)
                    await _first(gone, asyncio.create_task(_pump(worker, stream, tab)))
        finally:
            tab.worker, tab.is_streaming = None, False
            with suppress(RuntimeError, WebSocketDisconnect):  # closed by the other side already
                await stream.close()

    @asynccontextmanager
    async def _worker(self, gone: "asyncio.Task[None]") -> AsyncIterator[Worker | None]:
        """A worker as soon as there is one; None if the tab is closed before."""
        context = self.workers.worker()
        entering = asyncio.ensure_future(context.__aenter__())
        await asyncio.wait([entering, gone], return_when=asyncio.FIRST_COMPLETED)
        if not entering.done():
            entering.cancel()
            with suppress(asyncio.CancelledError):
                await entering
            yield None
            return
        try:
            yield entering.result()
        finally:
            await context.__aexit__(None, None, None)


async def _first(*tasks: "asyncio.Task[None]") -> None:
    """Until the first of several tasks ends; the others are cancelled."""
    _, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
        with suppress(asyncio.CancelledError, WebSocketDisconnect, RuntimeError):
            await task


async def _wait_for_end(stream: WebSocket, tab: Tab) -> None:
    """Pass on the commands of a tab until it is closed; a message that is none is answered in one line."""
    while True:
        message = await stream.receive()
        if message["type"] == "websocket.disconnect":
            return
        text = message.get("text")
        try:
            if text is None or len(text) > MAX_MESSAGE:
                raise BadSpecError("a message must be a text of at most 16 KB")
            tab.send(read_command(text))
        except NappingError as error:
            await _say(stream, {"kind": "problem", "text": str(error)})


async def _pump(worker: Worker, stream: WebSocket, tab: Tab) -> None:
    """Frames as they are; what concerns the controls is also read here."""
    with suppress(WebSocketDisconnect):
        try:
            while True:
                message = await worker.receive()
                if message[:1] != FILE:
                    await stream.send_text(message[1:].decode())
                if message[:1] != FRAME:
                    tab.hear(msgspec.json.decode(message[1:]))
        except EOFError:
            await _say(stream, {"kind": "problem", "text": BROKEN})


async def _say(stream: WebSocket, message: dict[str, Any]) -> None:
    await stream.send_text(msgspec.json.encode(message).decode())


def _listen(host: str, port: int) -> socket.socket:
    """A socket that listens; one line where the port is taken."""
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise BadSpecError(f"port {port} of {host} cannot be used ({error.strerror}); give another --port") from None
    return listening
