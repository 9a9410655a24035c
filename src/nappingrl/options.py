"""Options that methods and domains declare: what is allowed, and how given values are read."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nappingrl.errors import BadSpecError, check_name


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a method or a domain: its default, what is allowed, and what it does."""

    default: str | float | None
    """A word, a number, or None: its owner decides."""
    description: str
    words: tuple[str, ...] = ()
    """Allowed words; empty: a number."""
    low: float = 0.0
    high: float = np.inf
    """Bounds of a number."""
    is_whole: bool = False
    """Whether it must be a whole number."""

    def read(self, name: str, value: Any) -> str | float:
        """The value, checked; numbers may come as text."""
        if self.words:
            return check_name(name, str(value), self.words)
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise BadSpecError(f"option {name}={value} is not a number") from None
        if not np.isfinite(number) or not self.low <= number <= self.high:
            raise BadSpecError(f"option {name}={value} is outside its range, {self.low:g} to {self.high:g}")
        if self.is_whole and number != int(number):
            raise BadSpecError(f"option {name}={value} is not a whole number")
        return number


def read_values(
    kind: str, declared: Mapping[str, Option], given: Mapping[str, Any], stated: Collection[str] = ()
) -> dict[str, Any]:
    """The given values, checked; those at their default are left out unless `stated` names them.

    Examples:
        >>> read_values("option", {"speed": Option(1.0, "metres per second")}, {"speed": "2.5"})
        {'speed': 2.5}
    """
    for name in given:
        check_name(kind, name, declared)
    read = {name: declared[name].read(name, value) for name, value in given.items()}
    return {name: value for name, value in read.items() if name in stated or value != declared[name].default}
