"""`napping doctor`."""

import json
import platform
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import nappingrl
from nappingrl._build import kernel_folder
from nappingrl.cli.console import print_entries
from nappingrl.cli.extras import extras, version_of
from nappingrl.trials.workers import default_workers

PACKAGES = ("numpy", "numba", "gymnasium", "polars", "msgspec", "tyro", "rich", "threadpoolctl")


@dataclass(frozen=True)
class SelfTest:
    """A frozen agent and the same one with NAPPING after the same changes of CartPole."""

    frozen: float
    """Mean return of the last ten episodes."""
    napping: float
    seconds: float

    @property
    def is_good(self) -> bool:
        """Whether the agent adapted: by far, as it does in every correct installation."""
        return self.napping > self.frozen + 50

    def __str__(self) -> str:
        verdict = "adapts" if self.is_good else "DOES NOT ADAPT; please report this"
        numbers = f"mean return {self.frozen:.0f} frozen, {self.napping:.0f} with NAPPING, of 200"
        return f"CartPole after a change {verdict}: {numbers} ({self.seconds:.0f} s)"


@dataclass(frozen=True)
class Doctor:
    """Check the installation: versions, extras, the cache of kernels, and a short run.

    Exit status 0: all is well; 1: the short run gave wrong results.

    Example: napping doctor
    """

    json: bool = False
    """Print a single machine-readable object."""

    def __call__(self) -> None:
        """Look, try, print."""
        found: dict[str, Any] = {
            "version": nappingrl.__version__,
            "python": platform.python_version(),
            "platform": f"{platform.system()} {platform.machine()}, {default_workers()} cores",
            "folder": str(Path(nappingrl.__file__).parent),
            "packages": {name: version_of(name) for name in PACKAGES},
            "extras": {extra: {name: version_of(name) for name in names} for extra, names in extras().items()},
            "kernels": describe_cache(),
        }
        if not self.json:
            self._print(found)
        tested = self_test()
        if self.json:
            print(json.dumps(found | {"self_test": asdict(tested), "is_good": tested.is_good}))
        else:
            print_entries("self-test", {"": str(tested)})
        if not tested.is_good:
            sys.exit(1)

    def _print(self, found: dict[str, Any]) -> None:
        print_entries(
            f"nappingrl {found['version']}",
            {"python": found["python"], "machine": found["platform"], "folder": found["folder"]},
        )
        print_entries("packages", {"": ", ".join(f"{name} {number}" for name, number in found["packages"].items())})
        lines = {extra: _describe_extra(extra, names) for extra, names in found["extras"].items()}
        print_entries("extras", lines)
        print_entries("compiled kernels", {"": found["kernels"]})


def describe_cache() -> str:
    """Where compiled kernels are kept, and how many there are."""
    folder = kernel_folder()
    if folder is None:
        return "there is no place for them: they are compiled anew in every process; set NUMBA_CACHE_DIR"
    sizes = [file.stat().st_size for file in folder.rglob("*.nbc")]
    return f"{len(sizes)} in {folder} ({sum(sizes) / 1e6:.0f} MB); it can be deleted at any time"


def self_test() -> SelfTest:
    """Run four short trials twice."""
    started = time.perf_counter()
    frozen, adapted = (
        nappingrl.run("cartpole", "ppo", method, trials=4, seed=1, protocol="2+15", detector="given")
        for method in ("frozen", "napping")
    )
    return SelfTest(frozen.summary().last10_mean, adapted.summary().last10_mean, time.perf_counter() - started)


def _describe_extra(extra: str, names: dict[str, str]) -> str:
    if missing := [name for name, number in names.items() if not number]:
        return f'{", ".join(missing)} missing: pip install "nappingrl[{extra}]"'
    return ", ".join(f"{name} {number}" for name, number in names.items())
