"""Benchmarks: the engine against the loop a user would write, and the learners against SB3."""
