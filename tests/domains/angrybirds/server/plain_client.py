"""Two agents independent of the package: plain sockets, and the bytes that published clients send and expect.

`JavaAgent` goes from level to level by code 53, as the DataLab jars and HYDRA do; `PythonAgent` chooses levels by
code 51, as the Phy-Q client does. Both keep a diary of what they saw.
"""

import json
import socket
import struct
from collections.abc import Callable

Features = list[dict]
Aim = Callable[[int, Features], tuple[int, int]]
"""Number of the level and ground truth -> release point."""

PATIENCE = 600.0  # ends a hang; not imported: the agents below run without the tests
MENUS, SETS = (1, 2, 3), (8, 9, 10)
PLAYING, WON, LOST, NEW_TRIAL, LIKELIHOOD, TERMINATED = 5, 6, 7, 11, 12, 13


class Wire:
    """Requests as bytes, replies as bytes."""

    def __init__(self, port: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)

    def close(self) -> None:
        self.sock.close()

    def ask(self, code: int, arguments: bytes = b"", n: int = 1) -> bytes:
        """A reply that must come whole in one read, as the Java client reads."""
        self.sock.sendall(bytes([code]) + arguments)
        reply = self.sock.recv(n)
        assert len(reply) == n, (code, reply)
        return reply

    def exactly(self, n: int) -> bytes:
        data = b""
        while len(data) < n:
            more = self.sock.recv(n - len(data))
            assert more, f"hung up with {n - len(data)} bytes missing"
            data += more
        return data

    def number(self) -> int:
        return struct.unpack(">I", self.exactly(4))[0]

    def truth(self, code: int) -> Features:
        self.sock.sendall(bytes([code]))
        return self.read_truth()

    def read_truth(self) -> Features:
        text = self.exactly(self.number()).decode()
        (collection,) = json.loads(text[:-5])
        assert collection["type"] == "FeatureCollection"
        return collection["features"]

    def read_picture(self) -> tuple[int, int, bytes]:
        width, height = self.number(), self.number()
        return width, height, self.exactly(width * height * 3)

    def is_quiet(self) -> bool:
        """Nothing was sent that was not asked for."""
        self.sock.settimeout(0.05)
        try:
            return self.sock.recv(1) is None
        except TimeoutError:
            return True
        finally:
            self.sock.settimeout(PATIENCE)


class Agent:
    """What both dialects share."""

    agent_id = 0

    def __init__(self, port: int, aim: Aim) -> None:
        self.wire, self.aim = Wire(port), aim
        self.states: list[int] = []
        """Without immediate repetitions."""
        self.set_infos: list[tuple[int, ...]] = []
        self.levels: list[int] = []
        self.novelty: list[int] = []
        self.shots: list[int] = []
        self.n_reports = 0

    def start(self, speed: int) -> bytes:
        reply = self.wire.ask(1, struct.pack(">IB", self.agent_id, 1), 3)
        assert self.wire.ask(2, struct.pack(">I", speed)) == b"\x01"
        return reply

    def state(self) -> int:
        state = self.wire.ask(12)[0]
        if self.states[-1:] != [state]:
            self.states.append(state)
        return state

    def ready(self) -> None:
        self.set_infos.append(struct.unpack(">IIIIBBB", self.wire.ask(68, n=19)))

    def ask_novelty(self) -> None:
        self.novelty.append(struct.unpack(">i", self.wire.ask(69, n=4))[0])

    def report(self, novel: float, text: bytes, more: bytes = b"") -> None:
        ids = (-7, -9)
        data = struct.pack(">ffiii", novel, 1 - novel, len(ids), *ids) + struct.pack(">ii", 1, len(text)) + text
        assert self.wire.ask(66, data + more) == b"\x01"
        self.n_reports += 1

    def shoot(self, x: int, y: int, tap: int = 0) -> int:
        done = self.wire.ask(31, struct.pack(">iiii", x, y, 0, tap))[0]
        self.shots.append(done)
        return done


class JavaAgent(Agent):
    """53-based: DataLab and HYDRA."""

    agent_id = 23349

    def play(self, most_rounds: int = 500) -> None:
        """The loop of those agents, until the evaluation is terminated."""
        self.start(50)
        for _ in range(most_rounds):
            state = self.state()
            if state == TERMINATED:
                return
            if state == NEW_TRIAL or state in SETS:
                self.ready()
            elif state in MENUS or state in (WON, LOST):
                level = struct.unpack(">i", self.wire.ask(53, n=4))[0]
                assert 0 <= level <= 500
                self.levels.append(level)
                self.ask_novelty()
            elif state == LIKELIHOOD:
                self.report(0.25, b"", struct.pack(">i9f", 9, *[0.1] * 9))
            else:
                assert state == PLAYING
                self.play_round()
        raise AssertionError("not terminated")

    def play_round(self) -> None:
        self.check_truth(self.wire.truth(64))
        assert self.wire.ask(34) == b"\x01"
        x, y = self.aim(self.levels[-1], self.wire.truth(64))
        self.shoot(x, y)

    @staticmethod
    def check_truth(features: Features) -> None:
        """What the Java reader casts to: whole coordinates, shares with a point, a whole yindex."""
        labels = [feature["properties"]["label"] for feature in features]
        assert labels[:2] == ["Ground", "Slingshot"]
        assert set(labels[2:]) <= {"Trajectory", "Object"}
        assert type(features[0]["properties"]["yindex"]) is int
        for feature in features[1:]:
            if feature["geometry"]["type"] == "Polygon":
                assert all(type(v) is int for ring in feature["geometry"]["coordinates"] for xy in ring for v in xy)
            for entry in feature["properties"]["colormap"]:
                assert type(entry["color"]) is int
                assert type(entry["percent"]) is float


class PythonAgent(Agent):
    """51-based: Phy-Q. Needs sets with free choice of levels."""

    agent_id = 28888

    def play(self, n_levels: int, record: bool = False) -> dict[int, tuple[int, int]]:
        """Each level once: number -> (last state, score)."""
        self.start(100)
        while self.state() in (NEW_TRIAL, *SETS):
            self.ready()
        self.ask_novelty()  # before any level
        assert self.wire.ask(51, struct.pack(">I", 1)) == b"\x01"
        assert self.state() == PLAYING
        self.ready()  # the published environment does so, and only then begins
        assert self.state() == MENUS[0]
        outcomes = {}
        for level in range(1, n_levels + 1):
            assert self.wire.ask(51, struct.pack(">I", level)) == b"\x01"
            self.levels.append(level)
            outcomes[level] = self.play_level(level, record)
        return outcomes

    def play_level(self, level: int, record: bool) -> tuple[int, int]:
        for _ in range(20):
            state = self.state()
            if state == LIKELIHOOD:
                self.report(0.5, "neu für mich".encode())
                continue
            score = struct.unpack(">I", self.wire.ask(65, n=4))[0]
            if state in (WON, LOST):
                self.ask_novelty()
                return state, score
            assert state == PLAYING
            assert self.wire.ask(34) == b"\x01"
            x, y = self.aim(level, self.wire.truth(62))
            if record:
                self.record(x, y)
            else:
                self.shoot(x, y)
        raise AssertionError("level not over")

    def record(self, x: int, y: int, every: int = 10) -> list[Features]:
        self.wire.sock.sendall(bytes([38]) + struct.pack(">5i", x, y, 0, 0, every))
        records = [self.wire.read_truth() for _ in range(self.wire.number())]
        self.shots.append(len(records))
        return records
