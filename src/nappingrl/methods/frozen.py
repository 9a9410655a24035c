"""Frozen: the trained agent as it is, the paper's Baseline."""

from nappingrl.methods.base import Method
from nappingrl.methods.compiled import CompiledMethod, as_agent


class Frozen(Method):
    """Acts as the trained agent wants and never learns."""

    accepts_stateful_agents = True
    can_be_saved = True
    needs_alarm = False

    def compiled(self) -> CompiledMethod | None:
        """Nothing but the agent."""
        return as_agent() if type(self) is Frozen else None
