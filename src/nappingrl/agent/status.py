"""What an agent does now and has done: a status to read, and one log line per change."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from nappingrl.adaptation import Adaptation
from nappingrl.errors import shown
from nappingrl.types import Rows

log = logging.getLogger("nappingrl")

AGENT = "agent"
"""The frozen agent, among what acted."""
State = Literal["waiting", "calibrating", "watching", "cannot alarm", "changed"]
STATES = get_args(State)
TOLD = "told that the environment has changed"
"""By the detector `given`, or by `NappingAgent.switch_to`."""
MAX_ALARM = 500
"""Characters that describe an alarm."""
MAX_ALARMS = 5
"""Alarms that are remembered; all are counted."""


@dataclass(frozen=True, slots=True)
class Status:
    """What an agent does in one environment."""

    state: State
    """waiting for an environment, calibrating, watching, cannot alarm, or: the environment has changed."""
    detector: str
    """The same in words, such as "alarm at step 3 of episode 0 (pole angle)"."""
    acting: str = ""
    """What acts, such as the name of a method; empty: the frozen agent."""
    rule: str = ""
    """What it does, in words."""
    why: str = ""
    """Why the frozen agent acts although the environment has changed."""
    acted: Mapping[str, int] = field(default_factory=dict)
    """Number of episodes in which each acted; `agent` is the frozen agent."""
    n_alarms: int = 0
    """Number of alarms so far."""
    alarms: tuple[str, ...] = ()
    """When and why the latest of them were raised, the oldest first."""

    def __str__(self) -> str:
        """One line."""
        counts = ", ".join(f"{name} {n}" for name, n in self.acted.items())
        parts = [self.detector, acts(self), self._earlier_alarms(), f"episodes: {counts}" if counts else ""]
        return "; ".join(part for part in parts if part)

    def _earlier_alarms(self) -> str:
        """The number of alarms, and when those were raised that `detector` does not tell."""
        is_told = bool(self.alarms) and self.detector == f"alarm at {self.alarms[-1]}"
        earlier = [alarm.partition(" (")[0] for alarm in self.alarms[: -1 if is_told else None]]
        if not earlier:
            return ""
        count = f"{self.n_alarms} alarm{'s' * (self.n_alarms != 1)} so far"
        return f"{count}, {'the ones before' if is_told else 'the latest'} at {', '.join(reversed(earlier))}"


def acts(status: Status) -> str:
    """What acts now, in words."""
    if status.acting:
        return f"{status.acting} acts: {status.rule}" if status.rule else f"{status.acting} acts"
    return f"the frozen agent acts: {status.why}" if status.why else "the frozen agent acts"


@dataclass(slots=True)
class Record:
    """What is known of one environment."""

    alarms: list[str] = field(default_factory=list)
    """When and why the detector raised its latest alarms, the oldest first."""
    n_alarms: int = 0
    acted: dict[str, int] = field(default_factory=dict)


class Journal:
    """Follows an adaptation, and logs what changes in each environment."""

    def __init__(self, adaptation: Adaptation) -> None:
        n = adaptation.method.n
        self.adaptation = adaptation
        self.records = [Record() for _ in range(n)]
        self._steps = np.zeros(n, np.int64)
        """Steps of the episode under way."""
        self._logged_detector, self._logged_acts = [""] * n, [""] * n
        """The latest line about the detector, and about what acts instead of the frozen agent."""

    def status(self, row: int) -> Status:
        """What happens in an environment."""
        adaptation, record = self.adaptation, self.records[row]
        method = adaptation.method
        acting = method.acting(row)
        rule = method.describe(row) if acting else ""
        past = dict(record.acted), record.n_alarms, tuple(record.alarms)
        if adaptation.contexts[row]:
            why = "" if acting else method.status(row)
            told = f"alarm at {record.alarms[-1]}" if record.alarms else TOLD
            return Status("changed", told, acting, rule, why, *past)
        why = adaptation.detector.status(row)
        if not why:
            return Status("watching", "watching", acting, rule, "", *past)
        is_calibrating = "calibrating" in why or why.startswith("needs")
        state: State = "calibrating" if is_calibrating else "cannot alarm"
        return Status(state, f"the detector {why}", acting, rule, "", *past)

    def steps(self, row: int) -> int:
        """Steps of the episode under way."""
        return int(self._steps[row])

    def step(self, rows: Rows, alarmed: Rows, episodes: Rows) -> None:
        """One step was observed in `rows`; `alarmed` are those where it raised an alarm, in these episodes."""
        self._steps[rows] += 1
        for row in alarmed.tolist():
            self._note_alarm(row, f"step {self._steps[row]} of episode {episodes[row]}")
        if log.isEnabledFor(logging.INFO):
            for row in rows.tolist():
                is_acting = bool(self.adaptation.method.acting(row))
                if is_acting != bool(self._logged_acts[row]) or not self._logged_detector[row]:
                    self.look(row)

    def end_episode(self, rows: Rows) -> None:
        """An episode ended: count what acted."""
        for row in rows.tolist():
            acted = self.records[row].acted
            name = self.adaptation.method.acting(row) or AGENT
            acted[name] = acted.get(name, 0) + 1

    def begin_episode(self, rows: Rows, alarmed: Rows, episodes: Rows) -> None:
        """Another one begins; `alarmed` are those where the one before raised an alarm at its end."""
        self._steps[rows] = 0
        for row in alarmed.tolist():
            self._note_alarm(row, f"the end of episode {episodes[row] - 1}")
        for row in rows.tolist():
            self.look(row)

    def discard_episode(self, row: int) -> None:
        """The episode under way was cut."""
        self._steps[row] = 0

    def _note_alarm(self, row: int, where: str) -> None:
        what = self.adaptation.detector.explain(row)
        record = self.records[row]
        record.alarms.append(shown(where + (f" ({what})" if what else ""), MAX_ALARM))
        del record.alarms[:-MAX_ALARMS]
        record.n_alarms += 1
        self.look(row)

    def look(self, row: int) -> None:
        """Log what has changed since the last look."""
        if not log.isEnabledFor(logging.INFO):
            return
        status = self.status(row)
        where = f"environment {row}: " if self.adaptation.method.n > 1 else ""
        detector = status.detector if status.state == "changed" else status.state
        before, self._logged_detector[row] = self._logged_detector[row], detector
        if detector != before:
            is_back = before not in ("", *STATES) and status.state != "changed"
            log.info("%s%s%s", where, "the original environment is back; " if is_back else "", status.detector)
        now = acts(status) if status.acting else ""
        before, self._logged_acts[row] = self._logged_acts[row], now
        if now != before:
            because = f" because {status.why}" if status.why else ""
            log.info("%s%s", where, now or f"back to the agent{because}")
