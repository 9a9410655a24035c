"""Records as named arrays, and back."""

import io
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator, Philox
from numpy.typing import NDArray

from nappingrl.snapshot import flatten, unflatten


class Pair(NamedTuple):
    """A named tuple of arrays."""

    first: NDArray[np.float64]
    second: NDArray[np.int64]


@dataclass
class Inner:
    """A record that may be absent."""

    name: int
    values: list[float]


@dataclass
class Outer:
    """Everything that `flatten` takes."""

    big: int
    flag: bool
    share: float
    pair: Pair
    inner: Inner | None
    missing: Inner | None
    several: list[Inner]
    pairs: list[Pair]
    numbers: list[int]
    by_key: dict[int, Inner]
    totals: dict[int, float]
    random: Generator


def make() -> Outer:
    pair = Pair(np.array([1.5, np.inf]), np.zeros((0, 3), np.int64))
    random = Generator(Philox(key=2**70 + 3))
    random.integers(5, size=3, dtype=np.uint32)
    return Outer(
        2**64 - 1, True, 0.1, pair, Inner(3, [0.5]), None, [Inner(1, []), Inner(2, [1.0, 2.0])], [], [4, 5],
        {-1: Inner(7, [3.0])}, {}, random,
    )  # fmt: skip


def test_a_record_survives_an_npz_file() -> None:
    record, file = make(), io.BytesIO()
    np.savez(file, allow_pickle=False, **flatten(record, "saved"))
    file.seek(0)
    arrays = dict(np.load(file, allow_pickle=False))
    assert all(name.startswith("saved.") for name in arrays)
    again = unflatten(Outer, arrays, "saved")
    for name in ("big", "flag", "share", "inner", "missing", "several", "pairs", "numbers", "by_key", "totals"):
        assert getattr(again, name) == getattr(record, name)
        assert type(getattr(again, name)) is type(getattr(record, name))
    for mine, theirs in zip(again.pair, record.pair, strict=True):
        np.testing.assert_array_equal(mine, theirs)
        assert mine.dtype == theirs.dtype
    np.testing.assert_array_equal(again.random.normal(size=5), record.random.normal(size=5))
    np.testing.assert_array_equal(
        again.random.integers(9, size=5, dtype=np.uint32), record.random.integers(9, size=5, dtype=np.uint32)
    )


def test_restored_arrays_are_copies() -> None:
    record = make()
    arrays = flatten(record, "saved")
    unflatten(Outer, arrays, "saved").pair.first[0] = 9.0
    assert record.pair.first[0] == 1.5
