"""Frozen: the trained agent as it is, the paper's Baseline."""

from nappingrl.methods.base import Method


class Frozen(Method):
    """Acts as the trained agent wants and never learns."""

    accepts_stateful_agents = True
    can_be_saved = True
    needs_alarm = False
