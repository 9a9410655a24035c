"""Checks of the arguments of `NappingAgent`."""

from pathlib import Path
from typing import Any

from nappingrl.adaptation import ENDLESS_OPTIONS, AdaptationSpec
from nappingrl.agents.base import Agent
from nappingrl.errors import BadAgentError, BadSpecError, UnknownNameError, did_you_mean
from nappingrl.registry import methods
from nappingrl.snapshot.file import MAX_ENVS, MAX_SEED
from nappingrl.types import DomainSpec

_ARGUMENTS = ("model", "domain", "method", "score", "detector", "guard", "n_envs", "seed")


def default_method(domain: DomainSpec, score: object) -> str:
    """The method where none is given."""
    return "auto" if score is None and domain.observation_low.ndim == 1 else "napping"


def resolve(domain: DomainSpec, spec: AdaptationSpec) -> AdaptationSpec:
    """The complete spec; a misspelt argument gets the nearest one."""
    options = {name for method in methods.names() for name in methods.get(method).options}
    for name in spec.options:
        hint = did_you_mean(name, [*_ARGUMENTS, *options])
        if name not in options and any(argument in hint for argument in _ARGUMENTS):
            raise UnknownNameError(f"unknown argument '{name}' of NappingAgent.{hint}")
    if methods.get(spec.method).is_privileged:
        raise BadSpecError(f"method '{spec.method}' needs the true parameters; it only runs in trials")
    return spec.resolve(domain, ENDLESS_OPTIONS)


def check_sizes(agent: Agent, n_envs: int, seed: int) -> None:
    """Raise if there are too many environments, or the agent does not know its sizes."""
    if not 1 <= n_envs <= MAX_ENVS or not 0 <= seed <= MAX_SEED:
        raise BadSpecError(
            f"n_envs={n_envs}, seed={seed} given; allowed: 1 to {MAX_ENVS} environments and seeds from 0 to {MAX_SEED}"
        )
    if not agent.embedding_dim or (not agent.n_actions and agent.action_low is None):
        raise BadAgentError(f"agent {agent.name} does not know its sizes yet: give TorchAgent its observation_shape=")


def path_of(model: Any) -> str | None:
    """How a saved agent finds its model: a file's full path or a shipped agent's name; None for live objects."""
    if isinstance(model, str | Path):
        return str(Path(model).resolve()) if Path(model).exists() else str(model)
    return None
