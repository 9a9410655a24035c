"""Novelty detectors: has the world changed? State is kept per trial."""

from nappingrl.detect.adwin import Adwin
from nappingrl.detect.base import Detector, Given, Never
from nappingrl.detect.returns import Cusum, PageHinkley, RollingMean

__all__ = ["Adwin", "Cusum", "Detector", "Given", "Never", "PageHinkley", "RollingMean"]
