"""The panel with which a visitor changes the world: sliders, switches, novelties, worlds met before."""

import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nicegui import ui

from nappingrl.play import commands

if TYPE_CHECKING:
    from nappingrl.play.page import Tab

POSITIONS = 1000
"""Of a slider."""
MAX_SHOWN = 80
"""Characters of a world that was met before; the whole text is its tooltip."""
HOLD_SECONDS = 0.7
"""For so long after a visitor's move, a slider is not moved by what comes back."""


class Scale:
    """Positions of a slider for the values of a parameter: linear, or logarithmic."""

    def __init__(self, slider: Mapping[str, Any]) -> None:
        self.low, self.high = float(slider["low"]), float(slider["high"])
        self._is_log = slider["is_log"]

    def position(self, value: float) -> int:
        """Where a value is."""
        return round(POSITIONS * min(1.0, max(0.0, self.share(value))))

    def share(self, value: float) -> float:
        """The same as a share of the slider."""
        if self._is_log:
            return math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return (value - self.low) / ((self.high - self.low) or 1.0)

    def value(self, position: float) -> float:
        """The value at a position, with three digits."""
        share = position / POSITIONS
        if self._is_log:
            found = self.low * (self.high / self.low) ** share
        else:
            found = self.low + share * (self.high - self.low)
        return float(f"{found:.3g}")


class SliderRow:
    """One parameter: its name, a field for its value, and a slider with the trained value and the paper's range."""

    def __init__(self, panel: "WorldPanel", slider: Mapping[str, Any]) -> None:
        self._panel, self.name, self.trained, self._scale = panel, slider["name"], slider["trained"], Scale(slider)
        self._moved = -math.inf
        scale, title = self._scale, _words(self.name)
        paper = slider["paper"] or (slider["trained"], slider["trained"])
        low, high, trained = (f"{100 * scale.share(value):.2f}%" for value in (*paper, self.trained))
        with ui.element("div").classes("parameter"):
            with ui.element("div").classes("parameter-head"):
                ui.label(title).classes("name")
                ui.label(f"trained {self.trained:g}").classes("muted")
                self._field = ui.number(value=self.trained, on_change=self._typed, format="%.4g")
                self._field.props(f'dense borderless aria-label="{title}" debounce=400')
            self._slider = ui.slider(min=0, max=POSITIONS, value=scale.position(self.trained), on_change=self._slid)
            self._slider.props(f'aria-label="{title}" data-parameter="{self.name}" dense')
            self._slider.style(f"--low:{low};--high:{high};--trained:{trained}")

    def _slid(self, event: Any) -> None:
        if event.value == self._scale.position(self._panel.changes.get(self.name, self.trained)):
            return  # it was moved to the value that holds, which may lie between two positions
        value = self._scale.value(event.value)
        if abs(self._scale.position(self.trained) - event.value) <= POSITIONS // 100:
            value = self.trained  # the trained value is easy to hit
        self._set(value)

    def _typed(self, event: Any) -> None:
        if event.value is not None:
            self._set(float(event.value))
            self._moved = -math.inf  # the slider follows

    def _set(self, value: float) -> None:
        if value != self._panel.changes.get(self.name, self.trained):
            self._moved = time.monotonic()
            self._panel.change({self.name: value})

    def show(self, value: float) -> None:
        """Move to the value that holds, unless the visitor is just moving it."""
        self._field.set_value(value)
        if time.monotonic() - self._moved > HOLD_SECONDS:
            self._slider.set_value(self._scale.position(value))


class WorldPanel:
    """All of it; built anew for each domain."""

    def __init__(self, tab: "Tab") -> None:
        self._tab = tab
        self.changes: dict[str, float] = {}
        self._domain = ""
        self._sliders: list[SliderRow] = []
        self._switches: list[tuple[Mapping[str, float], ui.switch]] = []
        ui.html("<h2>The world</h2>", sanitize=False)
        self._said = ui.label("as trained").classes("changed").props('id="changed" aria-live="polite"')
        with ui.element("div").classes("buttons"):
            surprise = ui.button("Surprise me", icon="auto_awesome", color=None)
            surprise.on_click(lambda: tab.send(commands.Novelty())).classes("solid")
            surprise.props('unelevated no-caps id="surprise"')
            back = ui.button("Back to the old world", icon="undo", color=None)
            back.on_click(lambda: tab.send(commands.World(0))).props('outline no-caps id="back"')
        self._box = ui.element("div").classes("parameters")
        self._known = ui.element("div").classes("known")
        tab.listeners.append(self._listen)

    def change(self, values: Mapping[str, float]) -> None:
        """Set some numbers and keep the others."""
        self.changes = {**self.changes, **values}
        self._tab.send(commands.Change(self.changes))

    def _listen(self, message: dict[str, Any]) -> None:
        if message["kind"] == "about" and message["domain"] != self._domain:
            self._build(message)
        elif message["kind"] == "state":
            self._show(message)

    def _build(self, about: dict[str, Any]) -> None:
        self._domain, self.changes, self._switches = about["domain"], {}, []
        self._box.clear()
        with self._box:
            for switch in about["switches"]:
                self._switches.append((switch["values"], self._switch(switch)))
            if about["novelties"]:
                with (
                    ui.button("Named novelties", icon="expand_more", color=None).props(
                        'flat no-caps dense id="novelties"'
                    ),
                    ui.menu(),
                ):
                    for name, description in about["novelties"].items():
                        item = ui.menu_item(name, lambda name=name: self._tab.send(commands.Novelty(name)))
                        item.tooltip(description).props(f'data-novelty="{name}"')
            self._sliders = [SliderRow(self, slider) for slider in about["sliders"]]

    def _switch(self, switch: Mapping[str, Any]) -> ui.switch:
        values = switch["values"]

        def flip(event: Any) -> None:
            is_on = all(self.changes.get(name) == value for name, value in values.items())
            if bool(event.value) == is_on:
                return
            kept = {name: value for name, value in self.changes.items() if name not in values}
            self.changes = kept | (values if event.value else {})
            self._tab.send(commands.Change(self.changes))

        made = ui.switch(switch["title"], on_change=flip).props(f'dense data-switch="{switch["name"]}"')
        made.tooltip(switch["about"])
        return made

    def _show(self, state: dict[str, Any]) -> None:
        self.changes = state["changes"]
        self._said.set_text(state["words"])
        self._said.classes(
            toggle=None, add="is-changed" if state["changes"] else "", remove="" if state["changes"] else "is-changed"
        )
        for row in self._sliders:
            row.show(self.changes.get(row.name, row.trained))
        for values, switch in self._switches:
            switch.set_value(all(self.changes.get(name) == value for name, value in values.items()))
        self._show_worlds(state["worlds"], state["at"])

    def _show_worlds(self, worlds: list[str], at: int) -> None:
        self._known.clear()
        if len(worlds) < 2:
            return
        with self._known:
            ui.label("Worlds met before").classes("muted")
            for number, words in enumerate(worlds):
                chip = ui.button(words if len(words) <= MAX_SHOWN else f"{words[:MAX_SHOWN]} …", color=None)
                chip.on_click(lambda number=number: self._tab.send(commands.World(number)))
                chip.props(f'dense no-caps {"unelevated" if number == at else "outline"} data-world="{number}"')
                chip.classes("solid" if number == at else "")
                chip.tooltip(words)


def _words(name: str) -> str:
    return name.replace("_", " ")
