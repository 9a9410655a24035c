"""Schedules: numbers that go on changing after the novelty, from episode to episode or from step to step.

    9.8->20 over 20 episodes     from 9.8 to 20 within 20 episodes, then 20
    20 at 40                     20 from the 40th episode on (counted from 0); several: 20 at 10, 5 at 30
    sine(9.8, 5, 20)             9.8 plus 5 times a sine with a period of 20 episodes
    walk(9.8, 0.5)               a random walk from 9.8, with Gaussian steps of 0.5 per episode

Episodes count from the novelty on, steps (`over 200 steps`, `20 at 40 steps`, ...) from the beginning of each episode.
"""

import math
import re
from dataclasses import dataclass

import numpy as np

from nappingrl.errors import BadSpecError

EPISODES, STEPS = "episodes", "steps"
MAX_TIME = 1_000_000
MAX_JUMPS = 1000
_NUMBER = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
_UNIT = r"(episodes?|steps?)?"
_FORMS = {
    "ramp": re.compile(rf"{_NUMBER}->{_NUMBER}over(\d+){_UNIT}"),
    "jumps": re.compile(rf"((?:{_NUMBER}at\d+,)*{_NUMBER}at\d+){_UNIT}"),
    "sine": re.compile(rf"sine\({_NUMBER},{_NUMBER},{_NUMBER}\){_UNIT}"),
    "walk": re.compile(rf"walk\({_NUMBER},{_NUMBER}\){_UNIT}"),
}
_LOOKS = re.compile(r"->|\dat\d|sine|walk|over")


@dataclass(frozen=True, slots=True)
class Schedule:
    """The values of one number over time."""

    kind: str
    """ramp, jumps, sine or walk."""
    numbers: tuple[float, ...]
    """ramp: first, last, duration; jumps: value, time, ...; sine: mean, amplitude, period; walk: first, spread."""
    unit: str = EPISODES

    def __str__(self) -> str:
        """As it is written in a description."""
        n = [f"{number:.15g}" for number in self.numbers]
        suffix = f" {STEPS}" if self.unit == STEPS else ""
        if self.kind == "ramp":
            return f"{n[0]}->{n[1]} over {n[2]} {self.unit}"
        if self.kind == "jumps":
            return ", ".join(f"{value} at {time}" for value, time in zip(n[::2], n[1::2], strict=True)) + suffix
        return f"{self.kind}({', '.join(n)}){suffix}"

    @property
    def ends(self) -> tuple[float, ...]:
        """Values that its numbers name: all of these must be allowed."""
        if self.kind == "ramp":
            return self.numbers[:2]
        if self.kind == "jumps":
            return self.numbers[::2]
        mean, spread = self.numbers[:2]
        return (mean - spread, mean + spread) if self.kind == "sine" else (mean,)

    def peak(self, before: float) -> float:
        """A value that is far from the one before the novelty."""
        first, spread = self.numbers[:2]
        ends = (*self.ends, first + 3 * spread) if self.kind == "walk" else self.ends
        return max(ends, key=lambda value: (abs(value - before), value))

    def value(self, time: int, before: float, seed: int = 0) -> float:
        """The value at a time, counted from 0; `before` is the one before the novelty."""
        if self.kind == "ramp":
            first, last, duration = self.numbers
            return first + (last - first) * min(time / duration, 1.0)
        if self.kind == "jumps":
            past = [v for v, at in zip(self.numbers[::2], self.numbers[1::2], strict=True) if at <= time]
            return past[-1] if past else before
        first, spread = self.numbers[:2]
        if self.kind == "sine":
            return first + spread * math.sin(2 * math.pi * time / self.numbers[2])
        return first + spread * float(np.random.default_rng(seed).standard_normal(time).sum())


def read_schedule(text: str) -> Schedule | None:
    """The schedule in a text without spaces; None where it is none."""
    for kind, form in _FORMS.items():
        if match := form.fullmatch(text):
            return _checked(_read(kind, match), text)
    if _LOOKS.search(text):
        raise BadSpecError(
            f"'{text:.60}' is no schedule; allowed: 1->2 over 20 episodes, 2 at 40, sine(mean, amplitude, period), "
            "walk(first, spread), each with episodes or steps"
        )
    return None


def _read(kind: str, match: re.Match[str]) -> Schedule:
    unit = STEPS if (match[match.re.groups] or "").startswith("step") else EPISODES
    if kind == "jumps":
        pairs = sorted((tuple(map(float, one.split("at"))) for one in match[1].split(",")), key=lambda pair: pair[1])
        return Schedule(kind, tuple(number for pair in pairs for number in pair), unit)
    return Schedule(kind, tuple(map(float, match.groups()[:-1])), unit)


def _checked(schedule: Schedule, text: str) -> Schedule:
    times = {"ramp": schedule.numbers[2:], "jumps": schedule.numbers[1::2], "sine": schedule.numbers[2:]}
    least = 0 if schedule.kind == "jumps" else 1
    if not all(least <= time <= MAX_TIME for time in times.get(schedule.kind, ())):
        raise BadSpecError(f"'{text:.60}' has a time outside of {least} to {MAX_TIME}")
    if not all(map(math.isfinite, schedule.numbers)) or len(schedule.numbers) > 2 * MAX_JUMPS:
        raise BadSpecError(f"'{text:.60}' has a number that is not finite, or more than {MAX_JUMPS} jumps")
    if schedule.kind == "walk" and schedule.numbers[1] <= 0:
        raise BadSpecError(f"'{text:.60}' does not move: the spread of a walk must be greater than 0")
    return schedule
