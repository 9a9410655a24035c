"""FineTune: the frozen agent until the novelty is detected, then trained on as SB3 would."""

from collections.abc import Mapping
from typing import ClassVar

from nappingrl.agents.base import Agent
from nappingrl.errors import BadSpecError
from nappingrl.methods.base import MethodInfo
from nappingrl.methods.online import Online
from nappingrl.options import Option
from nappingrl.types import Rows, Transition


class FineTune(Online):
    """Learns and explores from the first step after the detection on."""

    options: ClassVar[Mapping[str, Option]] = {
        **Online.options,
        "buffer": Option(
            "empty",
            "replay buffer of a DQN agent at detection: empty, or with the transitions before it",
            ("empty", "kept"),
        ),
    }
    learns_at_once: ClassVar[bool] = False
    needs_alarm = True

    def __init__(self, agent: Agent, info: MethodInfo, n: int) -> None:
        super().__init__(agent, info, n)
        if self._keeps_buffer() and self._trainable.kind != "q":
            raise BadSpecError("option buffer=kept is for DQN agents; PPO has no replay buffer")

    def _watch(self, rows: Rows, transition: Transition) -> None:
        if self._keeps_buffer():
            self.learner.remember(rows, transition)

    def _keeps_buffer(self) -> bool:
        return bool(self.option("buffer") == "kept")
