"""Foresight: search in the imagined world for a simple rule that earns more than the frozen agent does there."""
