"""The ground truth of a level as the original game reports it."""
