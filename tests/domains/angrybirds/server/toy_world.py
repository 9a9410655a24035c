"""A fast, predictable world: a bird drawn to the left hits, any other misses."""

from collections.abc import Callable

from nappingrl.domains.angrybirds.physics.scene import Camera, Item, Level, Scene, Sling, Thing, View
from nappingrl.domains.angrybirds.server.trial_plan import Source

FLIGHT = 60
"""Steps from the release to rest."""
HIT, MISS = (40, 300), (300, 300)
"""Release points on the screen."""
SLING = Sling(-12.485, -3.505, -11.8, -1.45, (-12.15, -1.7))
PIG_AT = 5.0


def toy_level(name: str = "toy", n_birds: int = 2) -> Level:
    return Level(name, ("BirdRed",) * n_birds, (Item("pig", "BasicSmall", PIG_AT, -3.3),))


class ToyWorld:
    """Stands in for World."""

    def __init__(self, source: Source) -> None:
        self.level = source.level
        self.status, self.score, self.birds_left, self.pigs_left = "playing", 0, len(source.level.birds), 1
        self._ticks, self._left, self._is_hit = 0, 0, False
        self._dots: list[tuple[float, float]] = []

    @property
    def time(self) -> float:
        return self._ticks * 0.02

    @property
    def is_moving(self) -> bool:
        return self._left > 0

    def scene(self) -> Scene:
        things = [] if not self.pigs_left else [self._thing(-1, "pig", "BasicSmall", "pig", PIG_AT, -3.3)]
        things += [
            self._thing(-10 - i, "bird", "BirdRed", "red", -12.15 - i, -1.7 if i == 0 else -3.3)
            for i in range(self.birds_left)
        ]
        next_bird = -10 if self.birds_left and self.status == "playing" else None
        return Scene(Camera(), SLING, tuple(things), tuple(self._dots), View(), next_bird)

    @staticmethod
    def _thing(id_: int, kind: str, type_: str, colour: str, x: float, y: float) -> Thing:
        return Thing(id_, kind, type_, "", x, y, 0.0, 1.0, 1.0, 10.0, 10.0, colour, kind == "pig")

    def launch(self, release: tuple[float, float], tap_ms: int = 0) -> bool:
        if self.status != "playing" or self._left or not self.birds_left:
            return False
        self._is_hit = release[0] < SLING.origin[0]
        self._left, self._dots = FLIGHT, []
        self.birds_left -= 1
        return True

    def step(self, n: int = 1) -> None:
        for _ in range(n):
            self._ticks += 1
            if self._left:
                self._left -= 1
                since = FLIGHT - self._left
                if since <= 40 and since % 5 == 0:
                    self._dots.append((-12.0 + since * 0.4, 0.0))
                if not self._left:
                    self._land()

    def _land(self) -> None:
        if self._is_hit:
            self.status, self.pigs_left = "won", 0
            self.score += 5000 + 10000 * self.birds_left
        elif not self.birds_left:
            self.status = "lost"

    def settle(self, on_step: Callable[[], None] | None = None) -> None:
        while self.is_moving:
            self.step()
            if on_step is not None:
                on_step()

    def shoot(self, release: tuple[float, float], tap_ms: int = 0, on_step: Callable[[], None] | None = None) -> bool:
        if not self.launch(release, tap_ms):
            return False
        self.settle(on_step)
        return True
