"""`python -m tests.attack`: run every attack in a separate process, print one table, exit 1 on any failure."""

import argparse
import importlib
import pkgutil
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import msgspec

import tests.attack
from tests.attack.outcome import Outcome

ROOT = Path(__file__).parents[2]
PATIENCE = 3600  # seconds until an attack counts as hung; it is there to end a hang, not to measure anything
SHOWN_FAILURES = 20


def find_attacks() -> dict[str, ModuleType]:
    """All modules of this package that define `attack(budget, seed)`, by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(tests.attack.__path__) if module.name != "__main__")
    modules = {name: importlib.import_module(f"tests.attack.{name}") for name in names if not name.startswith("test_")}
    return {name: module for name, module in modules.items() if hasattr(module, "attack")}


def run_here(name: str, budget: float, seed: int) -> Outcome:
    """Run one attack in this process."""
    began = time.monotonic()
    outcome: Outcome = importlib.import_module(f"tests.attack.{name}").attack(budget, seed)
    outcome.name, outcome.seconds = name, time.monotonic() - began
    usages = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    outcome.peak_mb = max(usages) / (2**20 if sys.platform == "darwin" else 2**10)
    return outcome


def run_apart(name: str, budget: float, seed: int) -> Outcome:
    """Run one attack in a separate process, so that its crash is a failure and its memory is its own."""
    code = (
        f"import msgspec; from tests.attack.__main__ import run_here;"
        f"print(); print(msgspec.json.encode(run_here({name!r}, {budget!r}, {seed!r})).decode())"
    )
    began = time.monotonic()
    command = [sys.executable, "-c", code]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return Outcome(name, failures=[f"hung for {PATIENCE} s; seed {seed}"], seconds=PATIENCE)
    if done.returncode:
        what = f"the attack ended with status {done.returncode}; seed {seed}: {done.stderr[-400:]}"
        return Outcome(name, failures=[" ".join(what.split())], seconds=time.monotonic() - began)
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=Outcome)


def table(outcomes: Sequence[Outcome]) -> str:
    """The figures of all attacks, then notes and failures."""
    lines = [f"{'attack':<14}{'tried':>8}{'refused':>9}{'survived':>10}{'failed':>8}{'peak MB':>9}{'seconds':>9}"]
    lines += [
        f"{o.name:<14}{o.tried:>8}{o.refused:>9}{o.survived:>10}{len(o.failures):>8}{o.peak_mb:>9.0f}{o.seconds:>9.0f}"
        for o in outcomes
    ]
    lines += [f"{o.name}: {note}" for o in outcomes for note in o.notes]
    for outcome in outcomes:
        lines += [f"{outcome.name} FAILED: {failure}" for failure in outcome.failures[:SHOWN_FAILURES]]
        hidden = len(outcome.failures) - SHOWN_FAILURES
        lines += [f"{outcome.name} FAILED: {hidden} more"] * (hidden > 0)
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the attacks that the arguments ask for."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", help="one attack; may be repeated")
    parser.add_argument("--seed", type=int, default=1, help="of everything random (default: 1)")
    parser.add_argument("--scale", type=float, default=1.0, metavar="F", help="share of the full attack (default: 1)")
    parser.add_argument("--jobs", type=int, default=2, help="attacks at a time (default: 2)")
    parser.add_argument("--json", action="store_true", help="print outcomes as JSON")
    chosen = parser.parse_args(arguments)
    known = list(find_attacks())
    names = chosen.only or known
    if unknown := sorted(set(names) - set(known)):
        parser.error(f"unknown attack {', '.join(unknown)}; there are: {', '.join(known)}")
    with ThreadPoolExecutor(chosen.jobs) as pool:
        outcomes = list(pool.map(lambda name: run_apart(name, chosen.scale, chosen.seed), names))
    print(msgspec.json.encode(outcomes).decode() if chosen.json else table(outcomes))
    return int(any(outcome.failures for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
