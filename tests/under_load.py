"""`make test-loaded`: the suite beside busy processes. A test that fails only here waits for a clock, not a condition.

python tests/under_load.py --busy 8 tests/trials
"""

import argparse
import subprocess
import sys

BUSY = "import os; parent = os.getppid()\nwhile os.getppid() == parent: pass"
"""Ends with its parent, however that ends."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--busy", type=int, default=8, help="busy processes (default: 8)")
    chosen, words = parser.parse_known_args()
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(chosen.busy)]
    try:
        command = [sys.executable, "-m", "pytest", *(words or ["-n", "2", "-m", "not slow"])]
        return subprocess.run(command, check=False).returncode
    finally:
        for process in busy:
            process.kill()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
