"""A window, recordings and animations of a game."""
