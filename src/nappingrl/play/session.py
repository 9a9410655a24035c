"""A session: a match with a pace, which takes commands and gives messages. It knows no socket and no clock."""

import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nappingrl.agent import NappingAgent
from nappingrl.agents import load as load_agent
from nappingrl.errors import BadSpecError
from nappingrl.play import commands
from nappingrl.play.choices import Choices
from nappingrl.play.film import MAX_FILM_SECONDS, Recording
from nappingrl.play.frames import Frames
from nappingrl.play.match import YOU, Match, MatchSpec, default_method, method_names, split_method
from nappingrl.play.rehearsal import rehearse_once
from nappingrl.play.watched import WATCHED_DOMAIN, WatchedPane
from nappingrl.play.world import World
from nappingrl.registry import methods

FAST = 16.0
"""The pace of a film of a match that runs as fast as it goes."""


class Session:
    """Everything behind one tab."""

    def __init__(self, choices: Choices | None = None, tell: Callable[[str], None] | None = None) -> None:
        """`tell`: compile kernels in another process before a match begins, and tell of it; None: compile them here."""
        self.choices, self._tell = choices or Choices(), tell
        self.is_paused, self.speed = False, 1.0
        self.match: Match
        self.frames: Frames
        self.recording: Recording | None = None
        self._watched: WatchedPane | None = None
        self._rng = np.random.default_rng()
        self.n_matches = 0

    # ------------------------------------------------------------------------------------------------- commands

    def do(self, command: commands.AnyCommand) -> dict[str, Any] | None:
        """Carry out a command; returns a message for the tab, if there is one."""
        match command:
            case commands.Begin():
                self._begin(self.choices.resolve(command))
                return self.frames.about()
            case commands.Method(name):
                self._begin(replace(self.match.spec, method=name, changes=self.match.changes))
                return self.frames.about()
            case commands.Restart():
                self._begin(replace(self.match.spec, changes=self.match.changes))
                return self.frames.about()
            case commands.Save():
                return self._save()
            case commands.Film(format):
                return self._film(format)
            case commands.Pause(on):
                self.is_paused = not self.is_paused if on is None else on
            case commands.Step():
                self.is_paused = True
                self.advance()
            case commands.Speed(factor):
                self.speed = factor
            case commands.Act(action):
                self._act(action)
            case commands.Shoot(x, y):
                if self.match.spec.method == YOU and not self.match.adapting.reel:
                    self.match.adapting.release = x, y
            case _:
                self._change(command)
        return None

    def _change(self, command: commands.AnyCommand) -> None:
        """Commands that change the world."""
        match command:
            case commands.Change(changes):
                self.match.change_world(changes)
            case commands.Novelty(name):
                world = self.match.world
                novelty = world.plain.novelty(name or world.plain.defaults.novelty)
                self.match.change_world(world.draw(name, self._rng), novelty.description)
            case commands.World(number):
                if number >= len(self.match.worlds):
                    raise BadSpecError(f"world {number} was not met; allowed: 0 to {len(self.match.worlds) - 1}")
                self.match.change_world(self.match.worlds[number])

    def _begin(self, spec: MatchSpec) -> None:
        latest = self.match.spec if self.n_matches else None
        is_same = latest is not None and (latest.domain, latest.agent) == (spec.domain, spec.agent)
        world = self.match.world if is_same else World(spec.domain, agent=spec.agent)
        agent = self.match.agent if is_same else None
        if not spec.method:
            agent = agent or load_agent(world.agent, spec.domain)
            offered = method_names(world, agent)
            method = self.choices.method if self.choices.method in offered else default_method(world, agent)
            spec = replace(spec, method=method)
        if self._tell is not None:
            rehearse_once(spec, self._tell)
        if self.choices.watch and self._watched is None:
            self._watched = WatchedPane(self.choices.watch)
        watched = self._watched if spec.domain == WATCHED_DOMAIN else None
        self.match = Match(spec, world, agent, watched)
        self.n_matches += 1
        self.frames = Frames(self.match, self.choices, self.n_matches)

    def _act(self, action: int) -> None:
        if self.match.spec.method != YOU:
            return
        if action >= self.match.world.domain.n_actions:
            raise BadSpecError(f"action {action}; allowed: 0 to {self.match.world.domain.n_actions - 1}")
        self.match.adapting.human = action

    def _save(self) -> dict[str, Any]:
        """The adapted agent as a file for NappingAgent.load."""
        spec, pane = self.match.spec, self.match.adapting
        method, options = split_method(spec.method)
        if spec.method == YOU or not methods.get(method).can_be_saved:
            raise BadSpecError(f"method '{spec.method}' learns nothing that can be saved")
        model = self.match.world.agent
        saved = NappingAgent(model, domain=spec.domain, method=method, detector=pane.spec.detector, **options)
        saved.adaptation.restore(pane.adaptation.state())
        with tempfile.TemporaryDirectory() as folder:
            data = saved.save(Path(folder) / "agent.zip").read_bytes()
        name = f"{spec.domain}-{method}.zip"
        return {"kind": "file", "name": name, "data": data}

    def _film(self, format: str) -> dict[str, Any] | None:
        """Begin to film; without a format: end, and give the film as a file, if there is one."""
        if format:
            if self.recording is not None:
                raise BadSpecError("a film is being recorded; end it first")
            path = Path(tempfile.gettempdir(), f"napping-film-{os.getpid()}.{format}")
            self.recording = Recording(self.match, path, MAX_FILM_SECONDS)
            return None
        recording, self.recording = self.recording, None
        if recording is not None and recording.close():
            name = f"{self.match.spec.domain}-{split_method(self.match.spec.method)[0]}{recording.path.suffix}"
            data = recording.path.read_bytes()
            recording.path.unlink()
            return {"kind": "file", "name": name, "data": data}
        return None

    # ------------------------------------------------------------------------------------------------- frames

    def advance(self, n_steps: int = 1) -> None:
        """Steps of the match."""
        for _ in range(n_steps):
            if self.recording is None or self.recording.is_full:
                self.match.advance()
            else:
                self.recording.advance(self.match, self.speed or FAST)
            self.frames.note_step()

    def frame(self) -> dict[str, Any]:
        """What there is to show now."""
        frame = self.frames.frame(self.is_paused, self.speed)
        if self.recording is not None:
            frame["recorded"] = round(self.recording.seconds, 1)
        return frame
