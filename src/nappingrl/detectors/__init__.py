"""Novelty detectors: has the world changed? State is kept per trial."""

from nappingrl.detectors.adwin import Adwin
from nappingrl.detectors.base import Announced, Detector, Never
from nappingrl.detectors.returns import Cusum, PageHinkley, RollingMean

__all__ = ["Adwin", "Announced", "Cusum", "Detector", "Never", "PageHinkley", "RollingMean"]
