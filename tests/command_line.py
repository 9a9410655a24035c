"""The command line, called in this process."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from nappingrl.cli import main


class Done(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str


Napping = Callable[..., Done]


@pytest.fixture
def napping(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Napping:
    """Runs the command line in an empty working folder."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)

    def call(*arguments: str | Path) -> Done:
        capsys.readouterr()
        status = 0
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
        out, err = capsys.readouterr()
        return Done(status, out, err)

    return call
