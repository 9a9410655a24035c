"""Re-grounding."""
