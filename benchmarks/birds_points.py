"""Points for hits on stone circles: which colliders of a red bird explain those in the logs of the released game.

    python benchmarks/birds_points.py FOLDER_OF_PHYQ_TEMPLATES --tasks 40 --seed 3

In the logs the points of hits that do not destroy a stone circle are even 254 times and odd 15 times. Each contact of a
collider with a block gives its damage in points, while the remaining life exceeds it. This shoots at stone circles of
Phy-Q's tasks with other colliders and counts. The polygon is that of the published novelty branch.
"""

import argparse
from collections import defaultdict
from dataclasses import replace
from math import cos, hypot, sin
from pathlib import Path

import numpy as np
from birds_comparison import read_tasks

from nappingrl.domains.angrybirds.physics.bodies import ContactRecorder
from nappingrl.domains.angrybirds.physics.change import Change
from nappingrl.domains.angrybirds.physics.presets import Collider, Preset
from nappingrl.domains.angrybirds.physics.scene import Level
from nappingrl.domains.angrybirds.physics.world import World
from nappingrl.domains.angrybirds.trajectory import exact_angles

POLYGON = (
    (0.23, 0.035), (0.174, 0.067), (0.052, 0.196), (0.035, 0.214), (-0.072, 0.182), (-0.198, 0.061), (-0.17, -0.072),
    (-0.101, -0.186), (0.135, -0.182), (0.184, -0.119),
)  # fmt: skip
COLLIDERS = {
    "circle of .17": Collider(radius=0.17, centre=(0.05, -0.03)),
    "circle of .225": Collider(radius=0.225),
    "circle of .17 and polygon": Collider((POLYGON,), 0.17, (0.05, -0.03)),
    "circle of .225 and polygon": Collider((POLYGON,), 0.225),
}


class OtherBird(Change):
    """Red birds with another collider."""

    def __init__(self, collider: Collider) -> None:
        super().__init__()
        self._collider = collider

    def preset(self, preset: Preset) -> Preset:
        red = replace(preset.nature("BirdRed"), collider=self._collider)
        return replace(preset, natures={**preset.natures, ("BirdRed", ""): red})


class Hits(ContactRecorder):
    """Records the damage of each contact of a bird's collider with a stone circle."""

    def __init__(self) -> None:
        super().__init__()
        self.damages: dict[int, list[float]] = defaultdict(list)

    def BeginContact(self, contact) -> None:  # noqa: N802
        pair = contact.fixtureA.body.userData, contact.fixtureB.body.userData
        bird, block = sorted(pair, key=lambda body: body.kind != "bird")
        if bird.kind == "bird" and block.kind == "block" and block.material == "stone" and "Circle" in block.type:
            speed = hypot(bird.vx - block.vx, bird.vy - block.vy)
            self.damages[block.id].append(max(0.0, 11.22 * speed * bird.mass - 15))
        super().BeginContact(contact)


def points(level: Level, collider: Collider, rng: np.random.Generator) -> list[int]:
    """Points for each stone circle that a shot at one of them hits and does not destroy."""
    circles = [item for item in level.items if item.material == "stone" and "Circle" in item.type]
    if not circles:
        return []
    world = World(level, change=OtherBird(collider))
    target, (x, y) = circles[rng.integers(len(circles))], world.sling.origin
    angles = exact_angles(target.x - x, target.y - y + rng.uniform(-0.2, 0.2))
    if not angles:
        return []
    angle = angles[rng.integers(len(angles))]
    world._contacts = world._b2.contactListener = hits = Hits()
    lives = {body.id: body.life for body in world.moving}
    world.shoot((x - 5 * cos(angle), y - 5 * sin(angle)))
    found = []
    for block, damages in hits.damages.items():
        left = lives[block] - np.cumsum(damages)
        total = sum(round(d) for d, life in zip(damages, left, strict=True) if round(d) > 1 and life > d)
        if total and left[-1] > 0:
            found.append(total)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder with Phy-Q's template files (1_1_1_1.xml, ...)")
    parser.add_argument("--tasks", type=int, default=40, help="per template")
    parser.add_argument("--seed", type=int, default=3)
    args = parser.parse_args()
    names = sorted(path.stem.removesuffix("_1") for path in args.folder.glob("*_1.xml"))
    levels = [level for name in names for level in read_tasks(args.folder, name, args.tasks, args.seed)]
    for name, collider in COLLIDERS.items():
        rng = np.random.default_rng(args.seed)
        found = [total for level in levels for total in points(level, collider, rng)]
        odd = sum(total % 2 for total in found)
        print(f"{name}: even {len(found) - odd}, odd {odd}", flush=True)


if __name__ == "__main__":
    main()
