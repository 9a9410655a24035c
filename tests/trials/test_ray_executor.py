"""Runs on Ray: whichever machines do the work, and whichever of them die, the parts are those of a local run."""

import importlib.util
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import nappingrl
from nappingrl.agents.base import Agent
from nappingrl.cli import main
from nappingrl.errors import BadRunError, BadSpecError, MissingExtraError, UnknownNameError
from nappingrl.trials import manifest
from nappingrl.trials import ray_executor as cluster
from nappingrl.trials.store import RunFolder
from patience import PATIENCE, wait_for

HAS_RAY = importlib.util.find_spec("ray") is not None
NEEDS_RAY = pytest.mark.skipif(not HAS_RAY and os.environ.get("CI") != "true", reason="ray is not installed")
"""In CI these tests may not be skipped: without ray they fail."""
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
SHORT: dict[str, Any] = {"method": "frozen", "protocol": "1+1", "trials": 500}
LONG: dict[str, Any] = {"method": "napping-ucb", "protocol": "2+18", "trials": 1000, "detector": "given"}
"""It has no kernel: a chunk takes seconds, so that the second node starts a worker before the first has done it all."""
LOOPBACK = {"7F000001", "0000000000000000FFFF00000100007F", "0100007F", "00000000000000000000000001000000"}


@pytest.fixture(scope="module")
def ray_settings() -> Iterator[None]:
    """Loopback only, and nothing written to the home folder or Ray's usual one. Ray reads most of it but once."""
    folder = tempfile.TemporaryDirectory(prefix="nr-", ignore_cleanup_errors=True)  # sockets need short paths
    settings = {
        "RAY_TMPDIR": folder.name,
        "RAY_health_check_period_ms": "500",
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
    }
    with folder, pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        patch.delenv("RAY_ADDRESS", raising=False)
        yield


class Nodes:
    """A Ray cluster on this machine, of a head with one CPU and nodes that come and go."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self.cluster = Cluster(True, head_node_args={"num_cpus": 1, "include_dashboard": False})

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    def add(self) -> Any:
        return self.cluster.add_node(num_cpus=1)

    def workers(self) -> list[int]:
        """Processes that run a chunk at this moment."""
        raylets = {node.all_processes["raylet"][0].process.pid for node in self.cluster.list_all_nodes()}
        return [pid for pid, (parent, title) in processes().items() if parent in raylets and "napping-chunk" in title]

    def run(self, agent: Agent, **options: Any) -> pl.DataFrame:
        return nappingrl.run("cartpole", agent, executor="ray", address=self.address, **options).rows


@pytest.fixture(scope="module")
def nodes(ray_settings: None) -> Iterator[Nodes]:
    nodes = Nodes()
    yield nodes
    nodes.cluster.shutdown()


def processes() -> dict[int, tuple[int, str]]:
    """Parent and title of every living process."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            title = (folder / "cmdline").read_text().replace("\0", " ")
        except (OSError, UnicodeDecodeError):
            continue
        if state not in "ZX":
            found[int(folder.name)] = (int(parent), title)
    return found


def descendants(pid: int) -> set[int]:
    children = {child for child, (parent, _) in processes().items() if parent == pid}
    return children.union(*(descendants(child) for child in children))


def parts(out: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in out.glob("*.parquet")}


# ---- refusals: none needs a Ray -----------------------------------------------------------------------------------


def test_an_unknown_executor_is_named_with_the_nearest(agent: Agent, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"unknown executor 'rai'; allowed: local, ray. Did you mean 'ray'\?"):
        nappingrl.run("cartpole", agent, out=tmp_path / "run", executor="rai", **SHORT)
    assert not (tmp_path / "run").exists()


def test_an_address_without_ray_is_refused(agent: Agent) -> None:
    with pytest.raises(BadSpecError, match="address 'auto' is given, but executor 'local' has none"):
        nappingrl.run("cartpole", agent, address="auto", **SHORT)


def test_missing_ray_is_one_line_and_status_2(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError):
        nappingrl.run("cartpole", agent, executor="ray", **SHORT)
    with pytest.raises(SystemExit) as ended:
        main(["run", "cartpole", "--method", "frozen", "--executor", "ray", "--out", str(tmp_path / "run")])
    assert ended.value.code == 2
    assert capsys.readouterr().err == 'napping: --executor ray needs ray: pip install "nappingrl[ray]"\n'
    assert not (tmp_path / "run").exists()


@NEEDS_RAY
@pytest.mark.parametrize("address", ["head", "ray://head:10001", "head:port", ":6379"])
def test_an_address_of_another_form_is_refused(ray_settings: None, agent: Agent, address: str) -> None:
    with pytest.raises(BadSpecError, match=f"address '{address}' is not allowed; allowed: auto, or HOST:PORT"):
        nappingrl.run("cartpole", agent, executor="ray", address=address, **SHORT)


@NEEDS_RAY
def test_an_address_where_nothing_listens_is_refused_at_once(ray_settings: None, agent: Agent, tmp_path: Path) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{bound.getsockname()[1]}"
        with pytest.raises(BadRunError, match=f"nothing answers at {address} .*; begin a cluster: ray start --head"):
            nappingrl.run("cartpole", agent, out=tmp_path / "run", executor="ray", address=address, **SHORT)
    assert not (tmp_path / "run").exists()


@NEEDS_RAY
@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b""])
def test_an_address_where_something_else_listens_is_refused_at_once(
    ray_settings: None, agent: Agent, answer: bytes
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(100)
                connection.sendall(answer)

        Thread(target=serve, daemon=True).start()
        with pytest.raises(BadRunError, match=f"what answers at {address} is not Ray"):
            nappingrl.run("cartpole", agent, executor="ray", address=address, **SHORT)


# ---- in a cluster of more than one node ---------------------------------------------------------------------------


@NEEDS_RAY
@LINUX
def test_parts_are_those_of_a_local_run_and_either_continues_the_other(
    nodes: Nodes, agent: Agent, tmp_path: Path
) -> None:
    local, far = tmp_path / "local", tmp_path / "far"
    rows = nappingrl.run("cartpole", agent, out=local, **SHORT).rows
    told: list[tuple[int, int]] = []
    on_terminate = signal.getsignal(signal.SIGTERM)
    assert_frame_equal(nodes.run(agent, out=far, on_progress=lambda *now: told.append(now), **SHORT), rows)
    assert signal.getsignal(signal.SIGTERM) == on_terminate
    assert told[0] == (0, 1000)
    assert told[-1] == (1000, 1000)
    assert sorted({done for done, _ in told} - {0, 1000})[0] in (232, 256), "whole chunks"
    assert len(parts(far)) == 4
    assert parts(far) == parts(local)
    assert RunFolder.open(far).manifest == RunFolder.open(local).manifest

    for out, place in ((local, {"executor": "ray", "address": nodes.address}), (far, {})):
        (out / "part-00002.parquet").unlink()
        nappingrl.run("cartpole", agent, out=out, **place, **SHORT)
    assert parts(far) == parts(local)
    assert_frame_equal(nodes.run(agent, **SHORT), rows)


@NEEDS_RAY
@LINUX
def test_a_killed_node_and_a_killed_worker_lose_no_rows(
    nodes: Nodes, agent: Agent, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = nappingrl.run("cartpole", agent, out=tmp_path / "local", **LONG).rows
    second = nodes.add()
    killed: list[str] = []

    def on_progress(done: int, total: int) -> None:
        """Of eight chunks: after the first the second node dies, after the third a worker of the head."""
        if done == 0:
            return
        if not killed:
            wait_for(lambda: len(nodes.workers()) == 2)
            nodes.cluster.remove_node(second, allow_graceful=False)
            killed.append("node")
        elif killed == ["node"] and done > 3 * 128 * 20 - 1:
            wait_for(nodes.workers)
            os.kill(nodes.workers()[0], signal.SIGKILL)
            killed.append("worker")

    rows = nodes.run(agent, out=tmp_path / "far", on_progress=on_progress, **LONG)
    assert killed == ["node", "worker"]
    assert_frame_equal(rows, expected)
    assert parts(tmp_path / "far") == parts(tmp_path / "local")
    told = capsys.readouterr()
    assert told.out == ""
    lines = told.err.splitlines()
    assert len(lines) == 2, "nothing of Ray's, and one line per loss"
    assert all(re.fullmatch(r"napping: lost with their workers, run again: chunks \d", line) for line in lines)


@NEEDS_RAY
@LINUX
def test_a_chunk_that_always_kills_its_worker_is_given_up(
    nodes: Nodes, agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "TRIES", 2)
    hunted = [True]

    def hunt() -> None:
        while hunted:
            for pid in nodes.workers():
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)

    hunter = Thread(target=hunt)
    hunter.start()
    try:
        with pytest.raises(BadRunError, match=r"the workers of chunk \d died 2 times \(WorkerCrashedError\); finished"):
            nodes.run(agent, out=tmp_path / "run", **LONG)
    finally:
        hunted.clear()
        hunter.join()
    assert not parts(tmp_path / "run")


@NEEDS_RAY
@LINUX
def test_another_nappingrl_in_the_cluster_is_refused(
    nodes: Nodes, agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (cluster, manifest):
        monkeypatch.setattr(module, "source_sha256", lambda: "0" * 64)
    text = rf"node \S+ has another nappingrl \(\S+, source [0-9a-f]{{12}}\); this machine has \S+, source {'0' * 12};"
    with pytest.raises(BadRunError, match=text):
        nodes.run(agent, out=tmp_path / "run", **SHORT)


@NEEDS_RAY
@LINUX
def test_an_error_of_a_chunk_is_the_error_of_the_run(nodes: Nodes, agent: Agent, tmp_path: Path) -> None:
    def fail() -> None:
        raise BadSpecError("out of order")

    agent.__class__ = type("Broken", (type(agent),), {"__reduce__": lambda self: (fail, ())})
    with pytest.raises(BadSpecError, match=r"^out of order$"):
        nodes.run(agent, out=tmp_path / "run", **SHORT)


@NEEDS_RAY
@LINUX
def test_a_ray_that_was_there_before_stays(nodes: Nodes, agent: Agent) -> None:
    import ray

    ray.init(nodes.address, log_to_driver=False, logging_level="ERROR")
    try:
        nodes.run(agent, **SHORT)
        assert ray.is_initialized()
    finally:
        ray.shutdown()


# ---- a local Ray, by the command line --------------------------------------------------------------------------


@NEEDS_RAY
@LINUX
def test_ctrl_c_leaves_a_run_that_continues_and_no_processes(
    ray_settings: None, agent_zip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    out, quiet = tmp_path / "run", [sys.executable, "-W", "error", "-m", "nappingrl"]
    words = [
        "run",
        "cartpole",
        "--agent",
        str(agent_zip),
        "--detector",
        "given",
        "--protocol",
        "2+8",
        "--trials",
        "700",
    ]
    command = [*quiet, *words, "--executor", "ray", "--workers", "2", "--json", "--out", str(out)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True)
    try:
        wait_for(lambda: process.poll() is not None or parts(out))
        began = descendants(process.pid)
        assert len(began) > 4
        assert listening(began | {process.pid}) <= LOOPBACK
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does it
        stdout, stderr = process.communicate(timeout=PATIENCE)
        wait_for(lambda: not began & processes().keys())
    finally:
        process.kill()
    assert (process.returncode, stdout) == (130, ""), stderr
    assert re.fullmatch(rf"napping: stopped;.* Continue with: napping run .*--out {re.escape(str(out))}\n", stderr)
    before = parts(out)
    assert 0 < len(before) < 6

    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.startswith("{")
    assert done.stdout.count("\n") == 1
    main([*words, "--workers", "1", "--out", str(tmp_path / "local")])
    assert parts(out) == parts(tmp_path / "local")
    assert before.items() <= parts(out).items()
    assert not (tmp_path / ".ray").exists()


def listening(pids: set[int]) -> set[str]:
    """Addresses, as /proc writes them, at which processes accept connections."""
    inodes = set()
    for pid in pids:
        for file in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                inodes.add(os.readlink(file).removeprefix("socket:[").removesuffix("]"))
            except OSError:
                continue
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in inodes:
                found.add(words[1].partition(":")[0])
    return found
