"""The playground: a frozen and an adapting agent side by side, in a world that a visitor changes."""
