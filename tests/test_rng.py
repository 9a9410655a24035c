"""Random streams, one per trial: what one draws does not depend on the others, and what is drawn is random."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from nappingrl.rng import Streams


def rows_of(*rows: int) -> NDArray[np.int64]:
    return np.array(rows, np.int64)


def started(keys: Sequence[int], n: int | None = None) -> Streams:
    streams = Streams(n or len(keys))
    streams.start(np.arange(len(keys)), np.array(keys, np.uint64))
    return streams


def test_a_stream_alone_is_the_same_stream_among_others() -> None:
    keys = [5, 2**64 - 1, 0, 77]
    together, rng = started(keys), np.random.default_rng(0)
    drawn: dict[int, list[float]] = {row: [] for row in range(4)}
    for _ in range(200):  # any of them, in any order, of both kinds
        rows = rng.permutation(4)[: rng.integers(1, 5)]
        numbers = together.uniform(rows) if rng.random() < 0.5 else together.uniform(rows[::-1])[::-1]
        for row, number in zip(rows.tolist(), numbers.tolist(), strict=True):
            drawn[row].append(number)
    for row, key in enumerate(keys):
        alone = started([key])
        assert drawn[row] == [float(alone.uniform(rows_of(0))[0]) for _ in drawn[row]]
        assert len(set(drawn[row])) == len(drawn[row]) > 50


def test_uniform_and_integers_share_one_stream() -> None:
    """What is drawn next depends on how many numbers were drawn, not on their kind."""
    one, other = started([9]), started([9])
    one.uniform(rows_of(0))
    other.integers(rows_of(0), 5)
    assert one.uniform(rows_of(0)) == other.uniform(rows_of(0))


def test_start_begins_anew_in_its_rows_only() -> None:
    streams = started([1, 2])
    first = streams.uniform(rows_of(0, 1))
    second = started([1, 2])
    second.uniform(rows_of(0, 1))
    streams.start(rows_of(0), np.array([1], np.uint64))
    again = streams.uniform(rows_of(0, 1))
    assert again[0] == first[0]
    assert again[1] == second.uniform(rows_of(0, 1))[1] != first[1]


def test_the_key_decides() -> None:
    numbers = started([3, 3, 4]).uniform(rows_of(0, 1, 2))
    assert numbers[0] == numbers[1] != numbers[2]


@pytest.mark.parametrize("step", [1, 2**32, 2**63 // 5000])
def test_uniform_numbers_are_uniform_across_neighbouring_keys_and_in_time(step: int) -> None:
    n = 5000
    streams = started([key * step for key in range(n)])
    drawn = np.stack([streams.uniform(np.arange(n)) for _ in range(10)])
    assert drawn.dtype == np.float64
    assert drawn.min() >= 0.0
    assert drawn.max() < 1.0
    assert np.abs(drawn.mean(axis=1) - 0.5).max() < 4 * 0.289 / n**0.5
    assert np.abs(drawn.mean(axis=0) - 0.5).std() < 0.1
    counts = np.histogram(drawn, 20, (0, 1))[0]
    assert ((counts - 2500) ** 2 / 2500).sum() < 50, "chi squared of 19 degrees"
    assert np.abs(np.corrcoef(drawn) - np.eye(10)).max() < 0.08, "one draw says nothing of the next"


@pytest.mark.parametrize("high", [1, 2, 3, 5, 7, 300])
def test_integers_are_in_range_and_about_uniform(high: int) -> None:
    n = 4000
    streams = started(list(range(n)))
    drawn = np.concatenate([streams.integers(np.arange(n), high) for _ in range(10)])
    assert drawn.dtype == np.int64
    counts = np.bincount(drawn, minlength=high)
    assert len(counts) == high
    expected = 10 * n / high
    assert ((counts - expected) ** 2 / expected).sum() < high + 6 * (2 * high) ** 0.5
