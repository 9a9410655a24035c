"""nappingrl: keep a trained, frozen deep-RL agent working when its environment suddenly changes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from nappingrl import signals as _signals  # noqa: F401  # first: Ctrl-C during the imports of a command is quiet
from nappingrl.errors import AdaptationWarning, NappingError, did_you_mean
from nappingrl.registry import list_available, register, register_with_gymnasium

if TYPE_CHECKING:
    from nappingrl.agent import NappingAgent as NappingAgent
    from nappingrl.agents import load_agent as load_agent
    from nappingrl.agents.base import Agent as Agent
    from nappingrl.agents.torch_agent import TorchAgent as TorchAgent
    from nappingrl.detectors.base import Detector as Detector
    from nappingrl.domains.base import Domain as Domain
    from nappingrl.methods.base import Method as Method
    from nappingrl.novelties import apply_novelty as apply_novelty
    from nappingrl.novelties.novelty import Novelty as Novelty
    from nappingrl.options import Option as Option
    from nappingrl.report.page import write_report as write_report
    from nappingrl.report.runs import Run as Run
    from nappingrl.report.runs import read_run as read_run
    from nappingrl.report.runs import run as run
    from nappingrl.score import Score as Score
    from nappingrl.types import DomainSpec as DomainSpec

__version__ = "0.1.0"

_LAZY = {
    "Agent": "nappingrl.agents.base:Agent",
    "Detector": "nappingrl.detectors.base:Detector",
    "Domain": "nappingrl.domains.base:Domain",
    "DomainSpec": "nappingrl.types:DomainSpec",
    "Method": "nappingrl.methods.base:Method",
    "NappingAgent": "nappingrl.agent:NappingAgent",
    "Novelty": "nappingrl.novelties.novelty:Novelty",
    "Option": "nappingrl.options:Option",
    "Run": "nappingrl.report.runs:Run",
    "Score": "nappingrl.score:Score",
    "TorchAgent": "nappingrl.agents.torch_agent:TorchAgent",
    "apply_novelty": "nappingrl.novelties:apply_novelty",
    "load_agent": "nappingrl.agents:load_agent",
    "read_run": "nappingrl.report.runs:read_run",
    "run": "nappingrl.report.runs:run",
    "write_report": "nappingrl.report.page:write_report",
}
"""Public names that are imported when they are first used: `import nappingrl` stays light."""
__all__ = ["AdaptationWarning", "NappingError", "__version__", "list_available", "register", *_LAZY]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        module, attribute = _LAZY[name].split(":")
        return getattr(import_module(module), attribute)
    raise AttributeError(f"module 'nappingrl' has no attribute '{name}'.{did_you_mean(name, __all__)}")


def __dir__() -> list[str]:
    return sorted(__all__)


register_with_gymnasium()
