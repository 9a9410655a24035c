"""`napping birds`: play, serve and write Angry Birds levels."""
