"""Novelty detectors: has the world changed? State is kept per trial."""

from nappingrl.detect.base import Detector, Given, Never
from nappingrl.detect.returns import RollingMean

__all__ = ["Detector", "Given", "Never", "RollingMean"]
