"""The largest runs that are accepted; docs/limits.md lists and explains them."""

MAX_TRIALS = 10_000_000
"""Trials of a run, of all its novelties together."""
MAX_EPISODES = 10_000
"""Episodes of a trial. A chunk of 128 such trials takes about 150 MB."""
MAX_SEED = 2**63 - 1
MAX_WORKERS = 1024
MAX_LEVELS = 100_000
"""Angry Birds levels that one command makes or plays."""
MAX_PORT = 2**16 - 1
MAX_COUNT = 1_000_000
"""Of whatever else is counted: rules to print, attempts, agents, restarts."""
MAX_PARTS = 100_000
"""Parts of a run."""
MAX_PART_BYTES = 1_000_000_000
MAX_PUBLISHED_CELLS = 1_000_000_000
"""Rows times columns of a published file; they take about 10 GB."""
MAX_MANIFEST_BYTES = 10_000_000
MAX_TEXT = 10_000
"""Characters of a name, a path, a description or a note."""
MAX_NAMES = 10_000
"""Entries of a list of names, such as those of actions."""
