"""Python programs with little memory to spare: the tests of hostile files run them on what asks for gigabytes."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import resource, sys
from pathlib import Path
from nappingrl.errors import BadAgentError
{imports}
path = Path(sys.argv[1])
pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + {spare}
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    {action}
except BadAgentError as error:
    print("refused:", error)
"""


def refusal(path: Path, imports: str, action: str, spare: int) -> str:
    """The one line that refuses a file, in a process with `spare` bytes more than it needs; `action` reads `path`."""
    program = PROGRAM.format(imports=imports, action=action, spare=spare)
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("refused: "), done.stderr
    assert done.stdout.count("\n") == 1
    return done.stdout.removeprefix("refused: ")
