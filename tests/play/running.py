"""A running playground for tests: the command itself, in its own process."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from processes import Process, started


@contextmanager
def playground(*words: str) -> Iterator[tuple[Process, str]]:
    """`napping play` with these words: the process, and the link that it printed."""
    with started("play", "--no-browser", *words) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line)
        if found is None:
            raise AssertionError(f"no link in {line!r}: {process.communicate()}")
        yield process, found[0]
