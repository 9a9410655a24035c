"""A naive agent in our world, beside Naive's pass rates in the real game (Phy-Q, scenarios 1.1 and 1.2).

    python benchmarks/birds_naive.py FOLDER_OF_PHYQ_TEMPLATES --tasks 100 --seed 1

The agent picks a pig and one of the two trajectories at random. Which planner Naive used is not known: "exact" hits
what it aims at; "official" is the published approximation, with the published slip (its environment takes the release
point relative to the slingshot's corner and adds it to the planner's reference point).

Two estimators, each on both sides: the rate of first plays, and the published one. Published rates are the mean over
levels of passes / plays, where Naive plays a level until it passes, at most five times: a level that it passes half of
the time counts .69.
"""

import argparse
from pathlib import Path

import numpy as np
from birds_comparison import TEMPLATES, compare, read_tasks

from nappingrl.domains.angrybirds.aiming import Shot, Targets, aim_at, to_world
from nappingrl.domains.angrybirds.ground_truth.state import ground_truth
from nappingrl.domains.angrybirds.physics.scene import Level
from nappingrl.domains.angrybirds.physics.world import World
from nappingrl.domains.angrybirds.trajectory import PLANNERS, OfficialPlanner

FIRST = dict(zip(TEMPLATES, (0.70, 0.85, 0.60, 0.60, 0.0, 0.85, 0.90, 0.70, 0.80, 0.0), strict=True))
"""Share of first plays that Naive passed in the Unity game."""
PUBLISHED = dict(zip(TEMPLATES, (0.83, 0.92, 0.75, 0.71, 0.0, 0.88, 0.90, 0.80, 0.83, 0.03), strict=True))
"""Its published rates."""
MOST_PLAYS = 5
FAR = Shot((-600, 560), 0)
"""The published naive agent's shot when its planner finds no solution."""


def shifted(shot: Shot, targets: Targets) -> Shot:
    x, y = OfficialPlanner(targets.sling).reference
    return Shot((shot.release[0] + x - targets.sling.left, shot.release[1] + y - targets.sling.top), shot.tap_ms)


def passes(world: World, planner: str, rng: np.random.Generator) -> bool:
    targets = Targets()
    while world.status == "playing":
        scene = world.scene()
        targets.update(ground_truth(scene))
        pigs = [one for one in targets.seen if one is not None and one.colour == "pig"]
        pig, way = pigs[rng.integers(len(pigs))], int(rng.integers(2))
        shot = aim_at(pig.box.centre, way, targets.bird, planner, targets.sling, scene.camera.scale) or FAR
        shot = shifted(shot, targets) if planner == "official" else shot
        world.shoot(to_world(shot.release, scene.camera, scene.view), shot.tap_ms)
    return world.status == "won"


def plays_until_pass(level: Level, preset: str, planner: str, rng: np.random.Generator) -> int:
    """The number of the play that passes; 0 if none of them does."""
    for play in range(1, MOST_PLAYS + 1):
        if passes(World(level, preset), planner, rng):
            return play
    return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("templates", type=Path, help="folder with Phy-Q's template files (1_1_1_1.xml, ...)")
    parser.add_argument("--tasks", type=int, default=100, help="generated tasks per template")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--preset", default="phyq-game")
    parser.add_argument("--planner", default="exact", choices=PLANNERS)
    args = parser.parse_args()
    first, published = {}, {}
    print(f"{args.planner} planner, preset {args.preset}\n| template | first plays: real | ours | published | ours |")
    print("|---|---|---|---|---|")
    for name in TEMPLATES:
        rng = np.random.default_rng(args.seed)
        levels = read_tasks(args.templates, name, args.tasks, args.seed)
        plays = [plays_until_pass(level, args.preset, args.planner, rng) for level in levels]
        first[name] = [float(play == 1) for play in plays]
        published[name] = [1 / play if play else 0.0 for play in plays]
        print(
            f"| {name} | {FIRST[name]:.2f} | {np.mean(first[name]):.2f} "
            f"| {PUBLISHED[name]:.2f} | {np.mean(published[name]):.2f} |",
            flush=True,
        )
    print(f"first plays: {compare(FIRST, first).words()}")
    print(f"published: {compare(PUBLISHED, published).words()}")


if __name__ == "__main__":
    main()
