"""The server over real sockets: whole sessions in both dialects, several agents, invalid input, our own client."""

import csv
import json
import os
import re
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import cos, sin
from pathlib import Path

import numpy as np
import pytest

from domains.angrybirds.server.plain_client import LOST, WON, JavaAgent, PythonAgent, Wire
from domains.angrybirds.server.toy_world import HIT, MISS, ToyWorld, toy_level
from nappingrl.domains.angrybirds.ground_truth.state import boxes
from nappingrl.domains.angrybirds.physics.scene import Item, Level
from nappingrl.domains.angrybirds.physics.world import World
from nappingrl.domains.angrybirds.server.client import Client, SetInfo, ShotAt
from nappingrl.domains.angrybirds.server.connection import Connection
from nappingrl.domains.angrybirds.server.protocol import Likelihood, ProtocolError, State
from nappingrl.domains.angrybirds.server.results import Episode
from nappingrl.domains.angrybirds.server.server import Server, Settings, serve
from nappingrl.domains.angrybirds.server.trial_plan import LevelSet, Plan, Source, Trial, one_trial
from nappingrl.domains.angrybirds.trajectory import exact_angles
from nappingrl.errors import BadSpecError, UnknownNameError
from patience import PATIENCE, wait_for

ROOT = Path(__file__).parents[4]
TOYS = [toy_level(name) for name in "abc"]
FREE = Plan(
    (Trial("t", LevelSet(tuple(Source(level.name, level) for level in TOYS), is_selectable=True)),), report_step=2
)


@contextmanager
def served(plan: Plan | None = None, make_world=ToyWorld, **options) -> Iterator[Server]:
    """A server at a free port; one of toy levels unless told otherwise. Its lines are in `server.lines`."""
    lines: list[str] = []
    with Server(plan or one_trial(TOYS), make_world, port=0, say=lines.append, **options) as server:
        server.lines = lines
        yield server


def aim_by_level(hits: dict[int, bool]):
    return lambda level, features: HIT if hits[level] else MISS


def is_alive(port: int) -> bool:
    """Whether a fresh agent is served."""
    wire = Wire(port)
    assert wire.ask(12) == b"\x0b"
    wire.close()
    return True


# Sessions ------------------------------------------------------------------------------------------------------------


def test_a_session_of_an_agent_that_takes_the_next_level(tmp_path: Path) -> None:
    with served(one_trial(TOYS, report_step=1), out=tmp_path) as server:
        agent = JavaAgent(server.port, aim_by_level({1: True, 2: False, 3: True}))
        agent.play()
        assert agent.wire.is_quiet()
        agent.wire.close()
        server.wait(n_terminated=1)
    assert agent.states == [11, 9, 1, 5, 12, 6, 5, 12, 5, 12, 7, 5, 12, 6, 13]
    assert agent.set_infos == [(0, 0, 3, 1, 1, 0, 0)] * 2
    assert agent.levels == [1, 2, 3, 0]
    assert agent.novelty == [-1] * 4
    assert agent.shots == [1] * 4
    assert agent.n_reports == 4
    assert [(e.status, e.score, e.n_shots) for e in server.episodes] == [
        ("Pass", 15000, 1), ("Fail", 0, 2), ("Pass", 15000, 1),
    ]  # fmt: skip
    with (tmp_path / "EvaluationData.csv").open() as file:
        assert [row["LevelStatus"] for row in csv.DictReader(file)] == ["Pass", "Fail", "Pass"]
    with (tmp_path / "Likelihood.csv").open() as file:
        rows = [(row["LevelIndex"], row["InteractionIndex"]) for row in csv.DictReader(file)]
    assert rows == [("1", "1"), ("2", "2"), ("2", "3"), ("3", "4")]


@pytest.mark.parametrize("record", [False, True])
def test_a_session_of_an_agent_that_chooses_levels(record: bool) -> None:
    with served(FREE, settings=Settings(is_dev=True)) as server:
        agent = PythonAgent(server.port, aim_by_level({1: False, 2: True, 3: False}))
        outcomes = agent.play(3, record)
        assert agent.state() == 13
        assert agent.wire.is_quiet()
        agent.wire.close()
    assert outcomes == {1: (LOST, 0), 2: (WON, 15000), 3: (LOST, 0)}
    assert agent.states == [11, 9, 1, 5, 1, 5, 12, 7, 5, 6, 5, 12, 5, 7, 13]
    assert agent.set_infos == [(0, 0, 3, 1, 1, 1, 0)] * 3
    assert agent.shots == ([6] * 5 if record else [1] * 5)
    assert agent.n_reports == 2


def test_an_informed_trial_with_a_novelty() -> None:
    with served(one_trial(TOYS[:2], TOYS[2:], report_step=1, is_informed=True)) as server:
        agent = JavaAgent(server.port, aim_by_level({1: True, 2: True, 3: True}))
        agent.play()
        agent.wire.close()
    assert agent.novelty == [0, 0, 1, 0]
    assert agent.set_infos[0] == (0, 0, 3, 1, 1, 0, 1)
    assert agent.n_reports == 0


def test_the_bytes_of_a_session() -> None:
    """Request and reply, byte by byte, as a published client would see them."""
    with served(FREE) as server:
        wire = Wire(server.port)
        for asked, reply in [
            ("01 00005b35 01", "000000"),
            ("02 00000032", "01"),
            ("0c", "0b"),
            ("44", "00000000 00000000 00000003 00000001 01 01 00"),
            ("0c", "09"),
            ("44", "00000000 00000000 00000003 00000001 01 01 00"),
            ("0c", "01"),
            ("35", "00000001"),
            ("45", "ffffffff"),
            ("0c", "05"),
            ("0e", "00000001"),
            ("0f", "00000003"),
            ("22", "01"),
            ("1f 0000012c 0000012c 00000000 00000000", "01"),
            ("41", "00000000"),
            ("1f 00000028 0000012c 00000000 00000000", "01"),
            ("0c", "0c"),
            ("1f 00000028 0000012c 00000000 00000000", "00"),
            ("22", "00"),
            ("33 00000002", "00"),
            ("35", "00000000"),
            ("42 3f000000 3f000000 00000001 ffffffff 00000002 00000002 6869", "01"),
            ("0c", "06"),
            ("41", "00001388"),
            ("17", "00000003 00001388 00000000 00000000"),
            ("33 00000003", "01"),
            ("34", "00"),
            ("33 00000004", "00"),
            ("43 00000003 6e6577", "01"),
            ("48 00000001", "00000002 7b7d"),
            ("1f 0000012c 0000012c 00000000 00000000", "01"),
            ("44", "00000000 00000000 00000003 00000001 01 01 00"),
            ("0c", "01"),
            ("33 00000002", "01"),
            ("29 00000028 0000012c 00000000 00000000", "01"),
            ("0c", "0c"),
            ("42 3f800000 00000000 00000000 00000000 00000000 00000001 3f800000", "01"),
            ("0c", "06"),
            ("0c", "0d"),
        ]:
            expected = bytes.fromhex(reply)
            wire.sock.sendall(bytes.fromhex(asked))
            assert wire.exactly(len(expected)) == expected, asked
        assert wire.is_quiet()
        wire.close()


def test_truths_and_pictures_on_the_wire() -> None:
    with served(settings=Settings(is_dev=True)) as server:
        wire = Wire(server.port)
        wire.ask(68, n=19), wire.ask(68, n=19), wire.ask(53, n=4)
        wire.sock.sendall(b"\x3e")
        payload = wire.exactly(wire.number())
        assert payload[-5:] == b"     "
        assert json.loads(payload[:-5])[0]["type"] == "FeatureCollection"
        wire.sock.sendall(b"\x3d")
        assert wire.exactly(wire.number()) == payload
        width, height, pixels = wire.read_picture()
        assert (width, height) == (640, 480)
        wire.sock.sendall(b"\x0b")
        assert wire.read_picture() == (640, 480, pixels)
        wire.close()


@pytest.mark.parametrize(
    ("tails", "tail", "n_records"), [("auto", (), 60), ("auto", (1,), 40), ("short", (), 60), ("long", (1,), 40)]
)
def test_optional_arguments(tails: str, tail: tuple[int, ...], n_records: int) -> None:
    with served(settings=Settings(tails=tails)) as server:
        wire = Wire(server.port)
        wire.ask(68, n=19), wire.ask(68, n=19), wire.ask(53, n=4)
        wire.sock.sendall(b"\x26" + struct.pack(f">{5 + len(tail)}i", *MISS, 0, 0, 1, *tail))
        assert len([wire.read_truth() for _ in range(wire.number())]) == n_records
        assert wire.ask(12) == b"\5"
        wire.close()


def test_a_tail_may_come_in_a_packet_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "TAIL_SECONDS", PATIENCE)
    with served() as server:
        wire = Wire(server.port)
        report = struct.pack(">ffiii", 0.5, 0.5, 0, 0, 0)
        wire.sock.sendall(b"\x42" + report)
        wire.sock.sendall(struct.pack(">i", 2))
        time.sleep(0.05)
        wire.sock.sendall(struct.pack(">2f", 0.1, 0.2))
        assert wire.exactly(1) == b"\1"
        assert wire.ask(12) == b"\x0b"
        wire.close()


# Several agents ------------------------------------------------------------------------------------------------------


def test_agents_play_games_of_their_own_at_the_same_time(tmp_path: Path) -> None:
    trials: list[tuple[Episode, ...]] = []
    with served(out=tmp_path, on_trial=trials.append) as server:
        agents = [JavaAgent(server.port, aim_by_level({1: i == 0, 2: i == 1, 3: i == 2})) for i in range(3)]
        threads = [threading.Thread(target=agent.play) for agent in agents]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for agent in agents:
            agent.wire.close()
        server.wait(n_terminated=3)
    for i, agent in enumerate(agents):
        expected = [11, 9, 1] + [state for level in range(3) for state in (5, 6 if i == level else 7)] + [13]
        assert agent.states == expected
    assert len(trials) == 3
    assert len(server.episodes) == 9
    files = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("EvaluationData.csv"))
    assert files == ["EvaluationData.csv", "agent-2/EvaluationData.csv", "agent-3/EvaluationData.csv"]


def test_a_level_that_an_agent_leaves_behind_is_written_down(tmp_path: Path) -> None:
    with served(out=tmp_path) as server:
        wire = Wire(server.port)
        wire.ask(68, n=19), wire.ask(68, n=19), wire.ask(53, n=4)
        wire.close()
        wait_for(lambda: server.episodes)
    assert [episode.status for episode in server.episodes] == ["Playing"]
    assert len((tmp_path / "EvaluationData.csv").read_text().splitlines()) == 2


def test_more_agents_than_allowed_are_turned_away() -> None:
    with served(settings=Settings(max_connections=2)) as server:
        wires = [Wire(server.port) for _ in range(2)]
        assert [wire.ask(12) for wire in wires] == [b"\x0b"] * 2
        third = Wire(server.port)
        assert third.sock.recv(1) == b""
        third.close()
        assert [wire.ask(12) for wire in wires] == [b"\x0b"] * 2
        for wire in wires:
            wire.close()
        wait_for(lambda: _answers(server.port))
        assert any("turned away" in line for line in server.lines)


def _answers(port: int) -> bool:
    wire = Wire(port)
    wire.sock.sendall(b"\x0c")
    try:
        return wire.sock.recv(1) == b"\x0b"
    except ConnectionResetError:
        return False
    finally:
        wire.close()


def test_observers_look_and_do_nothing_else() -> None:
    with served(observer_port=0, settings=Settings(is_dev=True)) as server:
        observer = Wire(server.observer_port)
        assert observer.truth(62) == []
        agents = []
        for number in range(2):  # one after the other: the later one is the latest game
            agent = Client(port=server.port)
            agents.append(agent)
            agent.configure(100 + number)
            agent.ready_for_new_set()
            agent.ready_for_new_set()
            agent.next_level()
        agents[1].shoot(*HIT)
        n_pigs = {}
        for agent_id in (100, 101, 999):
            assert observer.ask(1, struct.pack(">IB", agent_id, 1), 3) == b"\0\0\0"
            n_pigs[agent_id] = sum("pig" in feature["properties"]["label"] for feature in observer.truth(62))
        assert n_pigs == {100: 1, 101: 0, 999: 0}
        before = agents[0].ground_truth()
        for code in (61, 63):
            observer.truth(code)
            assert observer.read_picture()[:2] == (640, 480)
        assert agents[0].ground_truth() == before
        observer.sock.sendall(b"\x35")
        assert observer.sock.recv(1) == b""
        assert "code 53 of an observer; allowed: 1, 11, 61 to 64" in server.lines[-1]
        observer.close()
        for agent in agents:
            agent.close()


# Bad company ---------------------------------------------------------------------------------------------------------


def test_an_unknown_code_ends_the_conversation_by_one_line() -> None:
    with served() as server:
        wire = Wire(server.port)
        wire.sock.sendall(b"\xc8 and more")
        with pytest.raises((ConnectionResetError, AssertionError)):
            wire.exactly(1)
        wait_for(lambda: server.lines)
        assert server.lines[0].endswith(": code 200 is not a request of this protocol; hung up")
        assert is_alive(server.port)
        wire.close()


def drip(wire: Wire, meanwhile: Callable[[], bool]) -> None:
    """A long text, byte by byte."""
    wire.sock.sendall(b"\x43" + struct.pack(">I", 1000))
    for _ in range(1000):
        wire.sock.sendall(b"a")
        time.sleep(0.02)
        assert meanwhile()


def test_an_unfinished_message_does_not_delay_other_agents() -> None:
    with served(settings=Settings(message_seconds=PATIENCE)) as server:
        half = Wire(server.port)
        half.sock.sendall(b"\x43" + struct.pack(">I", 1000) + b"a" * 10)
        assert is_alive(server.port)
        half.close()


def test_slow_writers_are_hung_up_on_and_slow_thinkers_are_not() -> None:
    with served(settings=Settings(message_seconds=0.2)) as server:
        thinker, half, dripping = Wire(server.port), Wire(server.port), Wire(server.port)
        assert thinker.ask(12) == b"\x0b"
        half.sock.sendall(b"\x1f\0\0")
        started = time.monotonic()
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            drip(dripping, lambda: is_alive(server.port))
        assert half.sock.recv(1) == b""
        assert time.monotonic() - started >= 0.2
        assert thinker.ask(12) == b"\x0b"
        for wire in (thinker, half, dripping):
            wire.close()


def test_those_who_do_not_read_are_hung_up_on() -> None:
    with served(settings=Settings(message_seconds=0.2)) as server:
        deaf = Wire(server.port)
        deaf.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.sock.sendall(b"\x0b" * 50)
        assert is_alive(server.port)
        wait_for(lambda: any("was not taken in 0.2 s" in line for line in server.lines))
        deaf.close()


def test_idle_agents_are_hung_up_on_in_the_end() -> None:
    with served(settings=Settings(idle_seconds=0.1)) as server:
        wire = Wire(server.port)
        assert wire.sock.recv(1) == b""
        assert server.lines[-1].endswith("no message in 0.1 s; hung up")
        wire.close()


def test_a_connection_has_a_limited_time_for_its_first_request_even_if_bytes_keep_coming() -> None:
    settings = Settings(first_seconds=0.3, message_seconds=10 * PATIENCE, idle_seconds=10 * PATIENCE)
    with served(settings=settings) as server:
        silent, half, dripping = (Wire(server.port) for _ in range(3))
        half.sock.sendall(b"\x1f\0\0")
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            drip(dripping, lambda: True)
        assert silent.sock.recv(1) == half.sock.recv(1) == b""
        wait_for(lambda: len(server.lines) == 3)
        assert all(line.endswith(": no whole message in the first 0.3 s; hung up") for line in server.lines)
        for wire in (silent, half, dripping):
            wire.close()


def test_after_the_first_request_only_the_usual_limits_hold() -> None:
    with served(settings=Settings(first_seconds=PATIENCE)) as server:
        wire, (connection,) = Wire(server.port), wait_for_connections(server, 1)
        assert connection.is_silent
        assert wire.ask(12) == b"\x0b"
        assert not connection.is_silent
        connection.began -= 2 * PATIENCE  # its first seconds are long over
        assert wire.ask(12) == b"\x0b"
        wire.close()


def wait_for_connections(server: Server, n: int) -> list[Connection]:
    wait_for(lambda: len(server._connections) == n)
    return list(server._connections)


@pytest.mark.parametrize("max_connections", [8, Settings().max_connections])
def test_forty_silent_connections_leave_room_for_agents(max_connections: int, tmp_path: Path) -> None:
    settings = Settings(max_connections=max_connections, first_seconds=PATIENCE)
    with served(settings=settings, out=tmp_path) as server:
        early = Wire(server.port)
        assert early.ask(12) == b"\x0b"
        silent = [Wire(server.port) for _ in range(40)]
        late = JavaAgent(server.port, aim_by_level({1: True, 2: False, 3: True}))
        late.play()
        late.wire.close()
        assert early.ask(12) == b"\x0b", "those who have spoken are kept"
        closed = [line for line in server.lines if "was closed before its first request" in line]
        assert len(closed) == max(0, 42 - max_connections)
        addresses = ["{}:{}".format(*wire.sock.getsockname()) for wire in silent]
        assert [line.split()[0] for line in closed] == addresses[: len(closed)], "the oldest first"
        assert len(closed) + 2 == len(server.lines), "one line each, and one per game"
        for wire in (early, *silent):
            wire.close()
    assert {episode.agent for episode in server.episodes} == {2}, "silent connections are no games"


def test_half_open_and_reset_connections_leave_it_serving() -> None:
    with served(settings=Settings(max_connections=64)) as server:
        silent = [Wire(server.port) for _ in range(20)]
        for i in range(20):
            wire = Wire(server.port)
            wire.sock.sendall(b"\x3d" if i % 2 else b"\x1f\0")
            wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            wire.close()  # by a reset
        for _ in range(20):
            wire = Wire(server.port)
            wire.sock.sendall(b"\x42\0\0")
            wire.sock.shutdown(socket.SHUT_WR)
            assert wire.sock.recv(1) == b""
            wire.close()
        assert is_alive(server.port)
        assert silent[0].ask(12) == b"\x0b"
        for wire in silent:
            wire.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_fault_in_one_game_does_not_reach_another() -> None:
    def faulty(source: Source) -> ToyWorld:
        if source.name == "b":
            raise RuntimeError("broken world")
        return ToyWorld(source)

    with served(FREE, faulty) as server:
        wires = [Wire(server.port) for _ in range(2)]
        for wire in wires:
            wire.ask(68, n=19), wire.ask(68, n=19)
        wires[0].sock.sendall(b"\x33\0\0\0\2")
        assert wires[0].sock.recv(1) == b""
        assert "broken world" in server.lines[-1]
        assert wires[1].ask(53, n=4) == b"\0\0\0\1"
        for wire in wires:
            wire.close()


# Beginning and end ---------------------------------------------------------------------------------------------------


def test_closing_hangs_up_and_frees_the_port() -> None:
    with served() as server:
        port, wire = server.port, Wire(server.port)
        wire.ask(12)
        server.close()
        assert wire.sock.recv(1) == b""
        server.close()
        with Server(one_trial(TOYS), ToyWorld, port=port):
            assert is_alive(port)
        wire.close()


def test_a_taken_port_and_wrong_settings_are_one_line() -> None:
    with served() as server, pytest.raises(BadSpecError, match="another server runs there: use another --port"):
        Server(one_trial(TOYS), ToyWorld, port=server.port)
    with served() as server, pytest.raises(BadSpecError, match="cannot listen on"):
        Server(one_trial(TOYS), ToyWorld, port=0, observer_port=server.port)
    with pytest.raises(BadSpecError, match="port 70000; allowed: 1 to 65535"):
        Server(one_trial(TOYS), ToyWorld, port=70000)
    with pytest.raises(UnknownNameError, match="unknown tails 'log'; allowed: auto, long, short"):
        Settings(tails="log")
    with pytest.raises(BadSpecError, match="must be positive"):
        Settings(idle_seconds=0)


def test_serving_ends_when_the_agents_are_done(tmp_path: Path) -> None:
    threads: list[threading.Thread] = []

    def say(line: str) -> None:
        if line.startswith("agents connect to 127.0.0.1:"):
            port = int(line.split(":")[1].split(";")[0])
            threads.append(threading.Thread(target=play, args=(port,)))
            threads[0].start()

    def play(port: int) -> None:
        agent = JavaAgent(port, aim_by_level({1: True, 2: True, 3: True}))
        agent.play()
        agent.wire.close()

    episodes = serve(TOYS, ToyWorld, port=0, out=tmp_path, say=say, n_agents=1)
    threads[0].join()
    assert [episode.status for episode in episodes] == ["Pass"] * 3


def test_ctrl_c_ends_serving_cleanly() -> None:
    lines: list[str] = []
    wires: list[Wire] = []

    def say(line: str) -> None:
        lines.append(line)
        if line.startswith("agents connect"):
            wires.append(Wire(int(line.split(":")[1].split(";")[0])))
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()

    assert serve(TOYS, ToyWorld, port=0, say=say) == ()
    assert lines[-1] == "stopping"
    assert wires[0].sock.recv(1) == b""
    wires[0].close()


# Our client ----------------------------------------------------------------------------------------------------------


def test_our_client_asks_everything() -> None:
    plan = one_trial(TOYS[:1], TOYS[1:], report_step=3)
    with served(plan, settings=Settings(is_dev=True)) as server, Client(port=server.port) as client:
        assert client.configure(5).n_levels == 0
        assert client.configure(5, is_training=False).n_levels == 3
        assert client.set_speed(50)
        assert client.state() is State.NEW_TRIAL
        assert client.ready_for_new_set() == SetInfo(0, 0, 3, 1, 1, 0, 0)
        client.ready_for_new_set()
        assert client.has_novelty() is None
        assert not client.load_level(2)
        assert client.load_level(1)
        assert (client.current_level(), client.n_levels()) == (1, 3)
        assert [client.zoom_out(), client.zoom_in(), client.click(), client.restart_level()] == [
            True,
            True,
            True,
            False,
        ]
        truth, picture = client.ground_truth_and_screenshot()
        assert truth == client.ground_truth()
        assert boxes(client.ground_truth(is_noisy=True))[0].label == "pig_basic_small_1"
        np.testing.assert_array_equal(picture, client.screenshot())
        np.testing.assert_array_equal(picture, client.initial_screenshot())
        assert len(client.batch_ground_truth(5, 4)) == 4
        assert len(client.shoot_and_record(*MISS, every=10)) == 6
        assert client.shoot(*HIT)
        assert client.score() == 5000
        assert client.my_scores() == (5000, 0, 0)
        assert client.state() is State.WON
        assert client.next_level() == 2
        assert client.shoot(*MISS, is_fast=True)
        assert not client.shoot(*MISS, is_fast=True)
        assert client.state() is State.REQUEST_NOVELTY_LIKELIHOOD
        assert client.report_likelihood(Likelihood(0.5, 0.5, (-1,), 2, "odd", (0.1,) * 9))
        assert client.report_description("very odd")
        assert client.shoot_sequence([ShotAt(100, 4500, is_polar=True), ShotAt(*HIT)]) == [True, False]
        assert client.state() is State.WON
        assert client.next_level() == 3
        assert len(client.shoot_and_record(*MISS, every=10, only_flight=True)) == 4
        assert client.shoot_polar(100, 4500, is_fast=True)
        assert client.novelty_hint() == {}
        assert client.next_level() == 0


def test_our_client_says_by_one_line_what_is_wrong() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(ProtocolError, match=rf"no game server at 127.0.0.1:{port} \(Connection refused\); start it"):
        Client(port=port)
    with served() as server:
        client = Client(port=server.port)
        with pytest.raises(ProtocolError, match="cannot be sent"):
            client.load_level(-1)
        assert client.state() is State.NEW_TRIAL
        server.close()
        with pytest.raises(ProtocolError, match="hung up; is it a Science Birds server"):
            client.state()
        client.close()


@pytest.mark.parametrize(
    ("reply", "ask", "message"),
    [
        (b"HTTP/1.1 400 Bad", Client.state, "state 72; allowed: 0 to 13"),
        (b"\xff" * 8, Client.screenshot, "a picture of 4294967295 x 4294967295 pixels"),
        (b"\0\0\0\7hello  ", Client.ground_truth, "its ground truth is not JSON"),
        (b"\0\0", Client.next_level, "no whole message in 0.2 s"),
        (b"", Client.next_level, "no message in 0.2 s"),
    ],
)
def test_our_client_knows_when_it_talks_to_something_else(reply: bytes, ask, message: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        client = Client(port=other.getsockname()[1], seconds=0.2)
        peer, _ = other.accept()
        peer.sendall(reply)
        with pytest.raises(ProtocolError, match=message):
            ask(client)
        client.close()
        peer.close()


# The real world ------------------------------------------------------------------------------------------------------

PIG = (2.0, -3.2)
REAL = [Level(name, ("BirdRed",) * 2, (Item("pig", "BasicSmall", *PIG),)) for name in ("one", "two")]
ORIGIN = (-12.15, -1.7)


def at_pig(level: int, features: object) -> tuple[int, int]:
    """Level 1: the low trajectory to the pig, drawn far enough for whole pixels to be exact; else backwards."""
    if level != 1:
        return 600, 300
    angle = exact_angles(PIG[0] - ORIGIN[0], PIG[1] - ORIGIN[1])[0]
    return round(97.8 - 400 * cos(angle)), round(252.8 + 400 * sin(angle))


def real_world(source: Source) -> World:
    return World(source.level)


def test_a_session_in_the_real_world_by_next_levels() -> None:
    with served(one_trial(REAL, report_step=2), real_world) as server:
        agent = JavaAgent(server.port, at_pig)
        agent.play()
        agent.wire.close()
        server.wait(n_terminated=1)
    assert agent.states == [11, 9, 1, 5, 6, 5, 12, 5, 7, 13]
    assert [(e.status, e.pigs_left, e.n_birds) for e in server.episodes] == [("Pass", 0, 2), ("Fail", 1, 2)]
    assert server.episodes[0].score >= 15000


def test_a_session_in_the_real_world_by_chosen_levels() -> None:
    levels = LevelSet(tuple(Source(level.name, level) for level in REAL), is_selectable=True)
    with served(Plan((Trial("t", levels),)), real_world, settings=Settings(is_dev=True)) as server:
        agent = PythonAgent(server.port, at_pig)
        outcomes = agent.play(2, record=True)
        assert agent.state() == 13
        agent.wire.close()
    assert [state for state, _ in outcomes.values()] == [WON, LOST]
    assert outcomes[1][1] >= 15000
    hit, *misses = agent.shots
    assert hit > 10
    assert misses == [misses[0]] * 2
    assert misses[0] > 1


def test_a_fast_shot_in_the_real_world_ends_as_a_safe_one() -> None:
    with served(one_trial(REAL), real_world) as server:
        scores = []
        for is_fast in (False, True):
            with Client(port=server.port) as client:
                client.ready_for_new_set()
                client.ready_for_new_set()
                client.next_level()
                assert client.shoot(*at_pig(1, None), is_fast=is_fast)
                n_polls = 1
                while client.state() is State.PLAYING:
                    n_polls += 1
                assert n_polls <= 10
                scores.append(client.score())
    assert scores[0] == scores[1] >= 15000


def test_the_example_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "domains" / "angrybirds-protocol.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    exec(compile(block, "angrybirds-protocol.md", "exec"), {})
    assert re.fullmatch(r"(WON|LOST) \d+\n", capsys.readouterr().out)
