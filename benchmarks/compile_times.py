"""What the first run of a fresh installation compiles: CPU seconds of each kernel, without the kernels it calls.

python benchmarks/compile_times.py cartpole --agent ppo --method napping

The cache of compiled kernels is a new folder. A kernel that is inlined is compiled with each of its callers, so its
time is theirs.
"""

import argparse
import os
import tempfile
import time
from collections import Counter
from typing import Any

from numba.core.event import Listener, register

SHOWN = 15


class CompileTimes(Listener):  # type: ignore[misc] # numba has no types
    """How long numba compiles each kernel."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.n_compiled: Counter[str] = Counter()
        self._running: list[str] = []
        self._since = 0.0

    def on_start(self, event: Any) -> None:
        """A kernel interrupts the one that calls it."""
        self._count()
        kernel = event.data["dispatcher"].py_func
        self._running.append(f"{kernel.__module__.removeprefix('nappingrl.')}.{kernel.__name__}")
        self.n_compiled[self._running[-1]] += 1

    def on_end(self, event: Any) -> None:
        """Back to the caller."""
        self._count()
        self._running.pop()

    def _count(self) -> None:
        now = time.process_time()
        if self._running:
            self.seconds[self._running[-1]] += now - self._since
        self._since = now


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("domain", nargs="?", default="cartpole")
    parser.add_argument("--agent", default="ppo")
    parser.add_argument("--method", default="napping")
    options = parser.parse_args()
    times = CompileTimes()
    register("numba:compile", times)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NUMBA_CACHE_DIR"] = folder  # before the first kernel is imported
        import nappingrl

        nappingrl.run(options.domain, options.agent, options.method, trials=1, protocol="2+2", workers=1)
    total, compiling = time.process_time(), times.seconds.total()
    slowest = times.seconds.most_common(SHOWN)
    print(f"| {options.domain} {options.agent} {options.method} | compiled | CPU seconds |\n|---|---|---|")
    for name, seconds in slowest:
        print(f"| `{name}` | {times.n_compiled[name]} | {seconds:.2f} |")
    n_others = times.n_compiled.total() - sum(times.n_compiled[name] for name, _ in slowest)
    print(f"| other kernels | {n_others} | {compiling - sum(seconds for _, seconds in slowest):.2f} |")
    print(f"| imports and the trial itself | | {total - compiling:.2f} |")
    print(f"| **all** | {times.n_compiled.total()} | {total:.2f} |")


if __name__ == "__main__":
    main()
