"""Contract tests for domains, agents, methods and detectors, yours included: AssertionError says what is wrong."""

from nappingrl.testing.agent import check_agent
from nappingrl.testing.detector import check_detector
from nappingrl.testing.domain import check_domain
from nappingrl.testing.method import check_method

__all__ = ["check_agent", "check_detector", "check_domain", "check_method"]
