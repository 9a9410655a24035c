"""Runs: whatever the number of workers, and however often they are stopped, the rows are the same."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import nappingrl
import processes
from nappingrl.agents.base import Agent
from nappingrl.cli import main
from nappingrl.errors import BadAgentError, BadRunError, BadSpecError, UnknownNameError
from nappingrl.trials import deaths, manifest
from nappingrl.trials import runner as launch
from nappingrl.trials.engine import Engine
from nappingrl.trials.store import RunFolder
from patience import PATIENCE, wait_for
from processes import Process, members

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
TINY: dict[str, Any] = {"protocol": "0+1", "trials": 2}


# ---- in this process ----------------------------------------------------------------------------------------------


def test_without_out_rows_are_returned_and_nothing_is_written(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = nappingrl.run("cartpole", agent, "napping", trials=130, protocol="1+1").rows
    assert isinstance(rows, pl.DataFrame)
    assert rows["number"].to_list() == [number for number in range(130) for _ in range(2)]
    assert list(tmp_path.iterdir()) == []


def test_with_out_the_same_rows_are_in_the_folder(agent: Agent, tmp_path: Path) -> None:
    options: dict[str, Any] = {"trials": 130, "protocol": "1+3", "detector": "given", "seed": 4}
    rows = nappingrl.run("cartpole", agent, out=tmp_path / "run", **options).rows
    assert_frame_equal(rows, nappingrl.run("cartpole", agent, **options).rows)
    assert_frame_equal(rows, RunFolder.open(tmp_path / "run").read())
    assert sorted(p.name for p in tmp_path.glob("run/*.parquet")) == ["part-00000.parquet", "part-00001.parquet"]


def test_two_workers_give_the_rows_of_one(agent: Agent) -> None:
    options: dict[str, Any] = {"trials": 300, "protocol": "1+3", "detector": "given"}
    one, two = (nappingrl.run("cartpole", agent, workers=workers, **options).rows for workers in (1, 2))
    assert one["regions"].max() > 10  # type: ignore[operator]
    assert_frame_equal(one, two)


def test_a_finished_run_is_not_run_again(agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = nappingrl.run("cartpole", agent, out=tmp_path / "run", **TINY).rows
    monkeypatch.setattr(Engine, "run_trials", None)
    assert_frame_equal(nappingrl.run("cartpole", agent, out=tmp_path / "run", **TINY).rows, rows)


def test_only_missing_and_damaged_parts_are_run(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options: dict[str, Any] = {"trials": 520, "protocol": "0+1"}
    out = tmp_path / "run"
    rows = nappingrl.run("cartpole", agent, "frozen", out=out, **options).rows
    before = {file.name: file.read_bytes() for file in out.glob("*.parquet")}
    assert len(before) == 5
    (out / "part-00003.parquet").unlink()
    (out / "part-00001.parquet").write_bytes(before["part-00001.parquet"][:400])
    ran: list[int] = []
    run_chunk = launch.run_chunk
    monkeypatch.setattr(launch, "run_chunk", lambda s, a, chunk, f: (ran.append(chunk), run_chunk(s, a, chunk, f))[1])
    assert_frame_equal(nappingrl.run("cartpole", agent, "frozen", out=out, **options).rows, rows)
    assert ran == [1, 3]
    assert {file.name: file.read_bytes() for file in out.glob("*.parquet")} == before
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "part-00001.parquet is damaged" in err


def test_progress_counts_episodes_of_the_whole_run(agent: Agent, tmp_path: Path) -> None:
    options: dict[str, Any] = {"trials": 130, "protocol": "1+1"}
    for workers in (1, 2):
        told: list[tuple[int, int]] = []
        nappingrl.run("cartpole", agent, workers=workers, on_progress=lambda *now, t=told: t.append(now), **options)
        assert told[0] == (0, 260)
        assert told[-1] == (260, 260)
        assert told == sorted(told)
    nappingrl.run("cartpole", agent, out=tmp_path / "run", **options)
    (tmp_path / "run" / "part-00001.parquet").unlink()
    told = []
    nappingrl.run("cartpole", agent, out=tmp_path / "run", on_progress=lambda *now: told.append(now), **options)
    assert told[0] == (256, 260), "what is there already counts as done"
    assert told[-1] == (260, 260)


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"trials": 1}, {"method": "frozen"}, {"options": {"rule": "text", "space": "raw"}}]
)
def test_a_folder_of_another_experiment_is_refused(agent: Agent, tmp_path: Path, change: dict[str, Any]) -> None:
    nappingrl.run("cartpole", agent, out=tmp_path / "run", **TINY)
    ((name, value),) = change.items()
    with pytest.raises(
        BadRunError, match=rf"holds another run:.* {name} is .* there and {re.escape(repr(value))} here"
    ):
        nappingrl.run("cartpole", agent, out=tmp_path / "run", **TINY | change)


def test_a_folder_of_another_agent_is_refused(agent: Agent, other_agent: Agent, tmp_path: Path) -> None:
    nappingrl.run("cartpole", agent, out=tmp_path / "run", **TINY)
    other_agent.name = agent.name
    with pytest.raises(BadRunError, match="holds another run: agent has changed since; use another --out"):
        nappingrl.run("cartpole", other_agent, out=tmp_path / "run", **TINY)


def test_a_folder_of_other_source_is_refused(agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nappingrl.run("cartpole", agent, out=tmp_path / "run", **TINY)
    monkeypatch.setattr(manifest, "source_sha256", lambda: "0" * 64)
    with pytest.raises(BadRunError, match="holds another run: source has changed since; use another --out"):
        nappingrl.run("cartpole", agent, out=tmp_path / "run", **TINY)


def test_an_unknown_domain_is_named_as_such(agent: Agent) -> None:
    for player in (agent, "ppo"):
        with pytest.raises(UnknownNameError, match=r"unknown domain 'cartpol'.*Did you mean 'cartpole'"):
            nappingrl.run("cartpol", player, **TINY)


def test_no_workers_are_refused(agent: Agent) -> None:
    with pytest.raises(BadSpecError, match="workers 0 is not a whole number from 1 to 1024"):
        nappingrl.run("cartpole", agent, workers=0, **TINY)


@pytest.mark.parametrize(("domain", "workers"), [("mountaincar", 1), ("cartpole", 0)])
def test_what_is_refused_leaves_no_folder_behind(agent: Agent, tmp_path: Path, domain: str, workers: int) -> None:
    """Else the corrected command meets "holds another run"."""
    with pytest.raises((BadAgentError, BadSpecError)):
        nappingrl.run(domain, agent, out=tmp_path / "run", workers=workers, **TINY)
    assert not (tmp_path / "run").exists()


# ---- stopped processes --------------------------------------------------------------------------------------------

N_TRIALS, N_PARTS = 500, 4


def arguments(zip_file: Path, out: Path, workers: int) -> list[str]:
    return [
        "run", "cartpole", "--agent", str(zip_file), "--detector", "given", "--seed", "3", "--protocol", "2+8",
        "--trials", str(N_TRIALS), "--workers", str(workers), "--out", str(out),
    ]  # fmt: skip


@contextmanager
def started(zip_file: Path, out: Path, workers: int) -> Iterator[Process]:
    """`napping run` in its own session, once its first part exists; at the end all of the session is killed."""
    with processes.started(*arguments(zip_file, out, workers)) as process:
        wait_for(lambda: bool(parts(out)), process)
        yield process


def parts(out: Path) -> list[str]:
    return sorted(file.name for file in out.glob("*.parquet"))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, agent_zip: Path) -> Path:
    """The same run, left alone, with one worker."""
    out = tmp_path_factory.mktemp("undisturbed") / "run"
    main(arguments(agent_zip, out, 1))
    assert len(parts(out)) == N_PARTS
    return out


def assert_continues(zip_file: Path, out: Path, undisturbed: Path) -> None:
    """The same command finishes the run; its parts are those of the undisturbed one, byte by byte."""
    before = {name: (out / name).stat().st_mtime_ns for name in parts(out)}
    assert 0 < len(before) < N_PARTS, "it was stopped in the middle"
    main(arguments(zip_file, out, 1))
    assert parts(out) == parts(undisturbed)
    for name in parts(out):
        assert (out / name).read_bytes() == (undisturbed / name).read_bytes()
    assert {name: (out / name).stat().st_mtime_ns for name in before} == before, "finished parts are kept"


@LINUX
def test_kill_in_the_middle_and_continue(agent_zip: Path, tmp_path: Path, undisturbed: Path) -> None:
    out = tmp_path / "run"
    with started(agent_zip, out, workers=2) as process:
        assert len(members(process.pid)) >= 3
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert_continues(agent_zip, out, undisturbed)
        wait_for(lambda: not members(process.pid))  # the workers see that their parent is gone


@LINUX
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_a_hint_and_no_processes(
    agent_zip: Path, tmp_path: Path, undisturbed: Path, workers: int, number: int
) -> None:
    out = tmp_path / "run"
    with started(agent_zip, out, workers) as process:
        assert len(members(process.pid)) >= workers
        if number == signal.SIGINT:
            os.killpg(process.pid, number)  # as a terminal does it: parent and workers
        else:
            os.kill(process.pid, number)
        stdout, stderr = process.communicate(timeout=PATIENCE)
        assert process.returncode == 128 + number
        assert stdout == ""
        hint = rf"napping: stopped;.* Continue with: napping run .*--out {re.escape(str(out))}\n"
        assert re.fullmatch(hint, stderr)
        wait_for(lambda: not members(process.pid))  # the resource tracker ends just after its parent
    assert_continues(agent_zip, out, undisturbed)


@LINUX
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_killed_worker_is_named_with_its_signal_and_the_run_continues(
    agent_zip: Path, tmp_path: Path, undisturbed: Path, number: signal.Signals
) -> None:
    out = tmp_path / "run"
    with started(agent_zip, out, workers=2) as process:
        os.kill(busy_worker(process.pid), number)
        _, stderr = process.communicate(timeout=PATIENCE)
        assert process.returncode == 2
        text = f"a worker process was killed by {number.name}; finished parts are safe, run again to continue"
        assert stderr == f"napping: {text}\n"
        wait_for(lambda: not members(process.pid))
    assert_continues(agent_zip, out, undisturbed)


def test_workers_that_die_at_once_end_the_run(tmp_path: Path) -> None:
    """A script without `if __name__ == "__main__"` kills its workers before they have read the agent: 800 kB."""
    script = tmp_path / "script.py"
    script.write_text('import nappingrl\nnappingrl.run("cartpole", "dqn", trials=300, protocol="1+1", workers=2)\n')
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, cwd=tmp_path, timeout=PATIENCE, check=False
    )
    assert done.returncode == 1
    assert "a worker process ended with exit status 1; finished parts are safe" in done.stderr.splitlines()[-1]


def busy_worker(parent: int) -> int:
    """A worker; each of the two has a chunk left to run."""
    for pid in members(parent):
        if b"multiprocessing.spawn" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid
    pytest.fail("no worker")


@pytest.mark.parametrize(
    ("exit_code", "counts", "text"),
    [
        (-9, (3, 3), "was killed by SIGKILL"),
        (-9, (3, 4), "was killed by SIGKILL; memory may have run out, use fewer workers"),
        (-9, (None, None), "was killed by SIGKILL"),
        (-11, (3, 4), "was killed by SIGSEGV"),
        (-64, (3, 3), "was killed by SIGRTMAX"),
        (7, (3, 4), "ended with exit status 7"),
    ],
)
def test_only_the_kernel_s_counter_says_that_memory_ran_out(
    exit_code: int, counts: tuple[int | None, int | None], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter = tmp_path / "memory.events"
    monkeypatch.setattr(deaths, "OOM_COUNTERS", (tmp_path / "missing", counter))
    before, after = (f"low 0\noom 9\noom_kill {count}\n" if count else "" for count in counts)
    counter.write_text(before)
    n_kills = deaths.oom_kills()
    counter.write_text(after)
    assert deaths.cause_of_death(exit_code, n_kills) == text
