"""Measurements of speed, for `napping bench`."""
