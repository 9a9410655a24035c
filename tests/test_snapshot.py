"""Records as named arrays, and back."""

import io
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest
from numpy.random import Generator, Philox
from numpy.typing import NDArray

from nappingrl.errors import BadAgentError
from nappingrl.snapshot import Expected, flatten, restore_arrays, unflatten


class Pair(NamedTuple):
    """A named tuple of arrays."""

    first: Annotated[NDArray[np.float64], Expected(("m",), low=0, with_inf=True)]
    second: Annotated[NDArray[np.int64], Expected((0, "k"), below="n")]


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
    again = unflatten(Outer, arrays, "saved", {"n": 3})
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
    unflatten(Outer, arrays, "saved", {"n": 3}).pair.first[0] = 9.0
    assert record.pair.first[0] == 1.5


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("pair.first", np.array([1.5, np.nan]), "array 'saved.pair.first' holds nan; allowed: 0 to 1e.30"),
        ("pair.first", np.array([-1.0]), "holds -1.0"),
        ("pair.first", np.array([1e31]), "holds 1e[+]31"),
        ("pair.first", np.zeros(2, np.float32), "has type float32; allowed: float64"),
        ("pair.first", np.zeros((2, 2)), r"has shape \(2, 2\); allowed: 1 axes"),
        ("pair.second", np.ones((2, 3), np.int64), r"has shape \(2, 3\); allowed: \(0, 3\)"),
        ("flag", np.array(1), "has type int64; allowed: bool"),
        ("share", np.array(np.inf), "holds inf"),
        ("share", np.zeros(2), "allowed: one number"),
        ("several.length", np.array(-1), "is -1; allowed: 0 to 100000"),
        ("several.length", np.array(10**9), "is 1000000000"),
        ("several.length", np.array(3), "array 'saved.several.2.name' is missing"),
        ("several", np.array([1.0]), "is missing|float64"),
        ("numbers", np.array([0.5]), "has type float64; allowed: int"),
        ("by_key.keys", np.array([-1, -1]), "2 keys, 1 different"),
        ("by_key.keys", np.array(["__class__"]), "has type <U9; allowed: int64"),
        ("random", np.full(13, 2**64 - 1, np.uint64), "at most 4, 1"),
        ("random", np.zeros(12, np.uint64), r"has shape \(12,\)"),
    ],
)
def test_what_was_not_expected_is_refused_by_name(name: str, array: NDArray[Any], message: str) -> None:
    arrays = flatten(make(), "saved") | {f"saved.{name}": array}
    if name == "several":
        del arrays["saved.several.length"]
    with pytest.raises(BadAgentError, match=message) as caught:
        unflatten(Outer, arrays, "saved", {"n": 3})
    assert "\n" not in str(caught.value)


class Thing:
    """An object that keeps arrays."""

    saved = {"index": Expected(low=0, below="n")}  # noqa: RUF012

    def __init__(self) -> None:
        self.index, self.total = np.zeros(2, np.int64), np.zeros(2)


def test_the_arrays_of_an_object_keep_type_shape_and_range() -> None:
    thing = Thing()
    good = {"index": np.array([0, 4]), "total": np.array([1.0, 2.0]), "__class__": np.zeros(1)}
    restore_arrays(thing, good, sizes={"n": 5})
    np.testing.assert_array_equal(thing.index, [0, 4])
    assert type(thing) is Thing
    for bad in ({"index": np.array([0, 5])}, {"index": np.zeros(3, np.int64)}, {"total": np.array([np.nan, 0.0])}):
        with pytest.raises(BadAgentError):
            restore_arrays(thing, good | bad, sizes={"n": 5})
    with pytest.raises(BadAgentError, match="array 'total' is missing"):
        restore_arrays(thing, {"index": good["index"]}, sizes={"n": 5})
