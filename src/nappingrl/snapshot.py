"""Saved agents: a zip of JSON and npz, no pickle; written under another name first, so that it is whole or absent."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.errors import BadAgentError

FORMAT = 2


def write_saved(path: str | Path, settings: dict[str, Any], tables: dict[str, NDArray[Any]]) -> Path:
    """Write the settings and the arrays; returns the path with its suffix."""
    path = Path(path)
    path = path if path.suffix == ".zip" else path.with_name(path.name + ".zip")
    arrays = io.BytesIO()
    np.savez_compressed(arrays, allow_pickle=False, **tables)
    temporary = path.with_name(path.name + ".tmp")
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("adapter.json", json.dumps({"format": FORMAT} | settings, indent=2))
        archive.writestr("principles.npz", arrays.getvalue())
    temporary.replace(path)
    return path


def read_saved(path: str | Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What `write_saved` wrote; raises in one line where the file is anything else."""
    try:
        with zipfile.ZipFile(path) as archive:
            settings = json.loads(archive.read("adapter.json"))
            tables = dict(np.load(io.BytesIO(archive.read("principles.npz")), allow_pickle=False))
        format_ = settings["format"]
        assert {"config", "agent"} <= set(settings)
    except (OSError, KeyError, ValueError, AssertionError, TypeError, zipfile.BadZipFile) as error:
        raise BadAgentError(f"{path} is not a saved NappingAgent ({error}); give a file that save() wrote") from error
    if format_ != FORMAT:
        raise BadAgentError(f"{path} has format {format_}, this version reads {FORMAT}: save it again")
    return settings, tables
