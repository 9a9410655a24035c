"""`napping birds play`: a person, or an agent, plays levels."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tyro.conf import Positional

from nappingrl.cli.console import progress, say
from nappingrl.errors import BadSpecError

if TYPE_CHECKING:
    from nappingrl.domains.angrybirds.physics.scene import Level
    from nappingrl.domains.angrybirds.play.play import Naive
    from nappingrl.domains.angrybirds.play.play import Play as Played
    from nappingrl.domains.angrybirds.play.record import Recorder

DEFAULT_TEMPLATE = "bone"


@dataclass(frozen=True)
class Play:
    """Play levels with the mouse: drag the bird, let go, click while it flies to use its power. Or watch an agent.

    Keys: R the same level again, N the next one, space taps, Esc quits.

    Example: napping birds play --template bone --number 7 --novelty bone
    """

    files: Positional[tuple[Path, ...]] = ()
    """Level files (XML). Default: own levels."""
    template: str = ""
    """Template of own levels. Default: that of the novelty, else bone."""
    number: int = 0
    """Number of the first own level."""
    preset: str = "phyq"
    """Constants of the physics: phyq or sailon."""
    novelty: str = ""
    """A novelty to play with; see `napping birds levels --help` for their names. Default: none."""
    agent: str = ""
    """naive (a random pig, low or high) plays instead of you."""
    levels: int = 0
    """An agent stops after so many levels. Default: never in a window, 1 without."""
    seed: int = 0
    """Of the agent's choices."""
    record: Path | None = None
    """Film the play: .gif, or .mp4 where ffmpeg is installed."""
    headless: bool = False
    """No window, as fast as it goes: for --record, with --agent."""

    def __call__(self) -> None:
        """Play until the end."""
        play, agent = self._play(), self._agent()
        recorder = self._recorder()
        try:
            if self.headless:
                assert agent is not None
                _play_unseen(play, agent, recorder, self.levels or 1)
            else:
                _play_in_window(play, agent, recorder, self.levels)
        except KeyboardInterrupt:
            if recorder is None:
                raise
        print(f"{play.n_won} of {play.n_played} levels passed")
        if recorder is not None:
            print(f"film: {self.record} ({recorder.close():.0f} s)")
            if recorder.is_full:
                say("a .gif takes no more than a minute of motion; the rest of the play is not in the film")

    def _play(self) -> "Played":
        from nappingrl.domains.angrybirds.novelties import make_change
        from nappingrl.domains.angrybirds.physics.presets import preset_by_name
        from nappingrl.domains.angrybirds.play.play import HAND_KEYS, KEYS, LiveWorld
        from nappingrl.domains.angrybirds.play.play import Play as Played

        if self.headless and not self.agent:
            raise BadSpecError("--headless shows no window, so nobody can play; add --agent naive")
        preset_by_name(self.preset)
        change = make_change({self.novelty: 1.0} if self.novelty else {})
        keys = "" if self.headless else KEYS if self.agent else HAND_KEYS
        title = f"{self.novelty}: " if self.novelty else ""
        return Played(self._level_at(), lambda level: LiveWorld(level, self.preset, change), title, keys)

    def _level_at(self) -> "Callable[[int], Level]":
        from nappingrl.domains.angrybirds.levels import files as levels
        from nappingrl.domains.angrybirds.levels.templates import TEMPLATES, make_level
        from nappingrl.errors import check_name

        if self.files:
            if self.template or self.number:
                raise BadSpecError("both level files and --template or --number; give one of them")
            read = [levels.read(file) for file in self.files]
            return lambda i: read[i % len(read)]
        if self.number < 0:
            raise BadSpecError(f"--number {self.number} is negative; allowed: 0, 1, 2, ...")
        default = self.novelty if self.novelty in TEMPLATES else DEFAULT_TEMPLATE
        template = check_name("template", self.template or default, TEMPLATES)
        return lambda i: make_level(template, self.number + i)

    def _agent(self) -> "Naive | None":
        from nappingrl.domains.angrybirds.play.play import AGENTS
        from nappingrl.errors import check_name

        if self.levels < 0 or self.seed < 0:
            raise BadSpecError(f"--levels {self.levels}, --seed {self.seed}; allowed: 0, 1, 2, ...")
        return AGENTS[check_name("agent", self.agent, AGENTS)](self.seed) if self.agent else None

    def _recorder(self) -> "Recorder | None":
        from nappingrl.domains.angrybirds.play.record import make_recorder

        return make_recorder(self.record) if self.record is not None else None


def _play_unseen(play: "Played", agent: "Naive", recorder: "Recorder | None", n_levels: int) -> None:
    from nappingrl.domains.angrybirds.play.play import play_level

    with progress("playing") as tell:
        for i in range(n_levels):
            tell(i, n_levels)
            if i:
                play.next_level()
            for _ in play_level(play, agent):
                if recorder is not None:
                    recorder.add(play.frame)


def _play_in_window(play: "Played", agent: "Naive | None", recorder: "Recorder | None", n_levels: int) -> None:
    from nappingrl.domains.angrybirds.play.window import Window

    window = Window(play, agent, recorder, n_levels)
    if sys.stderr.isatty():
        print("a window is open; Esc there, or Ctrl-C here, ends it", file=sys.stderr)
    window.run()
