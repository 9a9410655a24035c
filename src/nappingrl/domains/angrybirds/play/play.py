"""Play levels frame by frame, by mouse or by an agent; windows and recorders show the frames."""

from collections.abc import Callable
from dataclasses import replace
from math import hypot

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from nappingrl.domains.angrybirds.aiming import to_world
from nappingrl.domains.angrybirds.physics.scene import Level, Scene
from nappingrl.domains.angrybirds.physics.world import STEP
from nappingrl.domains.angrybirds.pictures.picture import draw
from nappingrl.domains.angrybirds.play.live_world import LiveWorld
from nappingrl.domains.angrybirds.play.record import FRAMES_PER_SECOND
from nappingrl.types import Point

FRAME_STEPS = round(1 / (FRAMES_PER_SECOND * STEP))
"""Physics steps per frame."""
GRAB_DISTANCE = 1.2
"""How near to the bird the mouse must be to grab it, in world units."""
LEAST_PULL = 0.25
"""How far the bird must be drawn, so that a mere click does not shoot."""

KEYS = "R: again   N: next   Esc: quit"
HAND_KEYS = f"drag the bird   click, space: tap   {KEYS}"
_BAR, _TEXT, _WON, _LOST = (24, 34, 48, 150), (255, 255, 255), (150, 235, 130), (255, 190, 120)

LevelAt = Callable[[int], Level]
"""The level of a number from 0; there is always a next one."""


class Play:
    """Plays levels one after the other, frame by frame, and draws each frame.

    Args:
        level_at: The levels.
        make_world: Makes the world of a level.
        title: Shown before the level's name.
        keys: Help on keys, shown in the bar.

    Attributes:
        number: Number of the level.
        pull: Where the bird on the sling is held, in world units; None if it is not held.
        n_played: Levels that were won or lost.
        n_won: Levels that were won.
    """

    def __init__(
        self, level_at: LevelAt, make_world: Callable[[Level], LiveWorld], title: str = "", keys: str = HAND_KEYS
    ) -> None:
        self._level_at = level_at
        self._make_world = make_world
        self._title = title
        self._keys = keys
        self.number = self.n_played = self.n_won = 0
        self.restart()

    def restart(self) -> None:
        """Restart the level."""
        self.pull: Point | None = None
        self._is_counted = False
        self.world = self._make_world(self._level_at(self.number))

    def next_level(self) -> None:
        """Go to the next level."""
        self.number += 1
        self.restart()

    # Mouse -----------------------------------------------------------------------------------------------------------

    def press(self, pixel: Point) -> None:
        """Grab the bird if it is near; while one flies, tap it."""
        if not self.world.is_ready:
            self.world.tap()
        else:
            x, y = self._to_world(pixel)
            if hypot(x - self.world.sling.origin[0], y - self.world.sling.origin[1]) <= GRAB_DISTANCE:
                self.pull = x, y

    def drag(self, pixel: Point) -> None:
        """Move the grabbed bird."""
        if self.pull is not None:
            self.pull = self._to_world(pixel)

    def let_go(self, tap_ms: int = 0) -> None:
        """Launch the grabbed bird, unless it was hardly moved."""
        if self.pull is not None and self._drawn() >= LEAST_PULL:
            self.world.launch(self.pull, tap_ms)
        self.pull = None

    def advance(self) -> None:
        """Advance the world by one frame."""
        self.world.advance(FRAME_STEPS)
        if self.world.status != "playing" and not self._is_counted:
            self._is_counted = True
            self.n_played += 1
            self.n_won += self.world.status == "won"

    def _to_world(self, pixel: Point) -> Point:
        return to_world(pixel, self.world.level.camera, self.world.view)

    def _drawn(self) -> float:
        assert self.pull is not None
        x, y = self.world.sling.origin
        return hypot(self.pull[0] - x, self.pull[1] - y)

    # Frames ----------------------------------------------------------------------------------------------------------

    def frame(self) -> NDArray[np.uint8]:
        """Draw the current frame, (480, 640, 3)."""
        picture = Image.fromarray(draw(self._scene()))
        pen = ImageDraw.Draw(picture, "RGBA")
        self._write_bar(pen, picture.width)
        if self.world.status != "playing":
            self._write_result(pen, picture.size)
        return np.array(picture)

    def _scene(self) -> Scene:
        """The scene, with the grabbed bird where it is held."""
        scene = self.world.scene()
        if self.pull is None:
            return scene
        x, y = self.world.sling.origin
        share = 1 / max(1.0, self._drawn())
        held = x + share * (self.pull[0] - x), y + share * (self.pull[1] - y)
        moved = [
            replace(thing, x=held[0], y=held[1]) if thing.id == scene.next_bird else thing for thing in scene.things
        ]
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
