"""Builds wheel and sdist and tries them in new environments without extras: `make package` (minutes).

What needs an extra must say so in one line, and the installation must stay small.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAX_MEGABYTES = 520
WORKS = (
    "doctor",
    "list",
    "run cartpole --method auto --trials 1 --protocol 1+2 --workers 1 --out auto",
    "run mountaincar --agent dqn --method napping --trials 1 --protocol 1+2 --workers 1 --out napping",
    "replay napping 0",
)
NEEDS_AN_EXTRA = (
    "report auto",
    "figure method",
    "birds play --headless --agent naive",
    "play",
    "train --env CartPole-v1",
    "run angrybirds --trials 1",
    "run cartpole --method online --trials 1",
    "run cartpole --executor ray --trials 1",
    "run cartpole --agent hf:someone/agent --trials 1",
    "export auto --format tensorboard --out exported",
)


def run(*words: str | Path, folder: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a program without this checkout on its path."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["NUMBA_CACHE_DIR"] = str(folder / "kernels")
    return subprocess.run(
        [str(word) for word in words], cwd=folder, env=environment, text=True, check=check, capture_output=not check
    )


def new_environment(folder: Path, *requirements: str | Path) -> tuple[Path, float]:
    """The programs of a new environment with these packages, and the megabytes that they take."""
    run(sys.executable, "-m", "venv", folder / "venv", folder=folder)
    before = megabytes(folder)
    run(folder / "venv/bin/pip", "install", "--quiet", *requirements, folder=folder)
    return folder / "venv" / "bin", megabytes(folder) - before


def megabytes(folder: Path) -> float:
    """The size of all files."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and not file.is_symlink()) / 1e6


def try_out(package: Path, folder: Path, works: Sequence[str], needs_an_extra: Sequence[str]) -> None:
    """Install a package in a new environment, and try what works without extras and what does not."""
    programs, size = new_environment(folder, package)
    print(f"{package.name}: {size:.0f} MB installed")
    assert size < MAX_MEGABYTES
    for command in works:
        run(programs / "napping", *shlex.split(command), folder=folder)
    for command in needs_an_extra:
        done = run(programs / "napping", *shlex.split(command), folder=folder, check=False)
        print(done.stderr, end="")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), command
        assert "pip install" in done.stderr or "nappingrl[" in done.stderr, command


def main() -> None:
    """Build, install, try."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("build", "wheel", "sdist"):
            (folder / part).mkdir()
        programs, _ = new_environment(folder / "build", "build", "hatchling")
        run(programs / "python", "-m", "build", "--no-isolation", "-o", folder, ROOT, folder=folder)
        (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
        try_out(wheel, folder / "wheel", WORKS, NEEDS_AN_EXTRA)
        try_out(sdist, folder / "sdist", WORKS[:2], ())


if __name__ == "__main__":
    main()
