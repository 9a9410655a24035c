"""Levels played frame by frame, by hand or by an agent. What is seen is a picture; where it is shown is for others."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import hypot

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from nappingrl.domains.angrybirds import aiming as aim
from nappingrl.domains.angrybirds.ground_truth.state import ground_truth
from nappingrl.domains.angrybirds.physics.scene import Level, Point, Scene
from nappingrl.domains.angrybirds.physics.shots import Shot
from nappingrl.domains.angrybirds.physics.world import SHOT_TICKS, STEP, World
from nappingrl.domains.angrybirds.pictures.picture import draw

FRAME_STEPS = 2
"""Steps of the physics per frame."""
FRAMES_PER_SECOND = round(1 / (FRAME_STEPS * STEP))
GRAB_DISTANCE = 1.2
"""How near to the bird it must be taken hold of, in world units ..."""
LEAST_PULL = 0.25
"""... and how far it must be drawn, so that a mere click shoots nothing."""
LOOK_FRAMES, PULL_FRAMES, END_FRAMES = 12, 15, 38
"""How long an agent looks at a level, draws the bird, and leaves the result to be read."""
PLANNER = "official"

KEYS = "R: again   N: next   Esc: quit"
HAND_KEYS = f"drag the bird   click, space: tap   {KEYS}"
_BAR, _TEXT, _WON, _LOST = (24, 34, 48, 150), (255, 255, 255), (150, 235, 130), (255, 190, 120)

LevelAt = Callable[[int], Level]
"""The level of a number from 0; there is always a next one."""


class LiveWorld(World):
    """A world that goes on a few steps at a time, in which the bird can be tapped while it flies."""

    _is_tapped = False
    _launched_at = 0
    is_under_way = False
    """A bird was launched, and not everything has come to rest since."""

    @property
    def is_ready(self) -> bool:
        """Whether a bird can be launched."""
        return self.status == "playing" and bool(self.waiting) and not self.is_under_way

    def launch(self, release: Point, tap_ms: int = 0) -> bool:
        """Let the next bird go."""
        is_made = super().launch(release, tap_ms)
        if is_made:
            self.is_under_way, self._is_tapped, self._launched_at = True, tap_ms > 0, self.ticks
        return is_made

    def tap(self) -> None:
        """Use the power of the bird in the air, once, as if the shot had been made with this tap."""
        shot = self._shot
        if shot is not None and shot.hit_at is None and not self._is_tapped:
            self._is_tapped = True
            self._shot = Shot(shot.bird, shot.launched_at, self.ticks + 1 - shot.launched_at)

    def go_on(self, n_steps: int) -> None:
        """Some steps; the level is judged when everything has come to rest, or the shot has taken too long."""
        for _ in range(n_steps):
            if self.is_moving:
                self._tick_or_skip()
        is_late = self.is_under_way and self.ticks - self._launched_at >= SHOT_TICKS
        if is_late or not self.is_moving:
            self.settle()
            self.is_under_way = False


class Naive:
    """Shoots at a pig or, where none is to be seen, at anything: which one, low or high, is chosen at random."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)

    def aim(self, scene: Scene) -> aim.Shot:
        """The next shot, by what the ground truth tells."""
        targets = aim.Targets()
        targets.update(ground_truth(scene))
        seen = [slot for slot, one in enumerate(targets.seen) if one is not None]
        pigs = [slot for slot, one in enumerate(targets.seen) if one is not None and one.colour == "pig"]
        slot = int(self._rng.choice(pigs or seen or [0]))
        action = aim.join(slot, int(self._rng.integers(len(aim.TRAJECTORIES))), 0)
        return targets.aim(action, PLANNER, scene.camera.scale)


AGENTS: dict[str, type[Naive]] = {"naive": Naive}


class Play:
    """Levels one after the other, and what is done to them.

    Args:
        level_at: The levels.
        make_world: Makes the world of a level.
        title: Stands before the level's name.
        keys: What can be pressed, in words.

    Attributes:
        number: Of the level.
        pull: Where the bird on the sling is held, in world units; None: nobody holds it.
        n_played, n_won: How many levels were decided, and passed.
    """

    def __init__(
        self, level_at: LevelAt, make_world: Callable[[Level], LiveWorld], title: str = "", keys: str = HAND_KEYS
    ) -> None:
        self._level_at, self._make_world, self._title, self._keys = level_at, make_world, title, keys
        self.number = self.n_played = self.n_won = 0
        self.restart()

    def restart(self) -> None:
        """The same level from the beginning."""
        self.pull: Point | None = None
        self._is_counted = False
        self.world = self._make_world(self._level_at(self.number))

    def next_level(self) -> None:
        """The level after this one."""
        self.number += 1
        self.restart()

    # What a hand does ------------------------------------------------------------------------------------------------

    def press(self, pixel: Point) -> None:
        """Take hold of the bird where it is near; while one flies, tap."""
        if not self.world.is_ready:
            self.world.tap()
        else:
            x, y = self._to_world(pixel)
            if hypot(x - self.world.sling.origin[0], y - self.world.sling.origin[1]) <= GRAB_DISTANCE:
                self.pull = x, y

    def drag(self, pixel: Point) -> None:
        """Move the bird that is held."""
        if self.pull is not None:
            self.pull = self._to_world(pixel)

    def let_go(self, tap_ms: int = 0) -> None:
        """Launch the bird that is held, unless it was hardly moved."""
        if self.pull is not None and self._drawn() >= LEAST_PULL:
            self.world.launch(self.pull, tap_ms)
        self.pull = None

    def advance(self) -> None:
        """Let the time of one frame pass."""
        self.world.go_on(FRAME_STEPS)
        if self.world.status != "playing" and not self._is_counted:
            self._is_counted = True
            self.n_played += 1
            self.n_won += self.world.status == "won"

    def _to_world(self, pixel: Point) -> Point:
        return aim.to_world(pixel, self.world.level.camera, self.world.view)

    def _drawn(self) -> float:
        assert self.pull is not None
        x, y = self.world.sling.origin
        return hypot(self.pull[0] - x, self.pull[1] - y)

    # What is seen ----------------------------------------------------------------------------------------------------

    def frame(self) -> NDArray[np.uint8]:
        """The picture of this moment, (480, 640, 3)."""
        picture = Image.fromarray(draw(self._scene()))
        pen = ImageDraw.Draw(picture, "RGBA")
        self._write_bar(pen, picture.width)
        if self.world.status != "playing":
            self._write_result(pen, picture.size)
        return np.array(picture)

    def _scene(self) -> Scene:
        """What stands there, the bird on the sling where it is held."""
        scene = self.world.scene()
        if self.pull is None:
            return scene
        x, y = self.world.sling.origin
        share = 1 / max(1.0, self._drawn())
        held = x + share * (self.pull[0] - x), y + share * (self.pull[1] - y)
        moved = [replace(one, x=held[0], y=held[1]) if one.id == scene.next_bird else one for one in scene.things]
        return replace(scene, things=tuple(moved))

    def _write_bar(self, pen: ImageDraw.ImageDraw, width: int) -> None:
        world = self.world
        left = world.goals_left - world.pigs_left
        counts = f"score {world.score}   birds {world.birds_left}   pigs {world.pigs_left}"
        counts += f"   other goals {left}" if left > 0 else ""
        pen.rectangle((0, 0, width, 38 if self._keys else 21), _BAR)
        pen.text((8, 3), f"{self._title}{world.level.name}", _TEXT, _font(13))
        pen.text((width - 8, 3), counts, _TEXT, _font(13), anchor="ra")
        pen.text((8, 21), self._keys, _TEXT, _font(11))

    def _write_result(self, pen: ImageDraw.ImageDraw, size: tuple[int, int]) -> None:
        is_won = self.world.status == "won"
        pen.rectangle((0, 84, size[0], 130), _BAR)
        text = "passed" if is_won else "failed"
        pen.text((size[0] / 2, 107), text, _WON if is_won else _LOST, _font(28), anchor="mm")


def _font(size: int) -> ImageFont.ImageFont | ImageFont.FreeTypeFont:
    return ImageFont.load_default(size)


def play_level(play: Play, agent: Naive) -> Iterator[None]:
    """An agent plays the level until it is decided; one frame per turn."""
    while play.world.status == "playing":
        for _ in range(LOOK_FRAMES):
            play.advance()
            yield
        if not play.world.is_ready:
            continue
        scene = play.world.scene()
        shot = agent.aim(scene)
        release, (x, y) = aim.to_world(shot.release, scene.camera, scene.view), scene.sling.origin
        far = max(1.0, hypot(release[0] - x, release[1] - y))
        for i in range(1, PULL_FRAMES + 1):
            share = i / PULL_FRAMES / far
            play.pull = x + share * (release[0] - x), y + share * (release[1] - y)
            yield
        play.pull = release
        play.let_go(shot.tap_ms)
    for _ in range(END_FRAMES):
        play.advance()
        yield
