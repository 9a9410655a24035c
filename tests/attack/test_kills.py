"""The attack by signals notices what a command does wrong."""

import sys
from pathlib import Path

import pytest

from tests.attack.kills import Victim, harass
from tests.attack.outcome import Outcome

GOOD = """
import os, signal, time
from pathlib import Path
signal.signal(signal.SIGINT, lambda *_: os._exit(130))
out = Path("out")
out.mkdir(exist_ok=True)
for number in range(6):
    part = out / f"part-{number}.parquet"
    if not part.exists():
        temporary = part.with_suffix(".parquet.tmp")
        temporary.write_text(str(number))
        temporary.replace(part)
        time.sleep(0.2)
"""
FAULTS = {
    "": "",
    "differs from an undisturbed one": "(out / 'starts').open('a').write('x')",
    "status 3 instead of": "signal.signal(signal.SIGINT, lambda *_: os._exit(3))",
    "a traceback": "print('Traceback')",
}


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_noticed(fault: str, tmp_path: Path) -> None:
    outcome = Outcome("kills")
    program = GOOD.replace("for number", FAULTS[fault] + "\nfor number")
    landed = harass(Victim("toy", ("run",), program=("-c", program)), tmp_path / "toy", 12, 1, outcome)
    assert (outcome.tried, landed.total()) == (12, 12)
    assert len([where for where in landed if where.endswith("after the first part")]) > 0
    if fault:
        assert any(fault in failure for failure in outcome.failures), outcome.failures
    else:
        assert outcome.failures == []
