"""20,000 fuzzed or truncated messages: 18,500 to games without a socket, 1,500 over sockets beside an honest agent."""

import random
import socket
import struct
import threading
import time
from contextlib import suppress

import numpy as np

from domains.angrybirds.server.plain_client import JavaAgent, Wire
from domains.angrybirds.server.toy_world import HIT, MISS, ToyWorld, toy_level
from nappingrl.domains.angrybirds.physics.scene import Scene
from nappingrl.domains.angrybirds.physics.world import World
from nappingrl.domains.angrybirds.server.game import Game
from nappingrl.domains.angrybirds.server.harness import Harness
from nappingrl.domains.angrybirds.server.observer import Observer
from nappingrl.domains.angrybirds.server.protocol import MESSAGES, Code, ProtocolError, Request
from nappingrl.domains.angrybirds.server.results import Results
from nappingrl.domains.angrybirds.server.server import Server, Settings
from nappingrl.domains.angrybirds.server.trial_plan import LevelSet, Plan, Source, Trial, one_trial
from nappingrl.domains.angrybirds.server.wire import (
    Need,
    Picture,
    parse_batch,
    parse_numbers,
    parse_picture,
    parse_request,
    parse_scores,
    parse_sized,
    run_parser,
)
from patience import PATIENCE

N_TOY, N_REAL, N_FRAMES, N_BROKEN = 18_000, 500, 1000, 500
LEVELS = tuple(Source(f"novelty_level_{i}/x.xml", toy_level(str(i)), i > 2) for i in range(6))
EDGES = (0, 1, 2, 5, 31, 127, 255, 300, 301, 65536, 2**31 - 1, -1, -(2**31))
FIRST = [68, 68, 53]
"""How an agent gets into a level."""


class QuickObserver(Observer):
    """Draws nothing: pictures are tested elsewhere."""

    def picture(self, scene: Scene | None) -> Picture:
        return super().picture(None)


def new_game(rng: random.Random, make_world=ToyWorld) -> Game:
    levels = LevelSet(LEVELS, "training", 0, rng.choice([0, 20]), rng.choice([0, 1, 3]), rng.random() < 0.5)
    trial = Trial("t", levels, (LevelSet(LEVELS[:1], "test"),), 2, rng.random() < 0.3, 0, rng.choice([0, 5]))
    harness = Harness(Plan((trial,), rng.choice([0, 3])), time.monotonic)
    observer = QuickObserver(rng.random() < 0.5, rng.random() < 0.5, np.random.default_rng(0))
    return Game(1, harness, make_world, observer, Results(None).journal(), lambda _: None)


def arguments(rng: random.Random, letters: str) -> bytes:
    """Numbers for these letters: points of the screen, edges, or anything."""
    data = b""
    for letter in letters:
        size = struct.calcsize(letter)
        number = rng.choice([rng.choice(EDGES), rng.randrange(640), rng.randrange(640), rng.getrandbits(32)])
        data += (number % 256**size).to_bytes(size, "big")
    return data


def valid_message(rng: random.Random) -> bytes:
    """A request as an agent may send it, though with odd numbers."""
    code = rng.choice([*Code, Code.READY_FOR_NEW_SET, Code.NEXT_LEVEL, Code.LOAD_LEVEL, Code.SHOOT, Code.STATE])
    layout = MESSAGES[code]
    if layout.request == "shots":
        n = rng.randrange(4)
        data = bytes([n]) + b"".join(bytes([rng.choice([31, 32])]) + arguments(rng, "iiii") for _ in range(n))
    elif layout.request == "likelihood":
        n, m = rng.randrange(4), rng.randrange(8)
        data = arguments(rng, "ff") + struct.pack(">i", n) + arguments(rng, "i" * n + "i") + struct.pack(">i", m)
        data += rng.randbytes(m) + rng.choice([b"", struct.pack(">i", 2) + rng.randbytes(8)])
    elif layout.request == "text":
        m = rng.randrange(20)
        data = struct.pack(">I", m) + rng.randbytes(m)
    else:
        data = arguments(rng, layout.request + rng.choice(["", layout.tail]))
        if code is Code.LOAD_LEVEL and rng.random() < 0.7:
            data = struct.pack(">I", rng.randrange(1, 7))
    return bytes([code]) + data


def broken_message(rng: random.Random) -> bytes:
    """Garbage, or a valid request that was cut off, lengthened or changed."""
    kind = rng.randrange(5)
    if kind == 0:
        return rng.randbytes(rng.randrange(1, 64))
    data = bytearray(valid_message(rng))
    if kind == 1:
        del data[rng.randrange(len(data)) :]
    elif kind == 2:
        data += rng.randbytes(rng.randrange(1, 20))
    else:
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.getrandbits(8)
    return bytes(data)


def reader(data: bytes):
    left = memoryview(data)

    def take(need: Need) -> bytes:
        nonlocal left
        if need.is_optional and not left:
            return b""
        if len(left) < need.n_bytes:
            raise EOFError
        taken, left = bytes(left[: need.n_bytes]), left[need.n_bytes :]
        return taken

    return take, lambda: len(left)


def check_reply(request: Request, reply: bytes) -> None:
    """A reply has exactly the bytes that its client will read."""
    layout = MESSAGES[request.code].reply
    take, n_left = reader(reply)
    for part in layout.split("+"):
        if part == "picture":
            run_parser(parse_picture(), take)
        elif part in ("truth", "hint"):
            run_parser(parse_sized(), take)
        elif part == "batch":
            assert 1 <= len(run_parser(parse_batch(), take)) <= 300
        elif part == "scores":
            run_parser(parse_scores(), take)
        else:
            run_parser(parse_numbers("B" * (len(request.numbers) // 5) if part == "shots" else part), take)
    assert n_left() == 0


def send(game: Game, data: bytes) -> int:
    """All requests in these bytes, as a server reads them; how many there were."""
    take, n_left = reader(data)
    n = 0
    try:
        while n_left():
            request = run_parser(parse_request(), take)
            check_reply(request, game.handle(request))
            n += 1
    except (EOFError, ProtocolError):
        pass
    return n


def bombard(rng: random.Random, n: int, make_world) -> tuple[int, int, float]:
    """Send messages; returns the numbers of requests and games, and the CPU seconds of the costliest message."""
    game, n_handled, n_games, slowest = new_game(rng, make_world), 0, 1, 0.0
    for i in range(n):
        if game.is_terminated or i % 500 == 499:
            game.close()
            game = new_game(rng, make_world)
            n_games += 1
            for code in FIRST:
                send(game, bytes([code]))
        started = time.process_time()
        n_handled += send(game, (broken_message if rng.random() < 0.7 else valid_message)(rng))
        slowest = max(slowest, time.process_time() - started)
    return n_handled, n_games, slowest


def test_games_survive_broken_messages() -> None:
    n_handled, n_games, slowest = bombard(random.Random(1), N_TOY, ToyWorld)
    assert n_handled > N_TOY / 2
    assert n_games > N_TOY / 500
    assert slowest < 1


def test_games_in_the_real_world_survive_broken_messages() -> None:
    n_handled, _, slowest = bombard(random.Random(2), N_REAL, lambda source: World(source.level))
    assert n_handled > N_REAL / 2
    assert slowest < 1


def honest_session(port: int) -> tuple[list[int], list[int], list[int]]:
    agent = JavaAgent(port, lambda level, features: HIT if level % 2 else MISS)
    agent.play()
    agent.wire.close()
    return agent.states, agent.levels, agent.shots


def throw(port: int, data: bytes) -> None:
    """Send it and hang up half; the server must end the conversation."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as sock, suppress(ConnectionError):
        sock.sendall(data)
        with suppress(OSError):  # hung up already
            sock.shutdown(socket.SHUT_WR)
        while sock.recv(1 << 20):
            pass


def test_a_server_survives_broken_messages_and_honest_agents_notice_nothing() -> None:
    rng = random.Random(3)
    levels = [toy_level(str(i)) for i in range(4)]
    lines: list[str] = []
    with Server(one_trial(levels, report_step=2), ToyWorld, port=0, say=lines.append, settings=Settings()) as server:
        alone = honest_session(server.port)
        beside: list[object] = []
        is_over = threading.Event()

        def play() -> None:
            while not is_over.is_set() or not beside:
                beside.append(honest_session(server.port))

        honest = threading.Thread(target=play)
        honest.start()
        for _ in range(N_FRAMES):
            throw(server.port, rng.randbytes(rng.randrange(1, 200)))
        for _ in range(N_BROKEN):
            throw(server.port, b"".join(broken_message(rng) for _ in range(rng.randrange(1, 3))))
        is_over.set()
        honest.join(10)
        assert not honest.is_alive()
        assert len(beside) > 1
        assert all(session == alone for session in beside)
        last = Wire(server.port)
        assert last.ask(12) == b"\x0b"
        last.close()
    assert not [line for line in lines if "internal error" in line]
