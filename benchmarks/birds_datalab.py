"""The original DataLab program and our DataLab on tasks of Phy-Q: pass rates beside the real game's, and agreement.

    python benchmarks/birds_datalab.py FOLDER_OF_PHYQ_TEMPLATES OUT --jar data_lab_agent_v5.jar --plays 5 --seed 7
    python benchmarks/birds_datalab.py own OUT --jar data_lab_agent_v5.jar --tasks 10 --preset phyq

"own" instead of a folder: our own levels before their novelty, from number 100 on.

The program (Java, not part of this package) plays each task of each template --plays times on our server, on port 2004,
which it cannot change; to let several play at once, start each in its own network namespace with --templates. Finished
templates in OUT are not played again. Without --jar only what OUT contains is evaluated.

Printed are the pass rates of both, of the program in the real game (mean over tasks of passes / plays), and Cohen's
kappa of pass or fail per task: the program's first play with our agent's, and with its own second play.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from birds_comparison import TEMPLATES, compare, read_tasks

from nappingrl.domains.angrybirds.aiming import to_world
from nappingrl.domains.angrybirds.ground_truth.state import ground_truth
from nappingrl.domains.angrybirds.levels.templates import TEMPLATES as OWN_TEMPLATES
from nappingrl.domains.angrybirds.levels.templates import make_level
from nappingrl.domains.angrybirds.physics.scene import Level
from nappingrl.domains.angrybirds.physics.world import World
from nappingrl.domains.angrybirds.server.results import PASS
from nappingrl.domains.angrybirds.server.server import Server, Settings
from nappingrl.domains.angrybirds.server.trial_plan import one_trial
from nappingrl.scripted.datalab import read_scene
from nappingrl.scripted.datalab_strategies import choose

REAL = dict(zip(TEMPLATES, (0.95, 0.83, 0.92, 0.04, 0.0, 1.0, 0.90, 0.98, 0.40, 0.0), strict=True))
"""Pass rates of the program in the Unity game, five plays of each task."""
LONGEST_SECONDS = 3600
OWN, FIRST_OWN = "own", 100

Plays = dict[str, list[bool]]
"""Task -> whether each play passed it."""


def play_jar(jar: Path, levels: list[Level], preset: str, plays: int, seed: int) -> Plays:
    plan = one_trial(levels, attempts=plays)
    with (
        tempfile.TemporaryDirectory() as folder,
        Server(plan, lambda source: World(source.level, preset), settings=Settings(seed=seed)) as server,
    ):
        command = ["java", "-Djava.awt.headless=true", "-jar", str(jar.absolute()), "1"]
        quiet = subprocess.DEVNULL
        subprocess.run(command, cwd=folder, stdout=quiet, stderr=quiet, timeout=LONGEST_SECONDS, check=True)
        episodes = server.episodes
    passed: Plays = {}
    for episode in episodes:
        passed.setdefault(episode.entry.source.name, []).append(episode.status == PASS)
    if sum(map(len, passed.values())) != plays * len(levels):
        raise SystemExit(f"the program played {len(episodes)} of {plays * len(levels)} levels; see that Java works")
    return passed


def play_native(level: Level, preset: str, rng: np.random.Generator) -> bool:
    world = World(level, preset)
    while world.status == "playing":
        scene = world.scene()
        choice = choose(read_scene(ground_truth(scene, dev=False, noise=rng)), rng)
        world.shoot(to_world(choice.release, scene.camera, scene.view), choice.tap_ms)
    return world.status == "won"


def read_levels(folder: str, template: str, n: int, seed: int) -> list[Level]:
    """The first n levels of a template of our own, or tasks of a template of Phy-Q."""
    if folder == OWN:
        return [make_level(template, FIRST_OWN + i) for i in range(n)]
    return read_tasks(Path(folder), template, n, seed)


def kappa(one: list[bool], other: list[bool]) -> float:
    a, b = np.array(one), np.array(other)
    expected = a.mean() * b.mean() + (1 - a.mean()) * (1 - b.mean())
    return float(((a == b).mean() - expected) / (1 - expected))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="folder with Phy-Q's template files (1_1_1_1.xml, ...), or own")
    parser.add_argument("out", type=Path, help="folder for the plays of the program, one file per template")
    parser.add_argument("--jar", type=Path, help="the original program")
    parser.add_argument("--templates", nargs="*", help="default: all in the folder")
    parser.add_argument("--tasks", type=int, default=20, help="per template")
    parser.add_argument("--plays", type=int, default=2, help="of each task by the program")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--preset", default="phyq-game")
    args = parser.parse_args()
    if args.plays < 2:
        parser.error("--plays is at least 2: the program is also compared with itself")
    args.out.mkdir(parents=True, exist_ok=True)
    rng, rates, rows = np.random.default_rng(args.seed), {}, []
    print("| template | real | program | ours |\n|---|---|---|---|")
    of_phyq = sorted(path.stem.removesuffix("_1") for path in Path(args.folder).glob("*_1.xml"))
    for name in args.templates or (OWN_TEMPLATES if args.folder == OWN else of_phyq):
        levels = read_levels(args.folder, name, args.tasks, args.seed)
        file = args.out / f"{name}.json"
        if not file.exists() and args.jar is not None:
            file.write_text(json.dumps(play_jar(args.jar, levels, args.preset, args.plays, args.seed)))
        if not file.exists():
            continue
        plays: Plays = json.loads(file.read_text())
        native = [play_native(level, args.preset, rng) for level in levels]
        rates[name] = [float(np.mean(plays[level.name])) for level in levels]
        rows += [(*plays[level.name][:2], passed) for level, passed in zip(levels, native, strict=True)]
        real = f"{REAL[name]:.2f}" if name in REAL else ""
        print(f"| {name} | {real} | {np.mean(rates[name]):.2f} | {np.mean(native):.2f} |", flush=True)
    first, second, ours = (list(column) for column in zip(*rows, strict=True))
    if set(REAL) <= set(rates):
        print(f"program, ours and the real game: {compare(REAL, rates).words()}")
    print(f"{len(rows)} tasks: kappa of program and ours {kappa(first, ours):.2f}, ", end="")
    print(f"of two plays of the program {kappa(first, second):.2f}")


if __name__ == "__main__":
    main()
