"""Tables of commands: whole in a pipe, as wide as the terminal in one."""

import os
import pty
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from threading import Thread

import pytest

from nappingrl.cli.console import print_table

HEAD = ("run", *(f"column {i}" for i in range(8)))
ROW = ("cartpole ppo napping", *(f"{i} of [100] in all" for i in range(8)))


def in_terminal(monkeypatch: pytest.MonkeyPatch, width: int, rows: Sequence[tuple[str, ...]]) -> list[str]:
    """The lines of a table in a terminal."""
    ours, theirs = pty.openpty()
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    chunks: list[bytes] = []
    reader = Thread(target=read_all, args=(ours, chunks))
    reader.start()
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        print_table(HEAD, list(rows))
    reader.join()
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;]*m", "", b"".join(chunks).decode())
    return [line.rstrip() for line in text.splitlines()]


def read_all(descriptor: int, chunks: list[bytes]) -> None:
    """Read a terminal until its other end is closed, which is an error on Linux."""
    with suppress(OSError):
        while chunk := os.read(descriptor, 4096):
            chunks.append(chunk)


def test_a_pipe_gets_one_line_per_row(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(HEAD, [ROW, ROW])
    head, *rows = capsys.readouterr().out.splitlines()
    assert [head.split()[0], len(rows)] == ["run", 2]
    assert all("cartpole ppo napping" in row and "7 of [100] in all" in row for row in rows)


def test_a_terminal_that_is_wide_enough_gets_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(in_terminal(monkeypatch, 220, [ROW])) == 2


def test_few_rows_become_columns_in_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = in_terminal(monkeypatch, 80, [ROW, ROW])
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["run", *2 * ["cartpole", "ppo", "napping"]]
    assert [line.split("  ")[0] for line in lines] == list(HEAD)


def test_many_rows_stay_rows_in_several_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = in_terminal(monkeypatch, 80, [ROW] * 10)
    assert max(map(len, lines)) <= 80
    heads = [line.split()[0] for line in lines]
    assert heads.count("run") > 1
    assert heads.count("cartpole") == 10 * heads.count("run")
