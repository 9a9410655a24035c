"""The manifest of a run."""

import hashlib
import platform
from importlib.metadata import version

import msgspec

import nappingrl
from nappingrl._build import source_sha256
from nappingrl.methods.napping.candidates import choice_names
from nappingrl.registry import agents, detectors, domains, methods
from nappingrl.trials.chunks import chunk_size
from nappingrl.trials.manifest_record import Manifest
from nappingrl.trials.protocol import phases
from nappingrl.trials.spec import RunSpec


def _source_sha256(spec: RunSpec) -> str:
    """Hash of this package's source, and of the modules from outside that define the domain, method, ... of a run."""
    named = ((domains, spec.domain), (methods, spec.method), (detectors, spec.detector))
    used = [*named, (agents, f"{spec.domain}-{spec.agent}")]
    outside = [registry.entry(name).source_sha256() for registry, name in used if name in registry]
    parts = [source_sha256(), *filter(None, outside)]
    return parts[0] if len(parts) == 1 else hashlib.sha256("".join(parts).encode()).hexdigest()


def make_manifest(spec: RunSpec, agent_sha256: str, command: str, chunk: int = 0) -> Manifest:
    """What a completed spec runs: its identity, and what reports need to know; `chunk` 0: that of the table."""
    domain = spec.domain_spec
    return Manifest(
        spec=msgspec.to_builtins(spec),
        version=nappingrl.__version__,
        source_sha256=_source_sha256(spec),
        agent_sha256=agent_sha256,
        chunk=chunk or chunk_size(spec),
        n_trials=spec.n_trials,
        n_episodes=sum(count for _, count in phases(spec.protocol)),
        return_range=domain.return_range,
        solved_column=domain.solved.column if domain.solved else None,
        solved_level=domain.solved.level if domain.solved else None,
        parameters=dict(domain.parameters),
        action_names=list(choice_names(domain)),
        role=methods.entry(spec.method).role,
        command=command,
        versions={"python": platform.python_version()}
        | {name: version(name) for name in ("numpy", "numba", "gymnasium", "polars")},
    )
