"""Small levels whose collisions can be computed by hand, and a log of what happens in them."""

from collections.abc import Callable
from math import cos, hypot, radians, sin

from nappingrl.domains.angrybirds.aiming import Targets
from nappingrl.domains.angrybirds.ground_truth.state import ground_truth
from nappingrl.domains.angrybirds.physics.change import Change
from nappingrl.domains.angrybirds.physics.scene import Item, Level, Scene, Thing
from nappingrl.domains.angrybirds.physics.sizes import SPRITE_SIZES
from nappingrl.domains.angrybirds.physics.world import World

STEP = 0.02
FALL = 0.48 * 9.81
ORIGIN = (-12.15, -1.7)
"""Where birds start: the slingshot stands at (-12, -2.5), the origin is (-0.15, +0.8) from there."""
FAR = (15.0, 9.0)
"""Where a pig is out of every shot's way here, and keeps the level going."""

PLATFORM = 0.64


def platform(x: float, y: float, width: float = 1.28, height: float = PLATFORM, rotation: float = 0.0) -> Item:
    return Item("platform", "Platform", x, y, rotation, scale_x=width / PLATFORM, scale_y=height / PLATFORM)


def on_shelf(item: Item, half_height: float) -> list[Item]:
    """An object on a separate platform, too narrow to be hit before it."""
    return [item, platform(item.x, item.y - half_height - PLATFORM / 2, width=0.3)]


def ahead(kind: str, type_: str, gap: float, material: str = "") -> list[Item]:
    """An object at the height of the slingshot's origin, its middle `gap` to the right of it."""
    return on_shelf(Item(kind, type_, ORIGIN[0] + gap, ORIGIN[1], material=material), SPRITE_SIZES[type_][1] / 2)


def level(*items: Item, birds: tuple[str, ...] = ("BirdRed",), has_far_pig: bool = True) -> Level:
    far = on_shelf(Item("pig", "BasicBig", *FAR), 0.485) if has_far_pig else []
    return Level("range", birds, (*items, *far))


def release(degrees: float, drawn: float = 1.0) -> tuple[float, float]:
    """Where to let go for this launch angle and draw (1 is full)."""
    return ORIGIN[0] - drawn * cos(radians(degrees)), ORIGIN[1] - drawn * sin(radians(degrees))


def backwards(world: World) -> bool:
    """A shot that leaves the world on the left and hurts nothing."""
    return world.shoot((ORIGIN[0] + 1, ORIGIN[1] - 0.2))


def the(scene: Scene, kind: str, type_: str = "") -> list[Thing]:
    return [one for one in scene.things if one.kind == kind and type_ in ("", one.type)]


def parabola(degrees: float, t: float, drawn: float = 1.0) -> tuple[float, float]:
    """The published flight: where the bird is t seconds after its release."""
    c, s = cos(radians(degrees)), sin(radians(degrees))
    start = ORIGIN[0] - drawn * c, ORIGIN[1] - drawn * s
    return start[0] + 10 * drawn * c * t, start[1] + 10 * drawn * s * t - FALL * t * t / 2


class Log:
    """A world that is stepped one by one, with all scenes."""

    def __init__(self, start: Level, preset: str = "phyq", change: Change | None = None) -> None:
        self.world = World(start, preset, change)
        self.scenes = [self.world.scene()]

    @property
    def now(self) -> Scene:
        return self.scenes[-1]

    def launch(self, degrees: float, drawn: float = 1.0, tap_ms: int = 0) -> "Log":
        self.bird = self.now.next_bird
        x, y = release(degrees, drawn)
        rise = self.now.sling.origin[1] - ORIGIN[1]
        assert self.world.launch((x, y + rise), tap_ms)
        self.scenes = [self.world.scene()]
        return self

    def step(self, n: int = 1) -> "Log":
        for _ in range(n):
            self.world.step()
            self.scenes.append(self.world.scene())
        return self

    def step_until(self, is_reached: Callable[[], bool], most: int = 400) -> "Log":
        for _ in range(most):
            if is_reached():
                return self
            self.step()
        raise AssertionError(f"not reached within {most} steps")

    def find(self, id_: int | None, when: int = -1) -> Thing | None:
        return next((one for one in self.scenes[when].things if one.id == id_), None)

    def place(self, id_: int | None, when: int = -1) -> tuple[float, float]:
        one = self.find(id_, when)
        assert one is not None
        return one.x, one.y

    def velocity(self, id_: int | None, when: int = -1) -> tuple[float, float]:
        """Velocity of the step that ended then."""
        (x0, y0), (x1, y1) = self.place(id_, when - 1), self.place(id_, when)
        return (x1 - x0) / STEP, (y1 - y0) / STEP

    def speed(self, id_: int | None, when: int = -1) -> float:
        return hypot(*self.velocity(id_, when))

    def life(self, id_: int) -> float:
        one = self.find(id_)
        return 0.0 if one is None else one.life

    def first_harm(self, id_: int, most: int = 400) -> tuple[float, float]:
        """Step until an object is hurt: how much life it lost, and the bird's speed before."""
        before = self.life(id_)
        self.step_until(lambda: self.life(id_) < before, most)
        return before - self.life(id_), self.speed(self.bird, -2)


def targets_of(scene: Scene) -> Targets:
    targets = Targets()
    targets.update(ground_truth(scene))
    return targets


def mixed() -> Level:
    """One of each class, the classes not in the order of x."""
    return level(
        platform(-7, 2), Item("block", "RectFat", -5, -3.28, material="stone"),
        Item("block", "RectFat", -3, -3.28, material="ice"), Item("block", "RectFat", 1, -3.28, material="wood"),
        Item("block", "RectFat", -1, -3.28, material="wood"), Item("tnt", "TNT", 5, -3.17),
        Item("pig", "BasicMedium", 8, -3.12), Item("pig", "BasicSmall", 6.5, -3.28),
        birds=("BirdYellow", "BirdRed", "BirdRed"), has_far_pig=False,
    )  # fmt: skip
