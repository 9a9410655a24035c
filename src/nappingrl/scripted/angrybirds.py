"""Scripted agents of Angry Birds."""

from nappingrl.domains.angrybirds.actions import N_ACTIONS
from nappingrl.domains.angrybirds.layout import N_OBSERVATIONS
from nappingrl.scripted.base import ScriptedAgent


class ScriptedBirdsAgent(ScriptedAgent):
    """A scripted agent of Angry Birds."""

    def __init__(self) -> None:
        super().__init__(N_ACTIONS, (N_OBSERVATIONS,))
