"""Small pieces of HTML. Everything from outside goes through `text`."""

import html
import math
from collections.abc import Iterable, Sequence
from importlib.resources import files

from nappingrl.report.intervals import Interval

ONE_TRIAL = "one trial: no interval"
FEW_TRIALS = "too few trials: no interval"


def text(value: object) -> str:
    """Any value as text of a page or of an attribute."""
    return html.escape(str(value), quote=True)


def resource(name: str) -> str:
    """A file of this package, its line ends those of HTML."""
    return files("nappingrl.report.page").joinpath(name).read_text(encoding="utf-8").replace("\r\n", "\n")


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """A table with headers; the cells are HTML already, the first of each row is its header."""
    columns = "".join(f"<th scope='col'>{cell}</th>" for cell in head)
    body = "".join(
        f"<tr><th scope='row'>{first}</th>{''.join(f'<td>{cell}</td>' for cell in rest)}</tr>" for first, *rest in rows
    )
    return (
        f"<div class='scroll' tabindex='0' role='region' aria-label='{text(caption)}'><table class='{kind}'>"
        f"<caption>{text(caption)}</caption><thead><tr>{columns}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Terms and their descriptions, of plain text."""
    return "<dl>" + "".join(f"<dt>{text(term)}</dt><dd>{text(words)}</dd>" for term, words in pairs) + "</dl>"


def items(lines: Iterable[str], kind: str = "") -> str:
    """A list of plain text; empty where there is nothing to list."""
    found = "".join(f"<li>{text(line)}</li>" for line in lines)
    return f"<ul class='{kind}'>{found}</ul>" if found else ""


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


def span(interval: Interval | None, digits: int, n: int, is_share: bool = False) -> str:
    """An interval as small print below its value."""
    return f"<small>{span_words(interval, digits, n, is_share)}</small>"


def decimals(*values: float) -> int:
    """A readable number of decimals for numbers of this size."""
    size = max(map(abs, values))
    return 0 if size >= 1000 else 1 if size >= 100 else 2 if size >= 10 else 3


def range_decimals(return_range: tuple[float, float]) -> int:
    """Four digits of a return."""
    return max(0, 3 - math.floor(math.log10(return_range[1] - return_range[0])))
