"""`napping birds`: the Angry Birds server, its levels and results."""
