"""`napping birds play`."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from nappingrl.agents import load
from nappingrl.agents.base import check_fit
from nappingrl.agents.single_trial import SingleTrial
from nappingrl.cli.console import print_note, progress
from nappingrl.domains import find_domain
from nappingrl.domains.angrybirds.levels import files as levels
from nappingrl.domains.angrybirds.levels.templates import TEMPLATES, make_level
from nappingrl.domains.angrybirds.novelties import make_change
from nappingrl.domains.angrybirds.observer import OBSERVATION
from nappingrl.domains.angrybirds.physics.presets import preset_by_name
from nappingrl.domains.angrybirds.physics.scene import Level
from nappingrl.domains.angrybirds.play.autoplay import Autoplay
from nappingrl.domains.angrybirds.play.live_world import LiveWorld
from nappingrl.domains.angrybirds.play.play import HAND_KEYS, KEYS
from nappingrl.domains.angrybirds.play.play import Play as Played
from nappingrl.domains.angrybirds.play.record import Recorder, make_recorder
from nappingrl.domains.angrybirds.play.window import Window
from nappingrl.errors import BadSpecError, check_name, check_whole
from nappingrl.trials.limits import MAX_LEVELS, MAX_SEED

DEFAULT_TEMPLATE = "bone"
DOMAIN = "angrybirds"


@dataclass(frozen=True)
class Play:
    """Play Angry Birds levels with the mouse, or watch an agent.

    Drag the bird and let go; click while it flies to use its power. Keys: R restarts the level, N goes to the next one,
    space taps, Esc quits.

    Example: napping birds play --template bone --number 7 --novelty bone
    """

    files: Positional[tuple[Path, ...]] = ()
    """Level files (XML). Default: generated levels."""
    template: str = ""
    """Template of the generated levels. Default: the novelty's, or else bone."""
    number: int = 0
    """Number of the first generated level."""
    preset: str = "phyq"
    """Physics constants: phyq, phyq-game or sailon."""
    novelty: str = ""
    """Novelty to play with; `napping birds levels --help` lists the names. Default: none."""
    agent: str = ""
    """Agent that plays instead of you: a name that `napping list` shows for angrybirds, or the path of an agent."""
    levels: int = 0
    """Number of levels that an agent plays. Default: unlimited in a window, 1 without."""
    seed: int = 0
    """Random seed of the agent."""
    record: Path | None = None
    """Video to record: .gif, or .mp4 if ffmpeg is installed."""
    headless: bool = False
    """Open no window and play at full speed; needs --agent."""

    def __call__(self) -> None:
        """Play until the end."""
        play, agent = self._play(), self._agent()
        recorder = self._recorder()
        try:
            if self.headless:
                assert agent is not None
                _play_headless(play, agent, recorder, self.levels or 1)
            else:
                _play_in_window(play, agent, recorder, self.levels)
        except KeyboardInterrupt:
            if recorder is None:
                raise
        print(f"{play.n_won} of {play.n_played} levels passed")
        if recorder is not None:
            print(f"film: {self.record} ({recorder.close():.0f} s)")
            if recorder.is_full:
                print_note("a .gif holds at most one minute of motion; the rest was not recorded")

    def _play(self) -> Played:
        if self.headless and not self.agent:
            raise BadSpecError("--headless shows no window, and you cannot play without one; add --agent naive")
        preset_by_name(self.preset)
        change = make_change({self.novelty: 1.0} if self.novelty else {})
        keys = "" if self.headless else KEYS if self.agent else HAND_KEYS
        title = f"{self.novelty}: " if self.novelty else ""
        return Played(self._level_at(), lambda level: LiveWorld(level, self.preset, change), title, keys)

    def _level_at(self) -> Callable[[int], Level]:
        if self.files:
            if self.template or self.number:
                raise BadSpecError("both level files and --template or --number; give one of them")
            read = [levels.read(file) for file in self.files]
            return lambda i: read[i % len(read)]
        check_whole("--number", self.number, 0, MAX_SEED)
        default = self.novelty if self.novelty in TEMPLATES else DEFAULT_TEMPLATE
        template = check_name("template", self.template or default, TEMPLATES)
        return lambda i: make_level(template, self.number + i)

    def _agent(self) -> Autoplay | None:
        check_whole("--levels", self.levels, 0, MAX_LEVELS)
        check_whole("--seed", self.seed, 0, MAX_SEED)
        if not self.agent:
            return None
        agent = load(self.agent, DOMAIN)
        domain = find_domain(DOMAIN, agent.domain_options)
        check_fit(agent, domain)
        observation = str(domain.chosen.get("observation", OBSERVATION.default))
        return Autoplay(SingleTrial(agent, self.seed), bool(self.novelty), observation)

    def _recorder(self) -> Recorder | None:
        return make_recorder(self.record) if self.record is not None else None


def _play_headless(play: Played, agent: Autoplay, recorder: Recorder | None, n_levels: int) -> None:
    with progress("playing") as update:
        for i in range(n_levels):
            update(i, n_levels)
            if i:
                play.next_level()
            for _ in agent.play_level(play):
                if recorder is not None:
                    recorder.add(play.frame)


def _play_in_window(play: Played, agent: Autoplay | None, recorder: Recorder | None, n_levels: int) -> None:
    window = Window(play, agent, recorder, n_levels)
    if sys.stderr.isatty():
        print("a window is open; Esc there, or Ctrl-C here, ends it", file=sys.stderr)
    window.run()
