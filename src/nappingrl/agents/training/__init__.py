"""Training of the shipped agents."""
