"""What shots cost in the Angry Birds world: one in a level of 30 blocks, many on own templates, and memory over them.

python benchmarks/birds_speed.py --shots 10000
"""

import argparse
import gc
import json
import time
from pathlib import Path
from statistics import mean, median

from nappingrl.domains.angrybirds.actions import join
from nappingrl.domains.angrybirds.aiming import Targets, release_point
from nappingrl.domains.angrybirds.ground_truth.state import ground_truth
from nappingrl.domains.angrybirds.levels.templates import LEVELS, TEMPLATES, make_level
from nappingrl.domains.angrybirds.physics.scene import GROUND, MATERIALS, Item, Level
from nappingrl.domains.angrybirds.physics.world import World

COLUMNS, ROWS = 6, 5
OFFSETS = (0, 15, -15)
PAGE = 4096


def wall() -> Level:
    """30 hollow squares in a wall, a pig behind it, a bird for each of three shots."""
    blocks = [
        Item(
            "block", "SquareHole", 0.9 * column - 2, GROUND + 0.42 + 0.85 * row, material=MATERIALS[(row + column) % 3]
        )
        for row in range(ROWS)
        for column in range(COLUMNS)
    ]
    return Level("wall", ("BirdRed",) * 3, (*blocks, Item("pig", "BasicMedium", 5.0, GROUND + 0.38)))


def shoot(world: World, slot: int, offset: int) -> None:
    """Aim as an agent does: off the ground truth, with the official planner."""
    scene = world.scene()
    targets = Targets()
    targets.update(ground_truth(scene))
    shot = targets.aim(join(slot, 0, offset))
    world.shoot(release_point(shot, scene), shot.tap_ms if shot else 0)


def wall_ms(repeats: int) -> list[float]:
    """Milliseconds of processor time of each shot at the wall, the level loaded before."""
    times = []
    for repeat in range(repeats):
        world = World(wall())
        while world.status == "playing":
            start = time.process_time()
            shoot(world, 1 + repeat, 0)
            times.append(1000 * (time.process_time() - start))
    return times


def resident_mb() -> float:
    """Memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 1e6


def play(shots: int, first: int = 0) -> None:
    """Levels of all templates in turn, one shot each, loading included."""
    names = list(TEMPLATES)
    for number in range(first, first + shots):
        level = make_level(names[number % len(names)], number // len(names) % LEVELS)
        shoot(World(level), 0, OFFSETS[number % len(OFFSETS)])


def measure(shots: int) -> dict[str, float | list[float]]:
    """All figures by name."""
    times = wall_ms(repeats=4)
    warm_up = min(shots, 200)
    play(warm_up)
    gc.collect()
    memory, start = [resident_mb()], time.process_time()
    part = max(1, shots // 10)
    for first in range(0, shots, part):
        play(min(part, shots - first), first)
        gc.collect()
        memory.append(resident_mb())
    seconds = time.process_time() - start
    return {
        "ms per shot in a level of 30 blocks, mean": mean(times),
        "ms per shot in a level of 30 blocks, median": median(times),
        "ms per shot in a level of 30 blocks, worst": max(times),
        "shots": shots,
        "shots per minute and core on own templates": 60 * shots / seconds,
        "memory before (MB)": memory[0],
        "memory after each tenth (MB)": memory[1:],
        "memory growth (MB)": memory[-1] - memory[0],
        "memory growth over the second half (MB)": memory[-1] - memory[len(memory) // 2],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shots", type=int, default=1000, help="on own templates, one level each")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    figures = measure(options.shots)
    if options.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        values = value if isinstance(value, list) else [value]
        print(f"{name:50}", *(f"{one:10.1f}" for one in values))


if __name__ == "__main__":
    main()
