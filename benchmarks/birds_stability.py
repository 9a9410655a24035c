"""Do the level files of a folder load, stand still for five seconds, and render?

python benchmarks/birds_stability.py FOLDER [--preset phyq] [--sheet OUT.png]
"""

import argparse
from math import hypot
from pathlib import Path

import numpy as np
from PIL import Image

from nappingrl.domains.angrybirds.levels import files as levels
from nappingrl.domains.angrybirds.physics.world import World
from nappingrl.domains.angrybirds.pictures.picture import draw

SECONDS = 5
FAR = 0.1
"""Units; less is settling."""


def places(world: World) -> dict[int, tuple[float, float, str]]:
    return {thing.id: (thing.x, thing.y, thing.type) for thing in world.scene().things if thing.kind != "bird"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--preset", default="phyq")
    parser.add_argument("--sheet", type=Path, help="write the pictures of all levels into one PNG")
    args = parser.parse_args()
    pictures, n_bad = [], 0
    files = sorted(args.folder.glob("*.xml"))
    for file in files:
        world = World(levels.read(file), args.preset)
        before = places(world)
        world.step(SECONDS * 50)
        after = places(world)
        dead = [before[i][2] for i in before if i not in after]
        moved = [before[i][2] for i in after if hypot(after[i][0] - before[i][0], after[i][1] - before[i][1]) > FAR]
        n_bad += bool(dead or moved)
        pictures.append(draw(world.scene()))
        if dead or moved:
            print(f"{file.name}: died {dead}, moved {moved}")
    print(f"{len(files)} levels with preset {args.preset}: {len(files) - n_bad} still for {SECONDS} s, all rendered")
    if args.sheet is not None and pictures:
        small = [np.asarray(Image.fromarray(picture).resize((320, 240))) for picture in pictures]
        small += [np.full_like(small[0], 255)] * (-len(small) % 4)
        rows = [np.concatenate(small[i : i + 4], axis=1) for i in range(0, len(small), 4)]
        Image.fromarray(np.concatenate(rows)).save(args.sheet)


if __name__ == "__main__":
    main()
