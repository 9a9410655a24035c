"""Files of saved agents: a zip of JSON and npz, no pickle; written under another name first, so it is whole or absent.

A file is untrusted: its size is bounded before anything is unpacked, its settings are read as typed records.
"""

import io
import zipfile
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from nappingrl.errors import BadAgentError, BadSpecError
from nappingrl.files import UnusableFileError, read_arrays, read_file, read_zip
from nappingrl.snapshot import MAX_COUNT, MAX_EPISODE, MAX_NUMBER

FORMAT = 7
MAX_SAVED_BYTES = 2**29
"""The largest file, and the most that it may unpack to."""
MAX_SETTINGS_BYTES = 2**22
MAX_ENVS = 1024
"""Environments that one agent serves."""
MAX_SEED = 2**63 - 1
MAX_NAMES = 10_000
"""Names of contexts."""
_SETTINGS, _ARRAYS = "adapter.json", "principles.npz"

_ONE_LINE = r"\A[^\x00-\x1f\x7f-\x9f\u2028\u2029]*\Z"
Name = Annotated[str, Meta(max_length=200, pattern=_ONE_LINE)]
Count = Annotated[int, Meta(ge=0, le=MAX_COUNT)]
Context = Count
Episode = Annotated[int, Meta(ge=0, le=MAX_EPISODE)]
Return = Annotated[float, Meta(ge=-MAX_NUMBER, le=MAX_NUMBER)]
Magnitude = Annotated[float, Meta(ge=0, le=MAX_NUMBER)]


class SavedModel(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The base model, which the file only names."""

    name: Name
    model: Annotated[str, Meta(max_length=4096, pattern=_ONE_LINE)] | None
    """Path, or name of a shipped agent; None: a live model."""
    sha256: Annotated[str, Meta(pattern=r"\A[0-9a-f]{0,64}\Z")]


class SavedConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The arguments of `NappingAgent`."""

    domain: Name | None
    method: Name
    score: Name
    own_score: bool
    """Whether the score was an object of the user's; `score` is then only its name."""
    detector: Name
    own_detector: bool
    options: Annotated[dict[Name, Name | Return], Meta(max_length=200)]
    guard: bool
    n_envs: Annotated[int, Meta(ge=1, le=MAX_ENVS)]
    seed: Annotated[int, Meta(ge=0, le=MAX_SEED)]


class SavedDomain(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What a wrapped environment told of its domain; the bounds of observations are arrays."""

    name: Annotated[Name, Meta(min_length=1)]
    horizon: Count
    observation_names: Annotated[list[Name], Meta(max_length=MAX_NAMES)]
    action_names: Annotated[list[Name], Meta(max_length=MAX_NAMES)]


class SavedCalibration(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What `NappingAgent.calibrate` recorded, but for the steps."""

    steps: Count
    returns: Annotated[list[Return], Meta(min_length=1, max_length=MAX_NAMES)]


class SavedRecord(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What happened in an environment."""

    alarms: Annotated[list[Annotated[str, Meta(max_length=600, pattern=_ONE_LINE)]], Meta(max_length=10)]
    n_alarms: Count
    acted: Annotated[dict[Name, Count], Meta(max_length=100)]


class SavedSteps(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What an environment's `TransitionFilter` knows."""

    dropped: Count
    accepted: Count
    largest_observation: Magnitude
    largest_reward: Magnitude


class Settings(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Everything of a saved agent but its arrays."""

    agent: SavedModel
    config: SavedConfig
    domain: SavedDomain | None
    """None: `config` names it, or there is none."""
    contexts: Annotated[list[Context], Meta(max_length=MAX_ENVS)]
    names: Annotated[list[tuple[Context, Name]], Meta(max_length=MAX_NAMES)]
    episodes: Annotated[list[Episode], Meta(max_length=MAX_ENVS)]
    returns: Annotated[list[Return], Meta(max_length=MAX_ENVS)]
    steps: Annotated[list[SavedSteps], Meta(max_length=MAX_ENVS)]
    calibration: SavedCalibration | None
    journal: Annotated[list[SavedRecord], Meta(max_length=MAX_ENVS)]
    nappingrl: Name
    """The version that wrote the file."""
    format: int = FORMAT

    def __post_init__(self) -> None:
        """Check that there is one entry for each environment, and one name for each context."""
        for name in ("contexts", "episodes", "returns", "steps", "journal"):
            if len(getattr(self, name)) != self.config.n_envs:
                raise ValueError(f"{len(getattr(self, name))} {name} for {self.config.n_envs} environments")
        for kind, items in zip(("context", "name"), zip(*self.names, strict=True), strict=False):
            if len(set(items)) < len(items):
                raise ValueError(f"a {kind} occurs twice in names")


class _Version(msgspec.Struct):
    format: int


def write_saved(path: str | Path, settings: Settings, arrays: dict[str, NDArray[Any]]) -> Path:
    """Write the settings and the arrays; returns the path with its suffix."""
    path = Path(path)
    path = path if path.suffix == ".zip" else path.with_name(path.name + ".zip")
    content = msgspec.json.format(msgspec.json.encode(settings))
    try:
        msgspec.json.decode(content, type=Settings)
    except msgspec.ValidationError as error:
        raise BadSpecError(f"the agent cannot be saved: {error}") from error
    n_bytes = sum(array.nbytes for array in arrays.values())
    if n_bytes > 0.9 * MAX_SAVED_BYTES:
        raise BadSpecError(f"the agent has learned {n_bytes:,} bytes; at most {MAX_SAVED_BYTES:,} can be saved")
    packed = io.BytesIO()
    np.savez_compressed(packed, allow_pickle=False, **arrays)
    temporary = path.with_name(path.name + ".tmp")
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_SETTINGS, content)
        archive.writestr(_ARRAYS, packed.getvalue())
    temporary.replace(path)
    return path


def read_saved(path: str | Path) -> tuple[Settings, dict[str, NDArray[Any]]]:
    """What `write_saved` wrote; raises in one line where the file is anything else."""
    try:
        members = read_zip(read_file(path, MAX_SAVED_BYTES), MAX_SAVED_BYTES)
        if not {_SETTINGS, _ARRAYS} <= set(members):
            raise UnusableFileError(f"it has no {_SETTINGS} and {_ARRAYS}")
        settings = _read_settings(path, members[_SETTINGS])
        return settings, read_arrays(members[_ARRAYS], MAX_SAVED_BYTES)
    except (UnusableFileError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = " ".join(str(error).split())[:300]  # it may quote the file
        raise BadAgentError(f"{path} is not a saved NappingAgent ({reason}); give a file that save() wrote") from error


def _read_settings(path: str | Path, content: bytes) -> Settings:
    if len(content) > MAX_SETTINGS_BYTES:
        raise UnusableFileError(f"its settings have {len(content):,} bytes; at most {MAX_SETTINGS_BYTES:,} are read")
    version = msgspec.json.decode(content, type=_Version).format
    if version != FORMAT:
        raise BadAgentError(f"{path} has format {version}, this version reads {FORMAT}: save it again")
    return msgspec.json.decode(content, type=Settings)
