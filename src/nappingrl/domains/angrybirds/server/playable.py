"""The interface that a game needs of a world, release points of shots, and records of a running shot."""

from collections.abc import Callable
from math import cos, radians, sin
from typing import Protocol

from nappingrl.domains.angrybirds.physics.scene import PIXELS, Scene
from nappingrl.domains.angrybirds.physics.shots import DOT_TICKS
from nappingrl.domains.angrybirds.physics.world import STEP
from nappingrl.domains.angrybirds.server.observer import Observer
from nappingrl.domains.angrybirds.server.protocol import MOST_RECORDS
from nappingrl.types import Point


class Playable(Protocol):
    """A world as a game needs it."""

    @property
    def status(self) -> str:
        """One of playing, won, lost."""

    @property
    def score(self) -> int:
        """Points so far."""

    @property
    def time(self) -> float:
        """Simulated seconds."""

    @property
    def birds_left(self) -> int:
        """Birds that can still be shot."""

    @property
    def pigs_left(self) -> int:
        """Living pigs."""

    @property
    def is_moving(self) -> bool:
        """Whether anything moves, or the last shot is not over."""

    def scene(self) -> Scene:
        """A snapshot of everything that is visible."""

    def shoot(self, release: Point, tap_ms: int = 0, on_step: Callable[[], None] | None = None) -> bool:
        """Make a whole shot; False if refused."""

    def launch(self, release: Point, tap_ms: int = 0) -> bool:
        """Launch the bird; `step` or `settle` let time pass."""

    def step(self, n: int = 1) -> None:
        """Make n fixed steps."""

    def settle(self, on_step: Callable[[], None] | None = None) -> None:
        """Step until nothing moves, then decide the level."""


class Recorder:
    """Records ground truths during a shot. A frame is one step of the physics."""

    def __init__(self, world: Playable, observer: Observer, every: int) -> None:
        self._world = world
        self._observer = observer
        self._every = every
        self._frames: list[int] = []
        self._released_at: int | None = None
        self.records: list[bytes] = []

    def on_step(self) -> None:
        """Called after each step; the world may skip steps in which nothing moves."""
        frame = round(self._world.time / STEP)
        if self._released_at is None:
            self._released_at = frame - 1
        since = frame - self._released_at
        if len(self.records) < MOST_RECORDS and (not self._frames or since - self._frames[-1] >= self._every):
            self._frames.append(since)
            self.records.append(self._observer.record(self._world.scene()))

    def flight(self, tap_ms: int) -> list[bytes]:
        """The records up to the tap or the first collision, which ends the dots of the flight."""
        end = DOT_TICKS * len(self._world.scene().dots)
        if tap_ms > 0:
            end = min(end, int(tap_ms / 1000 / STEP))
        return [record for frame, record in zip(self._frames, self.records, strict=True) if frame <= end]


def release_point(scene: Scene, numbers: tuple[int, ...]) -> Point:
    """A release point in world units, from a point on the screen or (old clients) a point and a drag."""
    x, y = numbers if len(numbers) == 2 else (numbers[0] + numbers[2], numbers[1] + numbers[3])
    if scene.view.rotation == 180:
        x, y = PIXELS[0] - x, PIXELS[1] - y
    return scene.camera.to_world(x, y)


def polar_release_point(scene: Scene, numbers: tuple[int, ...]) -> Point:
    """A release point from pixels and hundredths of a degree: our guess, no agent is known to use it."""
    r, angle = numbers[-2] / scene.camera.scale, radians(numbers[-1] / 100)
    x, y = scene.sling.origin
    return x - r * cos(angle), y - r * sin(angle)
