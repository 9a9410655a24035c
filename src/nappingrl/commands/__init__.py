"""The sub-commands of `napping`, by what they are for."""
