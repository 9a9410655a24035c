"""The same level and shots give bit-identical results; shots take bounded time and memory."""

import gc
import subprocess
import sys
import weakref
from hashlib import sha256
from pathlib import Path

import pytest

from domains.angrybirds.birds_range import (
    FAR,
    level,
    release,
    the,
)  # fmt: skip
from nappingrl.domains.angrybirds.levels.templates import TEMPLATES, make_level
from nappingrl.domains.angrybirds.physics.bodies import Body
from nappingrl.domains.angrybirds.physics.scene import Item, Level
from nappingrl.domains.angrybirds.physics.world import World
from patience import PATIENCE

MATERIALS = ("wood", "stone", "ice")


# The same again ------------------------------------------------------------------------------------------------------


def played(start: Level, preset: str, shots: list[tuple[tuple[float, float], int]]) -> str:
    """All bits of all scenes of a level that is played."""
    world = World(start, preset)
    digest = sha256(repr(world.scene()).encode())
    for where, tap in shots:
        world.launch(where, tap)
        while world.is_moving:
            world.step(20)
            digest.update(repr(world.scene()).encode())
        digest.update(repr((world.scene(), world.status, world.score, world.ticks)).encode())
    return digest.hexdigest()


def busy_level() -> Level:
    """A heap with TNT, where much touches much in the same step."""
    rows = [
        Item("block", "SquareHole", 0.9 * column - 6, -3.5 + 0.42 + 0.85 * row, material=MATERIALS[(row + column) % 3])
        for row in range(4)
        for column in range(3)
    ]
    tnt = [Item("tnt", "TNT", -3.2, -3.17), Item("tnt", "TNT", -2.4, -3.17)]
    pigs = [Item("pig", "BasicBig", -1.4, -3.0), Item("pig", "BasicSmall", -5.1, -3.5 + 0.85 * 4 + 0.23)]
    return level(*rows, *tnt, *pigs, birds=("BirdRed", "BirdBlue", "BirdBlack", "BirdWhite", "BirdYellow"))


SHOTS = [(release(8), 0), (release(20), 400), (release(12), 0), (release(30), 500), (release(2), 300)]


def digests() -> list[str]:
    return [played(busy_level(), preset, SHOTS) for preset in ("phyq", "sailon")]


def test_the_same_bits_again_after_other_worlds_and_in_another_process() -> None:
    first = digests()
    others = [World(make_level(name, 3)) for name in TEMPLATES]
    for other in others:
        other.shoot(release(30))
    assert digests() == first
    folder = Path(__file__).parents[2]
    code = (
        f"import sys; sys.path.insert(0, {str(folder)!r}); junk = [object() for _ in range(12345)]\n"
        "from domains.angrybirds.test_repeat import digests; print(*digests())"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert out.stdout.split() == first


def test_worlds_in_turns_do_not_touch_each_other() -> None:
    alone = [World(make_level(name, 1)) for name in ("bone", "floating-wood")]
    turns = [World(make_level(name, 1)) for name in ("bone", "floating-wood")]
    for world in (*alone, *turns):
        world.launch(release(25))
    for world in alone:
        world.step(150)
    for _ in range(150):
        for world in turns:
            world.step()
    assert [world.scene() for world in alone] == [world.scene() for world in turns]


# Cost ----------------------------------------------------------------------------------------------------------------


def thirty_blocks() -> Level:
    blocks = [
        Item("block", "SquareHole", 0.9 * column - 2, -3.5 + 0.42 + 0.85 * row, material=MATERIALS[(row + column) % 3])
        for row in range(5)
        for column in range(6)
    ]
    return level(*blocks, birds=("BirdRed",) * 4)


def n_steps(world: World, degrees: float) -> int:
    """Steps that a shot computes; benchmarks/birds_speed.py measures their time."""
    steps: list[None] = []
    assert world.shoot(release(degrees), on_step=lambda: steps.append(None))
    return len(steps)


def test_a_shot_in_a_level_of_thirty_blocks_takes_few_steps() -> None:
    world = World(thirty_blocks())
    assert max(n_steps(world, degrees) for degrees in (20.0, 22.0, 24.0)) < 800


def test_shots_on_own_templates_take_few_steps() -> None:
    steps = [n_steps(World(make_level(name, number)), 15 + 5 * number) for name in TEMPLATES for number in range(4)]
    assert sum(steps) / len(steps) < 600


MEMORY = """
from pathlib import Path
from nappingrl.domains.angrybirds.levels.templates import make_level
from nappingrl.domains.angrybirds.physics.world import World
start = make_level("green-egg", 0)
def resident(n):
    for _ in range(n):
        World(start, "sailon")
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
print(-resident(300) + resident(700))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads memory off /proc")
def test_memory_is_steady_over_levels() -> None:
    """The physics must give back what is not Python's, too; benchmarks/birds_speed.py does 10,000 shots."""
    out = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert int(out.stdout) < 700 * 500  # bytes each


def test_memory_is_steady_over_shots() -> None:
    def bodies() -> int:
        gc.collect()
        return sum(type(one) is Body for one in gc.get_objects())

    before = bodies()
    for number in range(5):
        World(make_level("bone", number)).shoot(release(20))
    assert bodies() == before


def test_a_world_without_references_is_freed() -> None:
    world = World(level())
    world.shoot(release(45))
    gone = weakref.ref(world)
    del world
    assert gone() is None


def test_far_pig_is_far() -> None:
    """What the range takes for granted: the pig that keeps a level going is not hurt by any shot here."""
    world = World(level(birds=("BirdRed",) * 2))
    world.shoot(release(43.6))
    pig = the(world.scene(), "pig")[0]
    assert (pig.life, pig.x) == (80, pytest.approx(FAR[0], abs=0.01))
