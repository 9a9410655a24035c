"""The manifest of a run as a record, and how it is read: strictly, before anything else sees it."""

import hashlib
import os
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from nappingrl.errors import BadRunError, BadSpecError, UnknownNameError, check_name
from nappingrl.files import UnusableFileError, read_file
from nappingrl.registry import ROLES
from nappingrl.trials.limits import MAX_EPISODES, MAX_MANIFEST_BYTES, MAX_NAMES, MAX_PARTS, MAX_TRIALS
from nappingrl.trials.protocol import phases
from nappingrl.trials.spec_record import RunRecord, Text

MANIFEST = "manifest.json"
Texts = Annotated[list[Text], Meta(max_length=MAX_NAMES)]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a run is: rows of two different manifests are never mixed."""

    spec: dict[str, Any]
    """The completed RunSpec."""
    version: Text
    source_sha256: Text
    """Hash of the package's source: other code may give other rows."""
    agent_sha256: Text
    chunk: Annotated[int, Meta(ge=1, le=MAX_TRIALS)]
    """Trials per part."""
    n_trials: Annotated[int, Meta(ge=1, le=MAX_TRIALS)]
    n_episodes: Annotated[int, Meta(ge=1, le=MAX_EPISODES)]
    return_range: tuple[float, float] | None
    """The least and the greatest return; None: unknown."""
    solved_column: Text | None
    solved_level: float | None
    command: Text = ""
    """How the run was started first; not part of its identity."""
    versions: Annotated[dict[Text, Text], Meta(max_length=MAX_NAMES)] = field(default_factory=dict)
    """Python and libraries that it was started with; not part of its identity."""
    parameters: Annotated[dict[Text, float], Meta(max_length=MAX_NAMES)] = field(default_factory=dict)
    """The domain's parameters before the novelty."""
    action_names: Texts = field(default_factory=list)
    role: Text = "method"
    """Of the method: method, baseline, control or oracle."""
    notes: Texts = field(default_factory=list)
    """What a reader should know, one line each."""

    @property
    def label(self) -> str:
        """A short name for tables and legends."""
        spec = self.spec
        agent = Path(str(spec["agent"])).stem
        return f"{spec['domain']} {agent} {spec['method']}"

    @property
    def n_chunks(self) -> int:
        """Number of parts of the finished run."""
        return -(-self.n_trials // self.chunk)

    @property
    def record(self) -> RunRecord:
        """The spec as a record."""
        return msgspec.convert(self.spec, RunRecord)

    @property
    def identity(self) -> str:
        """Hash of all that decides the rows: every part carries it. A run that can grow keeps it when it does."""
        parts = {name: getattr(self, name) for name in IDENTITY}
        if self.can_grow:
            parts["spec"] = {name: value for name, value in self.spec.items() if name != "trials"}
            del parts["n_trials"]
        return _hash(parts)

    @property
    def identities(self) -> set[str]:
        """The identity, and the one of runs of earlier versions, which could not grow."""
        return {self.identity, _hash({name: getattr(self, name) for name in IDENTITY})}

    @property
    def can_grow(self) -> bool:
        """Whether more trials come after those that there are; trials of several novelties lie novelty by novelty."""
        return bool(self.spec["novelty"] != "all")

    def is_smaller_than(self, other: "Manifest") -> bool:
        """Whether the other is the same run with more trials."""
        return self.can_grow and self.identity == other.identity and self.n_trials < other.n_trials


def _hash(parts: dict[str, Any]) -> str:
    return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()


IDENTITY = ("spec", "version", "source_sha256", "agent_sha256", "chunk", "n_trials", "n_episodes")


class ManifestError(BadRunError):
    """Raised for a manifest that cannot be used; its text is the reason."""


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a run; BadRunError says in one line what is wrong with it."""
    path = folder / MANIFEST
    if not os.path.exists(path):  # Path.exists() raises where a folder must not be read
        raise BadRunError(f"{folder} holds no run: {MANIFEST} is missing; give the --out folder of a run")
    try:
        return parse_manifest(read_file(path, MAX_MANIFEST_BYTES))
    except (UnusableFileError, ManifestError) as error:
        raise BadRunError(f"{path} cannot be read: {error}") from error


def parse_manifest(content: bytes) -> Manifest:
    """The manifest in the content of a file, checked."""
    try:
        manifest = msgspec.json.decode(content, type=Manifest)
        _check(manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, BadSpecError, UnknownNameError) as error:
        raise ManifestError(str(error)) from error
    return manifest


def _check(manifest: Manifest) -> None:
    """Check what the types cannot."""
    for name in (one.name for one in fields(RunRecord)):
        if name not in manifest.spec:
            raise ManifestError(f"its spec has no '{name}'")
    spec = manifest.record
    for options in (spec.options, spec.domain_options):
        msgspec.convert(options, dict[Text, Text | int | float | bool | None])
    n_episodes = sum(count for _, count in phases(spec.protocol))
    if n_episodes != manifest.n_episodes:
        raise ManifestError(f"n_episodes is {manifest.n_episodes}, but protocol {spec.protocol} has {n_episodes}")
    if manifest.n_trials % spec.trials or (spec.novelty != "all" and manifest.n_trials != spec.trials):
        raise ManifestError(f"n_trials is {manifest.n_trials}, but its spec has {spec.trials} trials of {spec.novelty}")
    if manifest.n_chunks > MAX_PARTS:
        raise ManifestError(f"it has {manifest.n_chunks} parts; at most {MAX_PARTS} are read")
    if manifest.return_range is not None and not manifest.return_range[0] < manifest.return_range[1]:
        raise ManifestError(f"return_range is {manifest.return_range}; the first number must be the smaller one")
    if (manifest.solved_column is None) != (manifest.solved_level is None):
        raise ManifestError("solved_column and solved_level go together, but only one of them is given")
    check_name("role", manifest.role, ROLES)
