"""Levels: files, our own templates, and tasks generated from templates."""
