"""Agents saved or trained by Stable-Baselines3."""
