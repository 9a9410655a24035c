"""Pass rates in our world beside those in the real game: how far apart, and how far apart chance alone would put them.

Used by birds_naive.py and birds_datalab.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nappingrl.domains.angrybirds.levels import files, tasks
from nappingrl.domains.angrybirds.physics.scene import Level

TEMPLATES = ("1_1_1", "1_1_2", "1_1_4", "1_1_5", "1_1_6", "1_2_1", "1_2_2", "1_2_4", "1_2_5", "1_2_6")
"""Phy-Q's templates of scenarios 1.1 and 1.2, whose pass rates in the real game are known."""
REAL_TASKS = 20
"""Tasks of each template in the real game."""
RESAMPLES = 2000


def read_tasks(folder: Path, template: str, n: int, seed: int) -> list[Level]:
    return tasks.generate_many(files.read(folder / f"{template}_1.xml"), template, n, seed)


@dataclass(frozen=True)
class Comparison:
    """Mean absolute differences and the correlation of the rates of all templates."""

    difference: float
    of_zero: float
    """What 0 everywhere would score."""
    noise_floor: float
    """What our own world would score against itself, with as many tasks as the real game was measured on."""
    correlation: float

    def words(self) -> str:
        return (
            f"mean absolute difference {self.difference:.3f} (0 everywhere: {self.of_zero:.3f}, "
            f"noise floor: {self.noise_floor:.3f}), correlation {self.correlation:.2f}"
        )


def compare(real: Mapping[str, float], ours: Mapping[str, Sequence[float]], seed: int = 0) -> Comparison:
    """Compare the rates of the real game with ours, given for each task of each template."""
    rng = np.random.default_rng(seed)
    rates = np.array([np.mean(ours[name]) for name in real])
    floors = [
        np.mean([abs(rng.choice(ours[name], REAL_TASKS).mean() - rng.choice(ours[name], len(ours[name])).mean())
                 for name in real])
        for _ in range(RESAMPLES)
    ]  # fmt: skip
    known = np.array(list(real.values()))
    return Comparison(
        float(np.abs(rates - known).mean()), float(known.mean()), float(np.mean(floors)),
        float(np.corrcoef(rates, known)[0, 1]),
    )  # fmt: skip
