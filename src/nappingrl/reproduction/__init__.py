"""The paper: its evaluation, its claims and its figures."""
