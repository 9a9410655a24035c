"""Good and bad agents as separate programs, independent of the package: python agent.py PORT KIND."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

FOR_EVER = 600
HIT, MISS = (40, 300), (300, 300)


def make_agent(port, aim):
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from plain_client import JavaAgent

    return JavaAgent(port, aim)


def play_one(agent):
    """Enters the first level and makes one shot."""
    agent.start(50)
    agent.ready()
    agent.ready()
    agent.levels.append(agent.wire.ask(53, n=4)[-1])
    agent.play_round()
    agent.wire.close()


def good(port):
    """Plays to the end; the first levels are won in the toy world."""
    make_agent(port, lambda level, _: HIT if level <= 2 else MISS).play()


def forgets_to_end(port):
    good(port)
    time.sleep(FOR_EVER)


def crashes(port):
    """In the second level that it is given, after the look at it."""

    def aim(level, _):
        if level == 2:
            raise SystemError("crashed")
        return HIT

    make_agent(port, aim).play()


def waits(port):
    """In the second level of its first start, with a child; its second start plays on."""
    is_first = not Path("seen").exists()
    Path("seen").touch()

    def aim(level, _):
        if level == 2 and is_first:
            child = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({FOR_EVER})"])
            print("child", child.pid, flush=True)
            time.sleep(FOR_EVER)
        return HIT

    make_agent(port, aim).play()


def hangs(port):
    """And does not want to be ended, nor does its child."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    waits(port)


def never_connects(port):
    time.sleep(FOR_EVER)


def never_shoots(port):
    agent = make_agent(port, lambda level, _: HIT)
    tells = iter(["in a level"])
    agent.play_round = lambda: print(*[next(tells, "")], end="", flush=True)
    agent.play(10**9)


def only_skips(port):
    """Goes from level to level without a shot."""
    agent = make_agent(port, lambda level, _: HIT)
    agent.play_round = lambda: agent.wire.ask(53, n=4)
    agent.play()


def lies(port):
    """Says that all went well, and ends as if it had."""
    print("state EVALUATION_TERMINATED, 3 of 3 levels passed")


def garbage(port):
    """Twelve bytes of no protocol in its first level, then waits for an answer."""
    agent = make_agent(port, lambda level, _: HIT)
    agent.play_round = lambda: agent.wire.ask(250, b"\xff" * 12, 1)
    agent.play()


def hangs_up(port):
    """Plays a level well, hangs up, and stays."""
    play_one(make_agent(port, lambda level, _: HIT))
    time.sleep(FOR_EVER)


def peeks(port):
    """Misses in the first level and hangs up, to hit in the same level of a second game."""
    play_one(make_agent(port, lambda level, _: MISS))
    play_one(make_agent(port, lambda level, _: HIT))


def knocks(port):
    """Connects for ever."""
    while True:
        socket.create_connection(("127.0.0.1", port)).close()


def chatters(port):
    os.write(1, b"x" * 3_000_000)
    good(port)


def launched(port):
    """Waits in its first level until its launcher has ended."""
    launcher = os.getppid()

    def aim(level, _):
        Path("playing").touch()
        while os.getppid() == launcher:
            time.sleep(0.02)
        return HIT

    make_agent(port, aim).play()


def launches(port):
    """The agent itself is a child, which plays on when this one has ended."""
    subprocess.Popen([sys.executable, __file__, str(port), "launched"])
    while not Path("playing").exists():
        time.sleep(0.02)


if __name__ == "__main__":
    globals()[sys.argv[2]](int(sys.argv[1]))
