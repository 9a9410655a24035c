"""The scripts of benchmarks/ as modules."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "benchmarks"


def load_benchmark(name: str) -> Any:
    """The module of benchmarks/NAME.py."""
    spec = spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
