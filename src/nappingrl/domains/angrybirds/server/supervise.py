"""External agents under supervision: started, served, watched, and started again where they fail.

What an agent prints and how it exits says nothing about how it played: only the server's record counts.
"""

import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from nappingrl.domains.angrybirds.server.game import MakeWorld
from nappingrl.domains.angrybirds.server.listener import Say
from nappingrl.domains.angrybirds.server.playable import Playable
from nappingrl.domains.angrybirds.server.process import AgentProcess
from nappingrl.domains.angrybirds.server.protocol import AGENT_PORT, ProtocolError
from nappingrl.domains.angrybirds.server.results import PASS, Episode
from nappingrl.domains.angrybirds.server.server import LOOPBACK, Server, Settings
from nappingrl.domains.angrybirds.server.trial_plan import Plan, Source
from nappingrl.domains.angrybirds.server.unfinished import Remainder, is_endless
from nappingrl.errors import BadSpecError

LOG_FILE = "agent.log"
TICK = 0.05
"""How often the agent is looked at, in seconds."""
MOST_LINES = 20
"""Lines of the server that are passed on per start: an agent that connects for ever may not flood the terminal."""

MakeWords = Callable[[int], Sequence[str]]
"""The agent's command for a port."""


@dataclass(frozen=True, slots=True)
class Patience:
    """When an agent is stopped, and how often it is started again."""

    seconds: float = 300.0
    """Without a shot."""
    restarts: int = 3
    grace: float = 5.0
    """For an agent that has played to the end, or has hung up, to end by itself."""

    def __post_init__(self) -> None:
        if not 0 < self.seconds < float("inf"):
            raise BadSpecError(f"--timeout {self.seconds:g}; allowed: seconds above 0")
        if self.restarts < 0:
            raise BadSpecError(f"--restarts {self.restarts} is negative; allowed: 0, 1, 2, ...")


@dataclass(frozen=True, slots=True)
class Start:
    """One time that the agent was started, as the server saw it."""

    number: int
    end: str
    """How it ended, in words."""
    exit_status: int
    """Of the command; negative: the signal that ended it. Nothing is judged by it."""
    levels: int
    passed: int
    shots: int
    seconds: float

    def __str__(self) -> str:
        played = (
            f"levels {self.levels}, passed {self.passed}, shots {self.shots}" if self.levels else "no level entered"
        )
        return f"start {self.number}: {self.end}; {played}, {self.seconds:.0f} s"


@dataclass(frozen=True, slots=True)
class Supervised:
    """What came of an agent."""

    starts: tuple[Start, ...]
    episodes: tuple[Episode, ...]
    """What was played, as if in one game."""
    missing: tuple[Episode, ...]
    """Levels that were never entered though the agent had every chance; none if a person stopped it."""
    is_interrupted: bool


class _Watch:
    """Sees how one start gets on. Only its first game counts: it cannot play the same levels twice."""

    def __init__(self, make_world: MakeWorld, n_trials: int) -> None:
        self._make_world, self._n_trials = make_world, n_trials
        self._lock = threading.Lock()
        self._owner: threading.Thread | None = None
        """The server has one thread per connection; this one plays."""
        self._world: Playable | None = None
        self._n_birds = self._n_shots_before = 0
        self._trial_began = time.monotonic()
        self.n_ended = 0

    @property
    def is_over(self) -> bool:
        """All trials are."""
        return self.n_ended >= self._n_trials

    @property
    def is_playing(self) -> bool:
        """The agent has entered a level and is still connected."""
        return self._owner is not None and self._owner.is_alive()

    @property
    def has_hung_up(self) -> bool:
        """The agent has entered a level and is not connected any more."""
        return self._owner is not None and not self._owner.is_alive()

    @property
    def progress(self) -> tuple[int, int]:
        """Changes with every shot and trial. Entering levels is none: where that is free it need not end."""
        with self._lock:
            return self.n_ended, self._n_shots()

    @property
    def trial_seconds(self) -> float:
        """Since the trial began that is not over."""
        return time.monotonic() - self._trial_began

    def make_world(self, source: Source) -> Playable:
        """The world of a level that was entered."""
        if not self._is_owner():
            raise ProtocolError("a second game; an external agent plays one per start")
        world = self._make_world(source)
        with self._lock:
            self._n_shots_before = self._n_shots()
            self._world, self._n_birds = world, world.birds_left
        return world

    def on_trial(self, _: tuple[Episode, ...]) -> None:
        """A trial is over."""
        if self._is_owner():
            with self._lock:
                self.n_ended += 1
                self._trial_began = time.monotonic()

    def _n_shots(self) -> int:
        return self._n_shots_before + (self._n_birds - self._world.birds_left if self._world is not None else 0)

    def _is_owner(self) -> bool:
        with self._lock:
            self._owner = self._owner or threading.current_thread()
            return self._owner is threading.current_thread()


class Supervisor:
    """Plays a plan with an external agent.

    Args:
        plan: What is played; every set of it must have an end.
        make_world: Makes the world of a level when it is loaded.
        make_words: The agent's command.
        out: Folder; each start writes its tables and the agent's output into start-1, start-2, ...
        port: For the agent; 0 takes a free one for each start.
        patience: When to stop it and start it again.
        settings: Of the server.
        say: Gets one line for what a person may want to know.
    """

    def __init__(
        self,
        plan: Plan,
        make_world: MakeWorld,
        make_words: MakeWords,
        out: Path,
        port: int = AGENT_PORT,
        patience: Patience | None = None,
        settings: Settings | None = None,
        say: Say | None = None,
    ) -> None:
        _check_ends(plan)
        self._remainder = Remainder(plan)
        self._make_world, self._make_words, self._out, self._port = make_world, make_words, out, port
        self._patience, self._settings = patience or Patience(), settings
        self._say: Say = say or (lambda _: None)
        self._starts: list[Start] = []

    def run(self) -> Supervised:
        """Start the agent until all is played or its restarts are used up. Ctrl-C and SIGTERM stop it, too.

        Raises:
            BadSpecError: if the command cannot be started, or the port is taken.
        """
        is_interrupted = False
        with (
            _signals_interrupt(),
            tempfile.TemporaryDirectory(prefix="napping-agent-", ignore_cleanup_errors=True) as folder,
        ):
            try:
                while self._remainder.n_left and len(self._starts) <= self._patience.restarts:
                    self._start(Path(folder))
            except KeyboardInterrupt:
                is_interrupted = True
                self._say("stopped, and the agent with it")
        missing = () if is_interrupted else tuple(self._remainder.missing())
        return Supervised(tuple(self._starts), tuple(self._remainder.episodes), missing, is_interrupted)

    def _start(self, folder: Path) -> None:
        number, began = len(self._starts) + 1, time.monotonic()
        plan, out = self._remainder.take(), self._out / f"start-{number}"
        watch = _Watch(self._make_world, len(plan.trials))
        server = Server(
            plan, watch.make_world, LOOPBACK, self._port, None, out, self._settings, watch.on_trial, _few(self._say)
        )
        end, status = "stopped by you", 0
        with server:
            process = AgentProcess(self._make_words(server.port), folder, out / LOG_FILE)
            self._say(f"start {number}: the agent plays on port {server.port}, its output is in {out / LOG_FILE}")
            try:
                end = self._watch(process, watch)
            finally:
                status = process.end()
                server.close()
                self._remainder.add(server.episodes, watch.n_ended, watch.trial_seconds)
                self._tell(number, end, status, server.episodes, time.monotonic() - began)

    def _watch(self, process: AgentProcess, watch: _Watch) -> str:
        """Until the agent is done, gone or stuck: which of them, in words."""
        progress, since = watch.progress, time.monotonic()
        hung_up_at: float | None = None
        while not process.has_ended or watch.is_playing:
            now = time.monotonic()
            if progress != watch.progress:
                progress, since = watch.progress, now
            if watch.has_hung_up and hung_up_at is None:
                hung_up_at = now
            if watch.is_over:
                if now - since > self._patience.grace:
                    return "played to the end; stopped, as it did not end by itself"
            elif hung_up_at is not None and now - hung_up_at > self._patience.grace:
                return "hung up, but did not end; stopped"
            elif now - since > self._patience.seconds:
                return f"no shot for {self._patience.seconds:g} s; stopped"
            time.sleep(TICK)
        return "played to the end" if watch.is_over else "ended by itself"

    def _tell(self, number: int, end: str, status: int, episodes: Sequence[Episode], seconds: float) -> None:
        """Write down a start, in one line for the person."""
        n_passed, n_shots = sum(one.status == PASS for one in episodes), sum(one.n_shots for one in episodes)
        if end == "ended by itself":
            end += f" ({f'exit status {status}' if status >= 0 else f'signal {-status}'})"
        self._starts.append(Start(number, end, status, len(episodes), n_passed, n_shots, seconds))
        n_left, n_more = self._remainder.n_left, self._patience.restarts + 1 - number
        what_next = f"; levels left {n_left}, restarts left {n_more}" if n_left else ""
        self._say(f"{self._starts[-1]}{what_next}")


def _check_ends(plan: Plan) -> None:
    for trial in plan.trials:
        if any(is_endless(levels) for levels in (trial.training, *trial.tests)):
            raise BadSpecError(
                f"trial '{trial.name}' limits neither entries nor shots nor time: it need not end; "
                "give it a limit, or use napping birds serve"
            )


def _few(say: Say) -> Say:
    """Only the first lines."""
    n_said = 0

    def say_few(text: str) -> None:
        nonlocal n_said
        n_said += 1
        if n_said <= MOST_LINES:
            say(text)
        if n_said == MOST_LINES:
            say("more such lines of this start are left out")

    return say_few


@contextmanager
def _signals_interrupt() -> Iterator[None]:
    """What asks this process to end is like Ctrl-C, so that the agent does not stay behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    numbers = signal.SIGTERM, signal.SIGHUP
    before = [signal.signal(number, interrupt) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
