"""A world for play in real time."""

from nappingrl.domains.angrybirds.physics.shots import Shot
from nappingrl.domains.angrybirds.physics.world import SHOT_TICKS, World
from nappingrl.types import Point


class LiveWorld(World):
    """A world that advances a few steps at a time and whose flying bird can be tapped."""

    _is_tapped = False
    _launched_at = 0
    is_under_way = False
    """Whether a shot is in progress: a bird was launched and not everything is at rest."""

    @property
    def is_ready(self) -> bool:
        """Whether a bird can be launched."""
        return self.status == "playing" and bool(self.waiting) and not self.is_under_way

    def launch(self, release: Point, tap_ms: int = 0) -> bool:
        """Launch the next bird."""
        is_launched = super().launch(release, tap_ms)
        if is_launched:
            self.is_under_way = True
            self._is_tapped = tap_ms > 0
            self._launched_at = self.ticks
        return is_launched

    def tap(self) -> None:
        """Tap the flying bird, once; gives the same flight as a shot with this tap."""
        shot = self._shot
        if shot is not None and shot.hit_at is None and not self._is_tapped:
            self._is_tapped = True
            self._shot = Shot(shot.bird, shot.launched_at, self.ticks + 1 - shot.launched_at)

    def advance(self, n_steps: int) -> None:
        """Make some steps; the level is decided once everything is at rest, or the shot takes too long."""
        for _ in range(n_steps):
            if self.is_moving:
                self._tick_or_skip()
        is_late = self.is_under_way and self.ticks - self._launched_at >= SHOT_TICKS
        if is_late or not self.is_moving:
            self.settle()
            self.is_under_way = False
