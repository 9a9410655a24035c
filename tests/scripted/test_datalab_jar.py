"""Our DataLab beside the original program, where the environment variable NAPPINGRL_JAR names it."""

import os
import shutil
import subprocess
from math import atan2, degrees
from pathlib import Path

import numpy as np
import pytest

from domains.angrybirds.birds_range import ORIGIN, level, on_shelf
from nappingrl.domains.angrybirds.ground_truth.state import ground_truth
from nappingrl.domains.angrybirds.physics.scene import Item, Level
from nappingrl.domains.angrybirds.physics.world import World
from nappingrl.domains.angrybirds.server.server import Server
from nappingrl.domains.angrybirds.server.trial_plan import Source, one_trial
from nappingrl.scripted.datalab import read_scene
from nappingrl.scripted.datalab_strategies import choose
from nappingrl.types import Point

JAR = os.environ.get("NAPPINGRL_JAR", "")
NEAR = 1.5
"""Degrees; the program sees objects up to a pixel off."""

pytestmark = pytest.mark.skipif(not JAR or shutil.which("java") is None, reason="needs Java and the original program")


def levels() -> list[Level]:
    """A free pig near and far, one behind stone, one under a platform, and one beside TNT."""
    stone = on_shelf(Item("block", "RectFat", -4.5, 0.0, material="stone"), 0.215)
    return [
        level(*on_shelf(Item("pig", "BasicMedium", -6.0, -1.0), 0.38), has_far_pig=False),
        level(*on_shelf(Item("pig", "BasicMedium", 4.0, -1.0), 0.38), has_far_pig=False),
        level(*on_shelf(Item("pig", "BasicSmall", -3.0, 0.0), 0.225), *stone, has_far_pig=False),
        level(*on_shelf(Item("pig", "BasicMedium", 0.0, 2.0), 0.38), has_far_pig=False),
        level(Item("tnt", "TNT", 0.0, -3.17), Item("pig", "BasicSmall", 1.0, -3.28), has_far_pig=False),
    ]


def angle(release: Point) -> float:
    return degrees(atan2(ORIGIN[1] - release[1], ORIGIN[0] - release[0]))


class Watched(World):
    """Records the first release point."""

    first: Point | None = None

    def launch(self, release: Point, tap_ms: int = 0) -> bool:
        self.first = self.first or release
        return super().launch(release, tap_ms)


def test_first_shots_agree_with_the_original_program(tmp_path: Path) -> None:
    worlds: list[Watched] = []

    def make_world(source: Source) -> World:
        worlds.append(Watched(source.level))
        return worlds[-1]

    with Server(one_trial(levels()), make_world):
        command = ["java", "-Djava.awt.headless=true", "-jar", str(Path(JAR).absolute()), "1"]
        subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=300, check=True)
    assert len(worlds) == len(levels())
    for world, one in zip(worlds, levels(), strict=True):
        scene = World(one).scene()
        choice = choose(read_scene(ground_truth(scene, dev=False)), np.random.default_rng(0))
        assert world.first is not None
        assert angle(scene.camera.to_world(*choice.release)) == pytest.approx(angle(world.first), abs=NEAR)
