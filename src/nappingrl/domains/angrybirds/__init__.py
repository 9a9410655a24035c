"""Angry Birds: an own physics world after the public facts about Science Birds."""
