"""Options and output that `napping birds serve` and `napping birds external` share."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar

from nappingrl.cli.argv import flag, is_given, rebuild
from nappingrl.cli.console import print_table
from nappingrl.domains.angrybirds.novelties import make_change
from nappingrl.domains.angrybirds.physics.presets import preset_by_name
from nappingrl.domains.angrybirds.physics.world import World
from nappingrl.domains.angrybirds.server.game import MakeWorld
from nappingrl.domains.angrybirds.server.pass_rates import pass_rates
from nappingrl.domains.angrybirds.server.results import Episode
from nappingrl.domains.angrybirds.server.server import Settings
from nappingrl.errors import BadRunError, BadSpecError, check_whole
from nappingrl.files.lock import LOCK, locked
from nappingrl.trials.limits import MAX_EPISODES, MAX_PORT, MAX_SEED
from nappingrl.trials.science_birds import write_runs
from nappingrl.trials.store import make_folder

DEFAULT_LEVELS = 40
"""Before the novelty, and after it, as in the paper."""


@dataclass(frozen=True, kw_only=True)
class Served:
    """A command that lets external agents play over the Science Birds protocol."""

    out: Path
    """New or empty folder for the results."""
    levels: int = 0
    """Levels before the novelty. Default: 40."""
    novelty: str = ""
    """Novelty of the novel levels; `napping birds levels --help` lists the names. Default: none."""
    novel_levels: int = 0
    """Levels after the novelty. Default: the same number as before it."""
    trials: Path | None = None
    """A config.xml of the original framework that defines the trials instead."""
    preset: str = "phyq"
    """Physics constants: phyq, phyq-game or sailon."""
    port: int = 2004
    """Port for agents; 0: any free port."""
    observer_port: int | None = None
    """Port for observers, which cannot play, such as `napping play --watch PORT`. Default: none."""
    seed: int = 0
    """Random seed of the levels and of the noise in what agents observe."""
    informed: bool = False
    """Agents may ask whether the novelty has begun (code 69)."""
    dev: bool = False
    """Developer mode: exact labels and no noise."""
    json: bool = False
    """Print a single machine-readable object."""

    bounds: ClassVar[Mapping[str, tuple[int, int]]] = {
        "levels": (0, MAX_EPISODES), "novel_levels": (0, MAX_EPISODES), "seed": (0, MAX_SEED), "port": (0, MAX_PORT),
        "observer_port": (0, MAX_PORT),
    }  # fmt: skip
    """The least and the greatest value of options that are whole numbers."""
    decided_by_trials: ClassVar[tuple[str, ...]] = ("levels", "novel_levels", "informed")
    """Options that conflict with --trials."""

    def _check(self) -> None:
        """Refuse contradictory options and a folder with other results before anything is written."""
        for name, (least, most) in self.bounds.items():
            if (value := getattr(self, name)) is not None:
                check_whole(flag(name), value, least, most)
        if self.trials is not None:
            given = [field.name for field in fields(self) if is_given(self, field)]
            if conflicts := [flag(name) for name in self.decided_by_trials if name in given]:
                raise BadSpecError(
                    f"{', '.join(conflicts)} with --trials: the file decides that; leave one of them out"
                )
        elif self.novel_levels and not self.novelty:
            raise BadSpecError(f"--novel-levels {self.novel_levels} without a novelty; add --novelty NAME")
        preset_by_name(self.preset)
        self._check_empty()

    def _check_empty(self) -> None:
        if self.out.is_dir() and any(path.is_file() and path != self.out / LOCK for path in self.out.rglob("*")):
            raise BadRunError(f"{self.out} is not empty; use another --out")

    @contextmanager
    def _locked_out(self) -> Iterator[None]:
        """Make the folder for the results and keep other processes out of it."""
        make_folder(self.out)
        with locked(self.out):
            self._check_empty()
            yield

    def _n_levels(self) -> tuple[int, int]:
        """Levels before and after the novelty."""
        n_before = self.levels or DEFAULT_LEVELS
        return n_before, (self.novel_levels or n_before) if self.novelty else 0

    def _make_world(self) -> MakeWorld:
        change = make_change({self.novelty: 1.0} if self.novelty else {})
        return lambda source: World(source.level, self.preset, change if source.is_novel else None)

    def _settings(self) -> Settings:
        return Settings(is_dev=self.dev, seed=self.seed)

    def _write_runs(self, episodes: Sequence[Episode]) -> list[Path]:
        novelty = self.novelty or ("novel" if self.trials else "none")
        return write_runs(self.out, episodes, novelty, self.seed, rebuild(self))


def print_rates(episodes: Sequence[Episode]) -> None:
    """Print the pass rate of each phase."""
    rows: list[tuple[str, ...]] = [
        (phase, str(rate["levels"]), str(rate["passed"]), f"{rate['pass_rate']:.2f}", str(rate["shots"]))
        for phase, rate in pass_rates(episodes).items()
        if rate["levels"]
    ]
    print_table(("levels", "played", "passed", "pass rate", "shots"), rows)
