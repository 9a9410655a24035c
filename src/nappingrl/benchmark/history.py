"""A file of measurements, one line of JSON each, with machine and commit: so that a slowdown is seen."""

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import numba
import numpy as np

import nappingrl

_llvm: Any = import_module("llvmlite.binding")  # it has no types


def append_to_history(path: Path, measured: dict[str, Any]) -> None:
    """Add a line."""
    line = {"date": datetime.now(UTC).date().isoformat(), "commit": _commit(), "machine": _machine()} | measured
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def _commit() -> str:
    """The commit of the checkout that is the current folder, or the version where it is none; "+": with changes."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return nappingrl.__version__
    return done.stdout.strip()


def _machine() -> dict[str, Any]:
    return {
        "cpu": _llvm.get_host_cpu_name(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "numba": numba.__version__,
        "numpy": np.__version__,
    }
