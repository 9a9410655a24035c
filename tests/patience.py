"""Waiting for conditions instead of clocks: the suite must pass on a busy machine."""

import subprocess
import time
from collections.abc import Callable
from typing import Any

PATIENCE = 600.0
"""Seconds until a wait counts as a hang. It ends a hang; it measures nothing."""


def wait_for(condition: Callable[[], object], process: subprocess.Popen[Any] | None = None) -> None:
    """Wait until a condition holds; a process that ends before is an error."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if process is not None and process.poll() is not None and not condition():
            raise AssertionError(f"ended early with status {process.returncode}: {process.communicate()}")
        assert time.monotonic() < end, f"it did not happen in {PATIENCE:g} s"
        time.sleep(0.005)
