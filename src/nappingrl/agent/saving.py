"""Saved agents: what `NappingAgent.save` writes and `NappingAgent.load` reads; a file is not trusted."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

import nappingrl
from nappingrl.agent.calibration import Calibration
from nappingrl.agent.context_names import ContextNames
from nappingrl.agent.status import Record
from nappingrl.agents import load
from nappingrl.agents.hub import is_hub_name
from nappingrl.domains import trusted_domain
from nappingrl.errors import BadAgentError, BadSpecError, NappingError
from nappingrl.methods.base import check_saved
from nappingrl.snapshot.file import (
    SavedCalibration,
    SavedConfig,
    SavedDomain,
    SavedModel,
    SavedRecord,
    SavedSteps,
    Settings,
    read_saved,
    write_saved,
)
from nappingrl.types import DomainSpec, with_prefix

if TYPE_CHECKING:
    from nappingrl.agent import NappingAgent

Arrays = dict[str, NDArray[Any]]
_BOUNDS = ("observation_low", "observation_high")


def save_agent(agent: "NappingAgent", path: str | Path) -> Path:
    """Write a zip of JSON and npz (no pickle)."""
    check_saved(agent.config["method"], agent.config["options"])
    if agent.adaptation.value is not None:
        raise BadSpecError("an agent with score 'learned' cannot be saved: its value estimate has no file format")
    adaptation, domain, known = agent.adaptation, agent.domain, agent.calibration
    is_read = bool(domain.name) and agent.config["domain"] is None  # from a wrapped environment
    settings = Settings(
        agent=SavedModel(agent.agent.name, agent.model_path, agent.agent.sha256),
        config=SavedConfig(**agent.config),
        domain=_saved_domain(domain) if is_read else None,
        contexts=adaptation.contexts.tolist(),
        names=agent.names.items(),
        episodes=agent.episodes.tolist(),
        returns=adaptation.returns.tolist(),
        steps=[SavedSteps(*counts) for counts in adaptation.filter.counts()],
        calibration=None if known is None else SavedCalibration(known.steps, list(known.returns)),
        journal=[SavedRecord(record.alarms, record.n_alarms, record.acted) for record in agent.journal.records],
        nappingrl=nappingrl.__version__,
    )
    bounds = {f"domain/{name}": getattr(domain, name) for name in _BOUNDS} if is_read else {}
    return write_saved(path, settings, adaptation.state() | bounds)


def load_saved(
    agent_class: "type[NappingAgent]", path: str | Path, model: Any, score: Any, detector: Any, domain: str | None
) -> "NappingAgent":
    """Read what `save_agent` wrote; `NappingAgent.load` says what the arguments mean."""
    settings, arrays = read_saved(path)
    config, saved = settings.config, settings.agent
    model = saved.model if model is None else model
    if is_hub_name(saved.model) and model == saved.model:
        model = load(model)  # from the local cache: a file starts no download
    if model is None:
        raise BadAgentError(f"{path} was saved with a live model, '{saved.name}'; give it as model=")
    for kind, given, is_own in (("score", score, config.own_score), ("detector", detector, config.own_detector)):
        if given is None and is_own:
            name = getattr(config, kind)
            raise BadAgentError(f"{path} was saved with your own {kind} '{name}'; give it as {kind}=")
    try:
        check_saved(config.method, config.options)
        agent = agent_class(
            model, domain=trusted_domain(config.domain, domain), method=config.method,
            score=score or (config.domain and config.score) or None, detector=detector or config.detector,
            guard=config.guard, n_envs=config.n_envs, seed=config.seed, **config.options,
        )  # fmt: skip
        agent.model_path = agent.model_path or saved.model
        if agent.agent.sha256 != saved.sha256:
            raise BadAgentError(f"it belongs to other weights than {saved.model or saved.name} has now")
        if settings.domain is not None:
            agent.adopt(_restored_domain(agent.domain, settings.domain, with_prefix("domain/", arrays)))
        _restore(agent, settings, arrays, with_detector=detector is None or config.own_detector)
    except NappingError as error:
        raise BadAgentError(f"{path} cannot be loaded: {error}") from error
    return agent


def _restore(agent: "NappingAgent", settings: Settings, arrays: Arrays, with_detector: bool) -> None:
    adaptation = agent.adaptation
    adaptation.contexts[:], agent.names = settings.contexts, ContextNames(settings.names)
    agent.episodes[:], adaptation.returns[:] = settings.episodes, settings.returns
    adaptation.filter.restore(msgspec.structs.astuple(steps) for steps in settings.steps)
    agent.has_begun = True
    agent.journal.records = [
        Record(list(record.alarms), record.n_alarms, dict(record.acted)) for record in settings.journal
    ]
    if settings.calibration is not None:
        agent.calibration = Calibration(settings.calibration.steps, tuple(settings.calibration.returns))
    try:
        adaptation.restore(arrays, with_detector)
    except (LookupError, TypeError, ValueError, ArithmeticError) as error:  # of a method that checks nothing
        raise BadAgentError(f"its arrays do not fit ({' '.join(str(error).split())})") from error


def _saved_domain(domain: DomainSpec) -> SavedDomain:
    return SavedDomain(domain.name, domain.horizon, list(domain.observation_names), list(domain.action_names))


def _restored_domain(bare: DomainSpec, saved: SavedDomain, bounds: Arrays) -> DomainSpec:
    """The domain as the wrapped environment described it."""
    low, high = (bounds.get(name, np.zeros(0)) for name in _BOUNDS)
    for array in (low, high):
        if array.dtype.kind != "f" or array.shape != bare.observation_low.shape or np.isnan(array).any():
            raise BadAgentError("the bounds of its observations do not fit the agent")
    n_names = bare.observation_low.size if bare.observation_low.ndim == 1 else 0
    if (low > high).any() or (len(saved.observation_names), len(saved.action_names)) != (n_names, bare.n_actions):
        raise BadAgentError("the bounds or names of its domain do not fit the agent")
    return replace(
        bare,
        name=saved.name,
        title=saved.name,
        horizon=saved.horizon,
        observation_low=low,
        observation_high=high,
        observation_names=tuple(saved.observation_names),
        observation_words=tuple((f"{name} < 0", f"{name} > 0") for name in saved.observation_names),
        action_names=tuple(saved.action_names),
    )
