"""Random signals to `napping run`, `train` and `paper`: the same command, run again, must finish as if left alone.

The moments are stratified, since times drawn blindly hit only the start: during the start, while a part is being
written, and a random share of a part's time after a new part. Where each signal landed is read from the folder.
"""

import hashlib
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nappingrl.agents import zoo
from nappingrl.errors import NappingError
from tests.attack import small_paper
from tests.attack.outcome import Outcome

PATIENCE = 600.0  # seconds until a wait counts as a hang
KILLS = 8
"""Signals per victim at full budget."""
NEEDED = 30
"""Signals that a full attack must land after the first finished part and before the last."""
SIGNALS = ("kill", "kill all", "terminate", "interrupt", "kill a worker")
AFTER_FIRST = "after the first part"
NAPPING = ("-m", "nappingrl")


@dataclass(frozen=True)
class Victim:
    """A command that is stopped and run again."""

    name: str
    words: tuple[str, ...]
    """Arguments; each run gets its own working folder, and writes to `out` in it."""
    milestones: tuple[str, ...] = ("part-*.parquet",)
    """Files of `out` that are written one by one."""
    program: tuple[str, ...] = NAPPING
    workers: int = 1
    ignored: tuple[str, ...] = ()
    """Patterns of files that depend on the clock, or that a killed training was writing."""
    moments: tuple[str, ...] = ("boundary", "middle", "start", "middle", "boundary", "middle")
    """When signals are sent, in turn."""
    first: Callable[[Path], None] | None = None
    """Puts something into `out` beforehand."""
    check: Callable[[Path], str] | None = None
    """What is wrong with `out` after a signal; empty: nothing."""

    def start(self, folder: Path) -> "Running":
        """Start the command."""
        words = (*self.words, "--out", "out")
        words += () if self.words[0] == "train" else ("--workers", str(self.workers))
        log = (folder / "log").open("wb")  # a file: orphaned workers would keep a pipe open
        command = [sys.executable, *self.program, *words]
        with log:
            process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, start_new_session=True)
        return Running(self, process, folder)

    def count(self, folder: Path) -> int:
        """How many milestones have been reached."""
        return sum(1 for pattern in self.milestones for _ in (folder / "out").glob(pattern))


@dataclass(frozen=True)
class Running:
    """A started command."""

    victim: Victim
    process: subprocess.Popen[bytes]
    folder: Path

    def wait_for(self, condition: Callable[[], bool]) -> bool:
        """Wait; False if the command ended first."""
        end = time.monotonic() + PATIENCE
        while not condition():
            if self.process.poll() is not None:
                return False
            if time.monotonic() > end:
                raise TimeoutError(f"{self.victim.name} made no progress for {PATIENCE:.0f} s")
            time.sleep(0.0005)
        return True

    def members(self) -> list[int]:
        """Living processes of the command's session."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                state, _, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            except OSError:
                continue
            if int(session) == self.process.pid and state not in "ZX":
                found.append(int(folder.name))
        return found

    def workers(self) -> list[int]:
        """Living worker processes."""
        found = []
        for pid in self.members():
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                continue
            if b"spawn_main" in words:
                found.append(pid)
        return found

    def signal(self, kind: str) -> None:
        """Send a signal the way people, shells and machines do."""
        pid = self.process.pid
        if kind == "kill a worker" and (workers := self.workers()):
            os.kill(workers[0], signal.SIGKILL)
        elif kind in ("kill", "kill a worker"):
            os.kill(pid, signal.SIGKILL)
        elif kind == "kill all":
            os.killpg(pid, signal.SIGKILL)
        elif kind == "terminate":
            os.kill(pid, signal.SIGTERM)
        else:
            os.killpg(pid, signal.SIGINT)  # as a terminal does it: parent and workers

    def end(self) -> str:
        """Wait for the command and all of its processes; returns what is wrong, or nothing."""
        try:
            self.process.wait(PATIENCE)
            end = time.monotonic() + PATIENCE
            while self.members():
                if time.monotonic() > end:
                    return "processes survived the command"
                time.sleep(0.01)
        except subprocess.TimeoutExpired:
            return f"still running {PATIENCE:.0f} s after the signal"
        finally:
            for pid in self.members():
                os.kill(pid, signal.SIGKILL)
            self.process.wait()
        return ""

    def log(self) -> str:
        """What it printed."""
        return (self.folder / "log").read_text("utf-8", "replace")


@dataclass(frozen=True)
class Pace:
    """How long an undisturbed command takes, in seconds."""

    total: float
    first: float
    """Until the first milestone."""
    between: float
    """Between two milestones, on average."""
    milestones: int


def run_alone(victim: Victim, folder: Path) -> Pace:
    """Run a command undisturbed."""
    folder.mkdir(parents=True)
    began = time.monotonic()
    running = victim.start(folder)
    running.wait_for(lambda: victim.count(folder) > 0)
    first = time.monotonic() - began
    if (fault := running.end()) or running.process.returncode:
        raise RuntimeError(f"{victim.name} failed when left alone: {fault} {running.log()[-300:]}")
    total = time.monotonic() - began
    milestones = victim.count(folder)
    return Pace(total, first, (total - first) / max(1, milestones - 1), milestones)


def contents(victim: Victim, folder: Path) -> dict[str, str]:
    """The hash of every file that the command left, by path."""
    files = (path for path in (folder / "out").rglob("*") if path.is_file())
    kept = (path for path in files if not any(path.match(pattern) for pattern in victim.ignored))
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in kept}


def wait_for_moment(running: Running, when: str, pace: Pace, draw: random.Random) -> bool:
    """Wait until it is time for the signal; False if the command ended before."""
    victim, out = running.victim, running.folder / "out"
    before = victim.count(running.folder)
    if when in ("start", "any time"):
        end = time.monotonic() + draw.random() * (pace.first if when == "start" else pace.total)
        return running.wait_for(lambda: time.monotonic() > end)
    if when == "boundary":
        listing = _names(out, victim)
        return running.wait_for(lambda: _names(out, victim) - listing != set())
    if not running.wait_for(lambda: victim.count(running.folder) > before):
        return False
    end = time.monotonic() + draw.random() * pace.between
    return running.wait_for(lambda: time.monotonic() > end)


def _names(out: Path, victim: Victim) -> set[tuple[str, int]]:
    """Milestones and the files they are written to, with their times: a new one means that a write has begun."""
    found = set()
    for pattern in victim.milestones:
        for path in out.glob(pattern.rpartition(".")[0] + ".*"):
            try:
                found.add((str(path), path.stat().st_mtime_ns))
            except OSError:  # renamed meanwhile
                found.add((str(path), 0))
    return found


def stop_once(victim: Victim, folder: Path, when: str, kind: str, pace: Pace, draw: random.Random) -> tuple[str, str]:
    """Start a command and send it one signal: (when it came, what is wrong)."""
    running = victim.start(folder)
    try:
        in_time = wait_for_moment(running, when, pace, draw)
        if in_time:
            running.signal(kind)
        reached = victim.count(folder)
    finally:
        fault = running.end()
    status, log = running.process.returncode, running.log()
    where = "too late" if not in_time or status == 0 else _place(when, reached, pace.milestones)
    allowed = {
        "kill": (-9,),
        "kill all": (-9,),
        "terminate": (143, -15),
        "interrupt": (130, -2),
        "kill a worker": (2, -9),
    }
    if not fault and where != "too late" and status not in allowed[kind]:
        fault = f"status {status} instead of {allowed[kind]}: {log[-300:]}"
    if "Traceback" in log:
        fault = fault or f"a traceback: {log[-300:]}"
    if "damaged" in log:
        fault = fault or f"a damaged part: {log[-300:]}"
    if not fault and victim.check is not None:
        fault = victim.check(folder)
    return where, fault


def _place(when: str, reached: int, milestones: int) -> str:
    if reached == 0:
        return f"{when}, before the first part"
    return f"{when}, {AFTER_FIRST if reached < milestones else 'after the last part'}"


def harass(victim: Victim, folder: Path, kills: int, seed: int, outcome: Outcome) -> Counter[str]:
    """Stop a command again and again, finish it, and compare what it left with that of an undisturbed one."""
    draw = random.Random(f"{victim.name} {seed}")
    pace = run_alone(victim, folder / "alone")
    stopped = folder / "stopped"
    stopped.mkdir()
    if victim.first is not None:
        victim.first(stopped / "out")
    landed: Counter[str] = Counter()
    moments, kinds = itertools.cycle(victim.moments), _kinds(victim, draw)
    for kill, when, kind in zip(range(kills), moments, kinds, strict=False):
        where, fault = stop_once(victim, stopped, when, kind, pace, draw)
        landed[where] += 1
        outcome.tried += 1
        if fault:
            outcome.fail(f"{victim.name}: '{kind}' at '{when}' (signal {kill} of seed {seed}): {fault}")
        else:
            outcome.survived += 1
        if where == "too late" and victim.count(stopped) == pace.milestones:
            shutil.rmtree(stopped / "out")  # finished early: begin anew
            if victim.first is not None:
                victim.first(stopped / "out")
    running = victim.start(stopped)
    if (fault := running.end()) or running.process.returncode:
        outcome.fail(
            f"{victim.name}: could not be finished after signals of seed {seed}: {fault} {running.log()[-300:]}"
        )
    expected, found = contents(victim, folder / "alone"), contents(victim, stopped)
    if different := sorted(name for name in expected | found if expected.get(name) != found.get(name)):
        outcome.fail(f"{victim.name}: differs from an undisturbed one after signals of seed {seed}: {different}")
    return landed


def _kinds(victim: Victim, draw: random.Random) -> Iterator[str]:
    """All kinds of signals in random order, again and again; half of them kills."""
    kinds = [*SIGNALS, "kill"] if victim.workers > 1 else [*SIGNALS[:4], "kill", "kill all"]
    while True:
        yield from draw.sample(kinds, len(kinds))


def _earlier_agent(out: Path) -> None:
    """An agent that was trained before: its card and the new weights must not be mixed."""
    out.mkdir()
    for suffix in (".npz", ".json"):
        shutil.copy(Path(zoo.__file__).parent / f"cartpole-ppo{suffix}", out)


def _usable_agent(folder: Path) -> str:
    """Whether the folder of `train` holds a whole agent, or none."""
    card = folder / "out" / "cartpole-ppo.json"
    if not card.exists():
        return ""
    try:
        zoo.load_card(card)
    except NappingError as error:
        return f"the agent cannot be loaded: {error}"
    return ""


def _run(domain: str, agent: str, method: str, trials: int, protocol: str, workers: int) -> Victim:
    words = ("run", domain, "--agent", agent, "--method", method, "--detector", "given")
    words += ("--trials", str(trials), "--protocol", protocol)
    return Victim(f"run {domain} {method}, {workers} worker(s)", words, workers=workers)


VICTIMS = (
    _run("cartpole", "ppo", "napping", 1280, "2+8", 1),
    _run("cartpole", "dqn", "napping-ucb", 1280, "2+8", 2),
    _run("mountaincar", "dqn", "napping", 1280, "1+3", 1),
    _run("mountaincar", "dqn", "random", 1280, "1+8", 2),
    _run("crossroad", "dqn", "napping", 1280, "2+8", 2),
    _run("angrybirds", "naive", "frozen", 1280, "0+1", 1),
    Victim(
        "train", ("train", "cartpole", "ppo", "--steps", "512"), ("cartpole-ppo.npz", "cartpole-ppo.json"),
        ignored=("*.tmp",), moments=("boundary", "any time"), first=_earlier_agent, check=_usable_agent,
    ),
    Victim(
        "paper", ("paper", "--domains", "cartpole"), ("runs/*/part-*.parquet", "figures/*.png", "*/report.html"),
        ("-P", small_paper.__file__), ignored=("seconds.json",), workers=2,
    ),
)  # fmt: skip


def attack(budget: float, seed: int) -> Outcome:
    """Stop every victim again and again."""
    outcome = Outcome("kills")
    landed: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for number, victim in enumerate(VICTIMS):
            kills = max(1, round(KILLS * budget))
            here = harass(victim, Path(folder, str(number)), kills, seed, outcome)
            outcome.notes.append(f"{victim.name}: " + ", ".join(f"{n} {where}" for where, n in sorted(here.items())))
            landed += here if victim.first is None else Counter()  # a training has no parts
    inside = sum(n for where, n in landed.items() if where.endswith(AFTER_FIRST))
    outcome.notes.append(f"{inside} of {landed.total()} signals landed after the first finished part")
    if budget >= 1 and inside < NEEDED:
        outcome.fail(f"only {inside} signals landed after the first finished part; {NEEDED} are needed; seed {seed}")
    return outcome
