"""Cells of the tables of a page, and numbers in words. The templates make them HTML and escape every text."""

import math
from dataclasses import dataclass, field

from nappingrl.report.intervals import Interval

ONE_TRIAL = "one trial: no interval"
FEW_TRIALS = "too few trials: no interval"


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table, of plain text."""

    value: str
    small: tuple[str, ...] = ()
    """Lines of small print below the value."""
    code: str = ""
    """A name or a hash, after the value."""
    is_best: bool = False
    footnote: int = 0
    """Number of the footnote that says why there is no value."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with headers; the first cell of each row is its header."""

    caption: str
    head: tuple[str, ...]
    rows: list[list[Cell | str]] = field(default_factory=list)
    kind: str = ""
    """Its CSS class."""


def number(value: float, digits: int) -> str:
    """A number with this many decimals, and no minus before a zero."""
    return f"{round(value, digits) + 0.0:.{digits}f}"


def span_words(interval: Interval | None, digits: int, n: int, is_share: bool = False) -> str:
    """An interval in words, or why there is none."""
    if interval is None:
        return ONE_TRIAL if n == 1 else FEW_TRIALS
    if interval.low == interval.high:
        return "the same in all trials"
    if is_share:
        return f"{interval.low:.0%} to {interval.high:.0%}"
    return f"{number(interval.low, digits)} to {number(interval.high, digits)}"


def decimals(*values: float) -> int:
    """A readable number of decimals for numbers of this size."""
    size = max(map(abs, values))
    return 0 if size >= 1000 else 1 if size >= 100 else 2 if size >= 10 else 3


def range_decimals(return_range: tuple[float, float]) -> int:
    """Four digits of a return."""
    return max(0, 3 - math.floor(math.log10(return_range[1] - return_range[0])))
