"""Mutated files of saved agents: each is refused with one line, or loaded and used; anything else is a failure."""

import io
import json
import select
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tests.attack.outcome import Outcome

N_FILES = 10_000
PATIENCE = 300
"""Seconds until a file counts as hanging; it is there to end a hang, not to measure anything."""
ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "tests.attack.saved_agents_use"]
SETTINGS, ARRAYS = "adapter.json", "principles.npz"

VALUES: list[Any] = [
    None, True, False, -1, 0, 1, 2, 3, 7, 10**9, 2**31, 2**63, 10**400, -(10**18), 0.5, -0.5, 1e308, -1e308, 1e-320,
    float("nan"), float("inf"), "", "x", "x" * 5000, "__class__", "../../x", "cartpole", "os:system", "ppo", "napping",
    "foresight", "residual", "/dev/zero", "\n", "\ud800", [], {}, [[]], [0], [0, 0], ["a", "b"], {"a": 1},
]  # fmt: skip
INTEGERS = (-1, 0, 1, 2, 3, 4, 5, 10, 41, 10**6, 2**31 - 1, 2**31, 10**12, 2**53, 2**63 - 1, -(2**63), -2)
NUMBERS = (
    np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-320, 1e-30, 1e-9, 0.5, 200.0, 1e6, 1e12, -1e12, 1e18, 1e30, -1e30,
    1e38, 1e150, 1e308, -1e308,
)  # fmt: skip
DTYPES = ("f4", "f8", ">f8", "i4", "i8", ">i8", "u8", "i1", "?", "c16", "U3", "S3", "f2", "M8[s]")


@dataclass(slots=True)
class Saved:
    """A saved agent, taken apart."""

    settings: Any
    arrays: dict[str, NDArray[Any]]
    raw: bytes = b""
    """Of the whole file, where it is no longer made from the other two."""


def read(path: Path) -> Saved:
    """Take a file apart."""
    with zipfile.ZipFile(path) as archive:
        settings = json.loads(archive.read(SETTINGS))
        return Saved(settings, dict(np.load(io.BytesIO(archive.read(ARRAYS)))))


def write(saved: Saved, level: int = 1) -> bytes:
    """Put it together again."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
        for name, array in saved.arrays.items():
            with archive.open(f"{name}.npy", "w") as file:
                np.lib.format.write_array(file, array)
    return pack({SETTINGS: json.dumps(saved.settings).encode(), ARRAYS: content.getvalue()})


def pack(members: dict[str, bytes]) -> bytes:
    """A zip."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return whole.getvalue()


# ----------------------------------------------------------------------------------------------------------- settings


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Every container and key of a JSON tree."""
    items = list(tree.items()) if isinstance(tree, dict) else list(enumerate(tree)) if isinstance(tree, list) else []
    return [(tree, key) for key, _ in items] + [place for _, item in items for place in _places(item)]


def edit_setting(saved: Saved, random: Generator) -> None:
    """Replace, remove or add a value anywhere in the settings."""
    places = _places(saved.settings)
    container, key = places[random.integers(len(places))]
    kind = random.integers(10)
    if kind == 0:
        del container[key]
    elif kind == 1 and isinstance(container, dict):
        container[str(VALUES[random.integers(len(VALUES))])] = 1
    elif kind == 2 and isinstance(container[key], list):
        container[key] = container[key] * int(random.integers(2, 5))
    elif kind < 5 and isinstance(container[key], int | float):
        container[key] = container[key] + int(random.integers(-2, 3))
    else:
        container[key] = VALUES[random.integers(len(VALUES))]


def edit_option(saved: Saved, random: Generator) -> None:
    """Give a method option any value."""
    from nappingrl.registry import methods

    match saved.settings:
        case {"config": {"method": str(method), "options": dict(options)}}:  # not edited before
            names = [*methods.get(method).options, "model", "self"] if method in methods.names() else ["x"]
            options[names[random.integers(len(names))]] = VALUES[random.integers(len(VALUES))]


# ------------------------------------------------------------------------------------------------------------- arrays


def _pick(saved: Saved, random: Generator) -> str:
    names = list(saved.arrays)
    return names[random.integers(len(names))]


def _extreme(array: NDArray[Any], random: Generator) -> Any:
    if array.dtype.kind == "f":
        return NUMBERS[random.integers(len(NUMBERS))]
    if array.dtype.kind == "b":
        return bool(random.integers(2))
    value = INTEGERS[random.integers(len(INTEGERS))]
    info = np.iinfo(array.dtype)
    return min(max(value, int(info.min)), int(info.max))


def edit_element(saved: Saved, random: Generator) -> None:
    """Set one number, a few or all of an array to an extreme one."""
    filled = [name for name, array in saved.arrays.items() if array.size and array.dtype.kind in "biuf"]
    if not filled:
        return
    name = filled[random.integers(len(filled))]
    array = saved.arrays[name] = saved.arrays[name].copy()
    kind = random.integers(4)
    at = slice(None) if kind == 0 else random.integers(array.size, size=1 if kind < 3 else 5)
    with np.errstate(all="ignore"):
        array.reshape(-1)[at] = np.array(_extreme(array, random)).astype(array.dtype)


def edit_dtype(saved: Saved, random: Generator) -> None:
    """Give an array another type."""
    name = _pick(saved, random)
    dtype = DTYPES[random.integers(len(DTYPES))]
    try:
        with np.errstate(all="ignore"):
            saved.arrays[name] = saved.arrays[name].astype(dtype)
    except (TypeError, ValueError):
        saved.arrays[name] = np.zeros(saved.arrays[name].shape, dtype)


def edit_shape(saved: Saved, random: Generator) -> None:
    """Give an array another shape or length."""
    name = _pick(saved, random)
    array = saved.arrays[name]
    changes: list[Callable[[], NDArray[Any]]] = [
        lambda: array[None], lambda: array.reshape(-1), lambda: np.asfortranarray(array), lambda: array[:0],
        lambda: array[:-1], lambda: np.concatenate([array, array]), lambda: array[..., :-1], lambda: array.T,
        lambda: np.zeros((), array.dtype), lambda: np.zeros((0, 10**9), array.dtype),
        lambda: np.zeros((len(array) + 1, *array.shape[1:]), array.dtype), lambda: np.repeat(array, 50, axis=0),
    ]  # fmt: skip
    try:
        saved.arrays[name] = changes[random.integers(len(changes))]()
    except (IndexError, ValueError, TypeError):  # a number has no axis
        saved.arrays[name] = np.stack([array, array])


def edit_names(saved: Saved, random: Generator) -> None:
    """Remove, rename, copy or exchange arrays."""
    one, other = _pick(saved, random), _pick(saved, random)
    kind = random.integers(5)
    if kind == 0:
        del saved.arrays[one]
    elif kind == 1:
        saved.arrays[one + "x"] = saved.arrays.pop(one)
    elif kind == 2:
        saved.arrays[other] = saved.arrays[one]
    elif kind == 3:
        saved.arrays[one], saved.arrays[other] = saved.arrays[other], saved.arrays[one]
    else:
        for evil in ("method/__class__", "detector/step", "detector/../context", "method/learned.0.1.__init__"):
            saved.arrays[evil] = saved.arrays[one]


def rows_together(saved: Saved, random: Generator) -> None:
    """Lengthen or shorten all arrays that have the length of one of them, so that lengths agree."""
    array = saved.arrays[_pick(saved, random)]
    if not array.ndim:
        return
    length, keep = len(array), int(random.integers(0, 3))
    for name, other in saved.arrays.items():
        if other.ndim and len(other) == length and len(other):
            saved.arrays[name] = other[:keep] if keep < 2 else np.concatenate([other] * 3)


# ---------------------------------------------------------------------------------------------------------------- raw


def flip_bytes(saved: Saved, random: Generator) -> None:
    """Change some bytes of the file."""
    content = np.frombuffer(saved.raw or write(saved), np.uint8).copy()
    at = random.integers(len(content), size=int(random.integers(1, 9)))
    content[at] = random.integers(256, size=len(at))
    saved.raw = content.tobytes()


def cut(saved: Saved, random: Generator) -> None:
    """Cut the file, or a piece out of it, or repeat a piece."""
    content = saved.raw or write(saved)
    a, b = sorted(random.integers(len(content), size=2).tolist())
    saved.raw = [content[:a], content[:a] + content[b:], content[:b] + content[a:], content[a:]][random.integers(4)]


def lie(saved: Saved, random: Generator) -> None:
    """Headers and zips that declare other sizes than they have, bombs, pickles, doubled and encrypted members."""
    settings = json.dumps(saved.settings).encode()
    header = b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '<f8', 'fortran_order': False, 'shape': (%s,), }"
    npy = header % [b"1000000000000", b"-1", b"1" * 40, b"99999999999999999999, 0", b"((" * 40][random.integers(5)]
    pickle = (
        b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '|O', 'fortran_order': False, 'shape': (), }".ljust(117) + b"\ncos\n"
    )
    kind = random.integers(7)
    arrays = _pack_arrays(saved)
    if kind < 2:
        inner = pack(arrays | {next(iter(arrays), "x.npy"): npy.ljust(200) + b"\n" if kind else pickle})
        saved.raw = pack({SETTINGS: settings, ARRAYS: inner})
    elif kind == 2:
        whole = io.BytesIO()
        with zipfile.ZipFile(whole, "w") as archive:
            for _ in range(2):
                with np.testing.suppress_warnings() as quiet:
                    quiet.filter(UserWarning)
                    archive.writestr(SETTINGS, settings)
                    archive.writestr(ARRAYS, pack(arrays))
        saved.raw = whole.getvalue()
    elif kind == 3:
        saved.raw = pack({SETTINGS: b"[" * 100_000, ARRAYS: pack(arrays)})
    elif kind == 4:
        saved.raw = pack({SETTINGS: settings, ARRAYS: pack({"detector/context.npy": b""} | arrays)[:-22]})
    elif kind == 5:
        saved.raw = _bomb(settings)
    else:  # other sizes in the directory of the zip
        content = bytearray(write(saved))
        at = content.rfind(b"PK\x01\x02") + int(random.integers(8, 46))
        content[at : at + 4] = random.bytes(4)
        saved.raw = bytes(content)


def _pack_arrays(saved: Saved) -> dict[str, bytes]:
    members = {}
    for name, array in saved.arrays.items():
        np.lib.format.write_array(stream := io.BytesIO(), array)
        members[f"{name}.npy"] = stream.getvalue()
    return members


def _bomb(settings: bytes) -> bytes:
    """3 GB of zeros that declare to be 1 kB."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
    content, name = block * 3000 + packer.flush(), ARRAYS.encode()
    front = pack({SETTINGS: settings})
    end = front.rfind(b"PK\x01\x02")
    entry = np.array([20, 0, 8, 0, 0], "<u2").tobytes() + np.array([0, len(content), 1024], "<u4").tobytes()
    entry += np.array([len(name), 0], "<u2").tobytes()
    local = b"PK\x03\x04" + entry + name + content
    central = b"PK\x01\x02\x14\x00" + entry + bytes(10) + np.array([end], "<u4").tobytes() + name
    directory = front[end:-22] + central
    last = np.array([0, 0, 2, 2], "<u2").tobytes() + np.array([len(directory), end + len(local)], "<u4").tobytes()
    return front[:end] + local + directory + b"PK\x05\x06" + last + b"\0\0"


MUTATIONS: list[tuple[Callable[[Saved, Generator], None], float]] = [
    (edit_setting, 0.2), (edit_option, 0.05), (edit_element, 0.38), (edit_dtype, 0.06), (edit_shape, 0.08),
    (edit_names, 0.08), (rows_together, 0.05), (flip_bytes, 0.05), (cut, 0.03), (lie, 0.02),
]  # fmt: skip


def mutate(seeds: dict[str, Saved], kind: str, random: Generator) -> tuple[str, bytes]:
    """What was done, and the file."""
    saved = Saved(json.loads(json.dumps(seeds[kind].settings)), dict(seeds[kind].arrays))
    done = []
    for _ in range(1 + int(random.random() < 0.25) + int(random.random() < 0.1)):
        weights = np.array([weight for _, weight in MUTATIONS])
        function = MUTATIONS[random.choice(len(MUTATIONS), p=weights / weights.sum())][0]
        if saved.raw and function not in (flip_bytes, cut):
            continue
        if function is edit_names and random.random() < 0.3:  # an array of another agent
            other = seeds[list(seeds)[random.integers(len(seeds))]]
            name = _pick(other, random)
            saved.arrays[name] = other.arrays[name]
        else:
            function(saved, random)
        done.append(function.__name__)
    return "+".join(done), saved.raw or write(saved)


# -------------------------------------------------------------------------------------------------------------- attack


class Target:
    """The process that loads the files; started again after a crash."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def load(self, kind: str, path: Path) -> str:
        """What became of a file."""
        if self._process is None:
            self._process = subprocess.Popen(
                [*COMMAND, "serve", str(self._folder)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{kind}\t{path}\n".encode())
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], PATIENCE)
        line = process.stdout.readline() if ready else b""
        if line:
            return str(json.loads(line))
        self._process = None
        if not ready:
            process.kill()
        return f"failed: {'hung' if not ready else 'crashed'}, status {process.wait()}"

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.communicate()


def attack(budget: float, seed: int) -> Outcome:
    """Load that share of 10,000 mutated files."""
    outcome, became = Outcome("saved_agents"), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = subprocess.run([*COMMAND, "seeds", name], cwd=ROOT, check=True, capture_output=True, text=True)
        outcome.notes += [json.loads(line)["skipped"] for line in made.stdout.splitlines()]
        seeds = {path.stem: read(path) for path in sorted(folder.glob("*.zip"))}
        target = Target(folder)
        for kind in seeds:  # as they were saved
            if (answer := target.load(kind, folder / f"{kind}.zip")) != "used":
                outcome.fail(f"{kind} as saved: {answer}")
        for number in range(round(N_FILES * budget)):
            kind = list(seeds)[number % len(seeds)]
            what, content = mutate(seeds, kind, np.random.default_rng([seed, number]))
            path = folder / "mutated.zip"
            path.write_bytes(content)
            answer = target.load(kind, path)
            became[answer.split()[0].rstrip(":")] += 1
            if answer not in ("refused", "used"):
                outcome.fail(f"seed {seed}, file {number}, {kind}, {what}: {answer}")
        target.close()
        outcome.notes.append(f"{len(seeds)} kinds of agents: every method that can be saved, with every detector")
    outcome.tried, outcome.refused, outcome.survived = sum(became.values()), became["refused"], became["used"]
    return outcome
