"""What is done with experience."""
