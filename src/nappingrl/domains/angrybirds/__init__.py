"""Angry Birds: a physics of our own after the published facts about Science Birds."""
