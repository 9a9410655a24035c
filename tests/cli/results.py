"""Shared by the tests of the commands."""

import json
from pathlib import Path
from typing import Any

from command_line import Done

SUMMARY = {
    "domain", "agent", "method", "novelty", "trials", "seed", "median", "mean", "pre_mean", "last10_mean", "solved",
    "failed", "regions_mean", "regions_max", "steps", "seconds", "by_novelty", "ceiling",
    "role", "return_range", "diverged", "retention", "recall", "detector", "detection_rate", "detection_delay",
    "false_alarms", "acted", "why_not",
}  # fmt: skip


def last_json(done: Done) -> dict[str, Any]:
    """The JSON object on the last line of standard output."""
    assert (done.status, done.err) == (0, "")
    found: dict[str, Any] = json.loads(done.out.splitlines()[-1])
    return found


def assert_refused(done: Done, *texts: str) -> None:
    assert done.status == 2
    assert done.out == ""
    assert done.err.count("\n") == 1, done.err
    assert done.err.startswith("napping: ")
    for text in texts:
        assert text in done.err
    assert not Path("runs").exists(), "nothing is left behind"
