"""The page of a tab: layout and controls. Canvases and charts are drawn by static/play.js from the stream."""

import base64
import secrets
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from nicegui import Client, ui

from nappingrl.play import commands
from nappingrl.play.commands import AnyCommand, Begin
from nappingrl.play.controls import WorldPanel
from nappingrl.play.workers import Worker

SPEEDS = {0.1: "0.1x", 0.25: "0.25x", 0.5: "0.5x", 1.0: "1x", 2.0: "2x", 4.0: "4x", 16.0: "16x", 0.0: "max"}


class Tab:
    """One open page: its controls, and the worker behind it."""

    def __init__(self, client: Client, begin: Begin, problem: str) -> None:
        self.id, self.client, self.begin, self.problem = secrets.token_hex(12), client, begin, problem
        self.worker: Worker | None = None
        self.is_streaming = False
        self.about: dict[str, Any] = {}
        self.state: dict[str, Any] = {}
        self.listeners: list[Callable[[dict[str, Any]], None]] = []
        """Called with every message but frames."""

    def send(self, command: AnyCommand) -> None:
        """Ask the worker for something."""
        if self.worker is not None:
            self.worker.send(command)

    def hear(self, message: dict[str, Any]) -> None:
        """A message from the worker."""
        if message["kind"] == "about":
            self.about = message
        elif message["kind"] == "state":
            self.state = message
        if not self.client.is_deleted:
            with self.client:
                for listen in self.listeners:
                    listen(message)


def _part(name: str) -> str:
    """A piece of HTML."""
    return files("nappingrl.play").joinpath("parts", f"{name}.html").read_text(encoding="utf-8")


def build(tab: Tab) -> None:
    """Lay out the page."""
    ui.add_head_html(f'<meta name="tab" content="{tab.id}"><link rel="stylesheet" href="/static/play.css">')
    ui.add_head_html('<script type="module" src="/static/play.js"></script>')
    tab.listeners.append(_notify)
    _bar(tab)
    with ui.element("main").classes("layout"):
        with ui.element("div").classes("panes"):
            for name, title in (("frozen", "Frozen agent"), ("adapting", "Adapting agent")):
                text = _part("pane").format(name=name, title=title, label=f"{title} in its world")
                ui.html(text, sanitize=False, tag="section").classes(f"card pane {name}").props(f'id="pane-{name}"')
        with ui.element("aside").classes("card world").props('aria-label="The world"'):
            WorldPanel(tab)
        _transport(tab)
        ui.html(_part("rule"), sanitize=False, tag="section").classes("card ruling").props(
            'aria-label="The rule in force"'
        )
        ui.html(_part("charts"), sanitize=False, tag="div").classes("charts")
    ui.html("", sanitize=False, tag="div").props('id="tour" hidden role="dialog" aria-live="polite" aria-label="Tour"')
    ui.html("", sanitize=False, tag="div").props('id="curtain" role="status"')
    if tab.problem:
        ui.notify(tab.problem, type="negative", timeout=0, close_button="OK")


def _notify(message: dict[str, Any]) -> None:
    if message["kind"] == "problem":
        ui.notify(message["text"], type="negative")
    elif message["kind"] == "file":
        ui.download.content(base64.b64decode(message["data"]), message["name"])


def _bar(tab: Tab) -> None:
    """Title, what plays, and what to take away."""
    with ui.element("header").classes("bar"):
        ui.html("<h1>nappingrl <span>playground</span></h1>", sanitize=False)
        domain = ui.select({}, label="World").props("dense outlined options-dense")
        agent = ui.select([], label="Agent").props("dense outlined options-dense")
        method = ui.select({}, label="Method").props("dense outlined options-dense")
        ui.space()
        ui.button("Tour", icon="school", color=None).props('flat dense no-caps id="start-tour"')
        _share(tab)
        ui.button(icon="keyboard", color=None, on_click=_keys_dialog().open).props(
            'flat dense round id="keys" aria-label="Keys"'
        )
        dark = ui.dark_mode(value=None)
        toggle = ui.button(icon="contrast", color=None).props('flat dense round id="dark" aria-label="Light or dark"')
        toggle.on_click(lambda: dark.set_value(not dark.value))

    def choose(kind: str, value: str) -> None:
        about = tab.about
        if not about or value == about[kind]:
            return
        if kind == "method":
            tab.send(commands.Method(value))
        else:
            tab.send(
                Begin(value) if kind == "domain" else Begin(about["domain"], value, about["method"], about["seed"])
            )

    for kind, select in (("domain", domain), ("agent", agent), ("method", method)):
        select.on_value_change(lambda event, kind=kind: choose(kind, event.value))

    def listen(message: dict[str, Any]) -> None:
        if message["kind"] == "about":
            for kind, select in (("domain", domain), ("agent", agent), ("method", method)):
                select.set_options(message[f"{kind}s"], value=message[kind])

    tab.listeners.append(listen)


def _share(tab: Tab) -> None:
    """A menu: copies, a link, a file."""
    with ui.button("Take it with you", icon="ios_share", color=None).props('flat dense no-caps id="share"'), ui.menu():
        for title, name in (
            ("Copy as Python", "python"),
            ("Copy as command", "command"),
            ("Copy as command for a film (GIF)", "film"),
        ):
            ui.menu_item(title, lambda name=name: _copy(str(tab.state.get(name, "")))).props(f'id="copy-{name}"')
        ui.menu_item("Copy link", lambda: ui.run_javascript("window.playground.copyLink()")).props('id="copy-link"')
        ui.menu_item("Save the adapted agent", lambda: tab.send(commands.Save())).props('id="save"')

    def listen(message: dict[str, Any]) -> None:
        if message["kind"] == "state":
            ui.run_javascript(f"window.playground.take({message['link']!r})")

    tab.listeners.append(listen)


def _film(tab: Tab) -> None:
    """A button that films the match, and ends the film."""
    is_on = False
    button = ui.button("Record", icon="fiber_manual_record", color=None).props('flat no-caps id="film"')
    with button, ui.menu().props("no-parent-event") as formats:
        for name, title in (("gif", "GIF"), ("mp4", "MP4 (needs ffmpeg)")):
            ui.menu_item(title, lambda name=name: tab.send(commands.Film(name))).props(f'id="film-{name}"')
    button.on_click(lambda: tab.send(commands.Film()) if is_on else formats.open())
    ui.html("", sanitize=False, tag="span").props('id="recorded" role="timer"').classes("muted")

    def listen(message: dict[str, Any]) -> None:
        nonlocal is_on
        if message["kind"] == "state":
            is_on = message["films"]
            button.set_text("End the film" if is_on else "Record")
            button.set_icon("stop" if is_on else "fiber_manual_record")

    tab.listeners.append(listen)


def _copy(text: str) -> None:
    ui.clipboard.write(text)
    ui.notify(f"Copied: {text.splitlines()[0][:100] if text else 'nothing yet'}")


def _keys_dialog() -> ui.dialog:
    with ui.dialog() as dialog, ui.card():
        ui.label("Keys").classes("text-h6")
        ui.html(_part("keys"), sanitize=False)
        ui.button("Close", color=None, on_click=dialog.close).props("flat")
    return dialog


def _transport(tab: Tab) -> None:
    """Pause, step, restart, speed."""
    with ui.element("nav").classes("card transport").props('aria-label="Pace"'):
        pause = ui.button("Pause", icon="pause", color=None, on_click=lambda: tab.send(commands.Pause()))
        pause.classes("solid").props('unelevated no-caps id="pause"')
        step = ui.button("Step", icon="skip_next", color=None, on_click=lambda: tab.send(commands.Step()))
        step.props('flat no-caps id="step"')
        restart = ui.button("Restart", icon="replay", color=None, on_click=lambda: tab.send(commands.Restart()))
        restart.props('flat no-caps id="restart"')
        _film(tab)
        ui.space()
        speed = ui.toggle(SPEEDS, value=1.0, on_change=lambda event: tab.send(commands.Speed(float(event.value))))
        speed.props('flat dense no-caps id="speed" aria-label="Speed"').classes("speeds")

    def listen(message: dict[str, Any]) -> None:
        if message["kind"] == "state":
            pause.set_text("Go on" if message["paused"] else "Pause")
            pause.set_icon("play_arrow" if message["paused"] else "pause")
            if message["speed"] in SPEEDS and speed.value != message["speed"]:
                speed.set_value(message["speed"])

    tab.listeners.append(listen)
