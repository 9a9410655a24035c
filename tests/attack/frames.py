"""Hostile bytes at the birds server, beside silent, slow and half-closed connections, while an honest agent plays."""

import random
import socket
import struct
import sys
import threading
from contextlib import ExitStack, suppress
from pathlib import Path

from nappingrl.domains.angrybirds.server.server import Server, Settings
from nappingrl.domains.angrybirds.server.trial_plan import one_trial
from tests.attack.outcome import Outcome

sys.path.append(str(Path(__file__).parents[1]))  # the tests' own modules are imported from there

from domains.angrybirds.server.test_fuzz import broken_message, honest_session, valid_message
from domains.angrybirds.server.toy_world import ToyWorld, toy_level

FRAMES = 12_000
ROUND = 200
"""Frames between two honest sessions, which must not differ from one that was played alone."""
SILENT = 40
PATIENCE = 600.0
"""Seconds until an answer counts as a hang."""


def attack(budget: float, seed: int) -> Outcome:
    """Send hostile frames; the honest agent's diary, the log and a last request show whether the server noticed."""
    outcome, rng = Outcome("frames"), random.Random(seed)
    lines: list[str] = []
    settings = Settings(max_connections=SILENT, first_seconds=PATIENCE)
    plan = one_trial([toy_level(str(i)) for i in range(4)], report_step=2)
    with Server(plan, ToyWorld, port=0, say=lines.append, settings=settings) as server, ExitStack() as bad_company:
        alone = honest_session(server.port)
        for number in range(max(1, round(budget * FRAMES / ROUND))):
            _add_bad_company(bad_company, server.port, rng)
            _bombard(outcome, server.port, rng)
            if (beside := _honest_session(server.port)) != alone:
                outcome.fail(f"round {number}: the honest agent saw {beside}, alone {alone}; seed {seed}")
    for line in lines:
        if "internal error" in line:
            outcome.fail(f"{line}; seed {seed}")
    n_evicted = sum("was closed before its first request" in line for line in lines)
    outcome.notes.append(f"{n_evicted} silent connections made room, {threading.active_count()} threads at the end")
    return outcome


def _bombard(outcome: Outcome, port: int, rng: random.Random) -> None:
    """A round of frames; each conversation must come to an end."""
    for _ in range(ROUND):
        outcome.tried += 1
        frame = _frame(rng)
        try:
            was_answered = _throw(port, frame)
        except TimeoutError:
            outcome.fail(f"no end of the conversation after {frame[:64].hex()}")
            continue
        outcome.survived += was_answered
        outcome.refused += not was_answered


def _frame(rng: random.Random) -> bytes:
    """Garbage, broken requests, or several valid ones with odd numbers."""
    kind = rng.randrange(3)
    if kind == 0:
        return rng.randbytes(rng.randrange(1, 200))
    make = broken_message if kind == 1 else valid_message
    return b"".join(make(rng) for _ in range(rng.randrange(1, 4)))


def _throw(port: int, frame: bytes) -> bool:
    """Send it, hang up half and wait for the end; whether there was an answer."""
    n_bytes = 0
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as sock, suppress(ConnectionError):
        sock.sendall(frame)
        with suppress(OSError):  # hung up already
            sock.shutdown(socket.SHUT_WR)
        while data := sock.recv(1 << 20):
            n_bytes += len(data)
    return n_bytes > 0


def _add_bad_company(stack: ExitStack, port: int, rng: random.Random) -> None:
    """Connections that stay: silent, within their first request, and sometimes one that does not read the answer."""
    deaf = (b"\x0b",) if rng.random() < 0.1 else ()
    for begun in (b"", b"", b"\x1f\0\0", b"\x43" + struct.pack(">I", 1000) + rng.randbytes(3), *deaf):
        sock = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE))
        with suppress(ConnectionError):
            sock.sendall(begun)


def _honest_session(port: int) -> object:
    """The diary of an agent that plays by the rules; in words if it could not play to the end."""
    try:
        return honest_session(port)
    except (OSError, AssertionError) as error:
        return repr(error)
