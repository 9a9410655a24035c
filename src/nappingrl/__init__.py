"""nappingrl: a trained, frozen deep-RL agent keeps working when its world suddenly changes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gymnasium import register

if TYPE_CHECKING:
    from nappingrl.agent import NappingAgent as NappingAgent
    from nappingrl.agents import load as load_agent  # noqa: F401
    from nappingrl.methods.napping.principles import Principles as Principles
    from nappingrl.novelties import apply_novelty as apply_novelty
    from nappingrl.report.page import write_report as write_report
    from nappingrl.report.runs import read_run as read_run
    from nappingrl.report.runs import run as run
    from nappingrl.score import Score as Score

__version__ = "0.1.0"


_PUBLIC = {
    "NappingAgent": "nappingrl.agent:NappingAgent",
    "Principles": "nappingrl.methods.napping.principles:Principles",
    "Score": "nappingrl.score:Score",
    "apply_novelty": "nappingrl.novelties:apply_novelty",
    "load_agent": "nappingrl.agents:load",
    "read_run": "nappingrl.report.runs:read_run",
    "run": "nappingrl.report.runs:run",
    "write_report": "nappingrl.report.page:write_report",
}
__all__ = [*_PUBLIC]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used: `import nappingrl` stays light."""
    if name in _PUBLIC:
        module, attribute = _PUBLIC[name].split(":")
        return getattr(import_module(module), attribute)
    raise AttributeError(f"module 'nappingrl' has no attribute '{name}'")


for _domain, _id, _steps in (
    ("cartpole", "CartPole-v0", 200),
    ("mountaincar", "MountainCar-v0", 500),
    ("crossroad", "CrossRoad-v0", 100),
):
    register(
        f"nappingrl/{_id}",
        entry_point="nappingrl.domains.as_env:DomainEnv",
        vector_entry_point="nappingrl.domains.as_env:DomainVectorEnv",
        max_episode_steps=_steps,
        kwargs={"domain": _domain},
    )
register(
    "nappingrl/AngryBirds-v0",
    entry_point="nappingrl.domains.angrybirds.env:AngryBirdsEnv",
    vector_entry_point="nappingrl.domains.as_env:DomainVectorEnv",
    max_episode_steps=5,
    kwargs={"domain": "angrybirds"},
)
