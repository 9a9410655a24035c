"""Contract tests for domains, methods and detectors, yours included: each raises AssertionError with what is wrong."""

from nappingrl.testing.detector import check_detector
from nappingrl.testing.domain import check_domain
from nappingrl.testing.method import check_method

__all__ = ["check_detector", "check_domain", "check_method"]
