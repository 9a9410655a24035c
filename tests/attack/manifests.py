"""Manifests of runs with wrong types, huge values, missing fields and damaged text: refused in one line, or read."""

import copy
import json
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

import nappingrl
from nappingrl.errors import NappingError
from nappingrl.report.export import export
from nappingrl.report.runs import Run, read_run
from nappingrl.report.table import runs_table, summarise_runs
from nappingrl.trials.manifest_record import MANIFEST
from nappingrl.trials.store import RunFolder
from tests.attack.outcome import Outcome

N_FULL = 5000
"""Mutated manifests of the full attack."""
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 129, 10**7 + 1, 10**12, 10**30, -(10**30), 0.5, 1e308, -0.0, 1e-320, "", " ", "x",
    "all", "none", "paper", "../../evil", "/etc/evil", "=1+1", "os:Evil-v0", "evil_module:Evil-v0", "cartpole",
    "frozen", "40+40", "99999999999+1", "1..2+3", "a\nb", "\x1b[2J", "\x00", "é" * 100, "x" * 20_000, [], [1], [[[]]],
    {}, {"a": 1}, {"": None}, [None] * 20_000, {"x": {"y": {"z": []}}},
)  # fmt: skip


def paths_of(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where all fields of a JSON value are."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield (*at, key)
        yield from paths_of(inner, (*at, key))


def mutate(content: bytes, rng: random.Random) -> bytes:
    """A manifest with one to three changes: of values, of fields, or of the text."""
    if rng.random() < 0.15:
        return _damage(content, rng)
    manifest = json.loads(content)
    for _ in range(rng.choice((1, 1, 2, 3))):
        *parents, key = rng.choice(list(paths_of(manifest)))
        place = manifest
        for parent in parents:
            place = place[parent]
        how = rng.random()
        if how < 0.7:
            place[key] = copy.deepcopy(rng.choice(VALUES))
        elif how < 0.85:
            del place[key]
        else:
            place[key] = [place[key]] if isinstance(place[key], str | int | float) else str(place[key])
    return json.dumps(manifest).encode("utf-8", "surrogatepass")


def _damage(content: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(content)
    how = rng.randrange(5)
    if how == 0:
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    elif how == 1:
        del damaged[rng.randrange(len(damaged)) :]
    elif how == 2:
        damaged = bytearray(b"[" * rng.randrange(1, 50_000))
    elif how == 3:
        at = rng.randrange(len(damaged))
        damaged[at:at] = rng.choice((b"NaN", b"1e999", b"\xff", b"-", b'"', b"\\ud800", b"9" * 5000))
    else:
        damaged = damaged * 2
    return bytes(damaged)


def use(folder: Path, rows: pl.DataFrame, out: Path) -> None:
    """Do what commands do with a run: read, summarise, label, export; the rows are stored as those of its manifest."""
    RunFolder.open(folder).write(0, rows)
    run: Run = read_run(folder, partial=True)
    runs_table(summarise_runs([run]))
    repr(run)
    for form in ("wsu", "monitor"):
        export(run, form, out)


def attack(budget: float, seed: int) -> Outcome:
    """Read and use mutated manifests of a finished run; none may raise anything but one line, or write elsewhere."""
    outcome, rng = Outcome("manifests"), random.Random(seed)
    with tempfile.TemporaryDirectory() as work:
        folder, out = Path(work) / "run", Path(work) / "out"
        rows = nappingrl.run("cartpole", method="frozen", trials=2, protocol="1+2", out=folder).rows
        content = (folder / MANIFEST).read_bytes()
        for number in range(max(1, round(N_FULL * budget))):
            outcome.tried += 1
            mutated = mutate(content, rng)
            (folder / MANIFEST).write_bytes(mutated)
            try:
                use(folder, rows, out)
                outcome.survived += 1
            except NappingError as error:
                outcome.refused += 1
                if "\n" in str(error) or len(str(error)) > 2000:
                    outcome.fail(f"not one line; seed {seed}, number {number}: {str(error)[:200]!r}")
            except Exception as error:
                outcome.fail(f"{type(error).__name__}: {error}; seed {seed}, number {number}: {mutated[:300]!r}")
            if not {path.name for path in Path(work).iterdir()} <= {"run", "out"}:
                outcome.fail(f"wrote elsewhere; seed {seed}, number {number}")
    return outcome
