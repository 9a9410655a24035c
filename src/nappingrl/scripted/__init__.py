"""Scripted agents: hand-written, each for one domain that it knows; the registry lists them as DOMAIN-NAME."""
