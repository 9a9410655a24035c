"""Levels: files, templates, tasks, placement."""
