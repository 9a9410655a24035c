"""Frozen: the trained agent as it is, the paper's Baseline."""

from nappingrl.methods.base import Method


class Frozen(Method):
    """Acts as the trained agent wants and never learns."""

    role = "baseline"
    accepts_stateful_agents = True
