"""Supervises external agents: starts, serves and watches them, and restarts them when they fail.

Only the server's record counts; the output and the exit status of an agent say nothing about how it played.
"""

import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nappingrl.domains.angrybirds.server.game import MakeWorld
from nappingrl.domains.angrybirds.server.listener import Say
from nappingrl.domains.angrybirds.server.playable import Playable
from nappingrl.domains.angrybirds.server.process import AgentProcess
from nappingrl.domains.angrybirds.server.protocol import AGENT_PORT, ProtocolError
from nappingrl.domains.angrybirds.server.results import PASS, Episode
from nappingrl.domains.angrybirds.server.server import LOOPBACK, Server, Settings
from nappingrl.domains.angrybirds.server.trial_plan import Plan, Source
from nappingrl.domains.angrybirds.server.unfinished import UnfinishedPlan, is_endless
from nappingrl.errors import BadSpecError

LOG_FILE = "agent.log"
TICK = 0.05
MAX_SECONDS = 10**7
"""Seconds between two checks of the agent."""
MOST_LINES = 20
"""Lines of the server shown per start, so that an agent that keeps connecting cannot flood the terminal."""

MakeCommand = Callable[[int], Sequence[str]]
"""The agent's command line for a port."""


@dataclass(frozen=True, slots=True)
class Patience:
    """When an agent is stopped, and how often it is restarted."""

    seconds: float = 300.0
    """Longest time without a shot."""
    restarts: int = 3
    grace: float = 5.0
    """Seconds for an agent that has finished or hung up to exit."""

    def __post_init__(self) -> None:
        if not 0 < self.seconds <= MAX_SECONDS:
            raise BadSpecError(f"--timeout {self.seconds:g}; allowed: seconds above 0 and up to {MAX_SECONDS}")
        if self.restarts < 0:
            raise BadSpecError(f"--restarts {self.restarts} is negative; allowed: 0, 1, 2, ...")


@dataclass(frozen=True, slots=True)
class Start:
    """One start of the agent, as recorded by the server."""

    number: int
    end: str
    """How it ended."""
    exit_status: int
    """Exit status of the command, or the negative number of the signal; only informative."""
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
    """The result of a supervised agent."""

    starts: tuple[Start, ...]
    episodes: tuple[Episode, ...]
    """All episodes as if played in one game."""
    missing: tuple[Episode, ...]
    """Failed episodes of levels that were never entered; empty if the user interrupted."""
    interruption: KeyboardInterrupt | None
    """Why it was stopped early; None: it was not."""


class _Watch:
    """Tracks the progress of one start. Only its first game counts, so levels cannot be played twice."""

    def __init__(self, make_world: MakeWorld, n_trials: int) -> None:
        self._make_world, self._n_trials = make_world, n_trials
        self._lock = threading.Lock()
        self._owner: threading.Thread | None = None
        """The thread of the connection that plays; the server has one per connection."""
        self._world: Playable | None = None
        self._n_birds = self._n_shots_before = 0
        self._trial_began = time.monotonic()
        self.n_ended = 0

    @property
    def is_over(self) -> bool:
        """Whether all trials are over."""
        return self.n_ended >= self._n_trials

    @property
    def is_playing(self) -> bool:
        """Whether the agent has entered a level and is connected."""
        return self._owner is not None and self._owner.is_alive()

    @property
    def has_hung_up(self) -> bool:
        """Whether the agent has entered a level and is no longer connected."""
        return self._owner is not None and not self._owner.is_alive()

    @property
    def progress(self) -> tuple[int, int]:
        """Changes with every shot and trial; not with entered levels, which may be unlimited."""
        with self._lock:
            return self.n_ended, self._n_shots()

    @property
    def trial_seconds(self) -> float:
        """Seconds since the current trial began."""
        return time.monotonic() - self._trial_began

    def make_world(self, source: Source) -> Playable:
        """Make the world of an entered level."""
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
        plan: The trials to play; every set must have a limit.
        make_world: Makes the world of a level when it is loaded.
        make_command: The agent's command line.
        out: Folder; each start writes its tables and the agent's output into start-1, start-2, ...
        port: Port for the agent; 0 takes a free one for each start.
        patience: When to stop and restart the agent.
        settings: Options of the server.
        say: Shows one line to the user.
        observer_port: Port for observers; None: no observers.
    """

    def __init__(
        self,
        plan: Plan,
        make_world: MakeWorld,
        make_command: MakeCommand,
        out: Path,
        port: int = AGENT_PORT,
        patience: Patience | None = None,
        settings: Settings | None = None,
        say: Say | None = None,
        observer_port: int | None = None,
    ) -> None:
        _check_ends(plan)
        self._unfinished = UnfinishedPlan(plan)
        self._make_world = make_world
        self._make_command = make_command
        self._out = out
        self._port, self._observer_port = port, observer_port
        self._patience = patience or Patience()
        self._settings = settings
        self._say: Say = say or (lambda _: None)
        self._starts: list[Start] = []

    def run(self) -> Supervised:
        """Start the agent until everything is played or no restarts are left. KeyboardInterrupt stops it, too.

        Raises:
            BadSpecError: If the command cannot be started, or the port is taken.
        """
        interruption: KeyboardInterrupt | None = None
        with tempfile.TemporaryDirectory(prefix="napping-agent-", ignore_cleanup_errors=True) as folder:
            try:
                while self._unfinished.n_left and len(self._starts) <= self._patience.restarts:
                    self._start(Path(folder))
            except KeyboardInterrupt as stopped:
                interruption = stopped
                self._say("stopped, and the agent with it")
        missing = () if interruption else tuple(self._unfinished.missing())
        return Supervised(tuple(self._starts), tuple(self._unfinished.episodes), missing, interruption)

    def _start(self, folder: Path) -> None:
        number, began = len(self._starts) + 1, time.monotonic()
        plan, out = self._unfinished.next_game(), self._out / f"start-{number}"
        watch = _Watch(self._make_world, len(plan.trials))
        server = Server(
            plan, watch.make_world, LOOPBACK, self._port, self._observer_port, out, self._settings, watch.on_trial,
            _few(self._say),
        )  # fmt: skip
        end, status = "stopped by you", 0
        with server:
            process = AgentProcess(self._make_command(server.port), folder, out / LOG_FILE)
            self._say(f"start {number}: the agent plays on port {server.port}, its output is in {out / LOG_FILE}")
            try:
                end = self._watch(process, watch)
            finally:
                status = process.end()
                server.close()
                self._unfinished.add(server.episodes, watch.n_ended, watch.trial_seconds)
                self._record(number, end, status, server.episodes, time.monotonic() - began)

    def _watch(self, process: AgentProcess, watch: _Watch) -> str:
        """Wait until the agent is done, gone or stuck; returns which, in words."""
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

    def _record(self, number: int, end: str, status: int, episodes: Sequence[Episode], seconds: float) -> None:
        """Record a start and show it in one line."""
        n_passed = sum(episode.status == PASS for episode in episodes)
        n_shots = sum(episode.n_shots for episode in episodes)
        if end == "ended by itself":
            end += f" ({f'exit status {status}' if status >= 0 else f'signal {-status}'})"
        self._starts.append(Start(number, end, status, len(episodes), n_passed, n_shots, seconds))
        n_left, n_more = self._unfinished.n_left, self._patience.restarts + 1 - number
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
    """Show only the first lines."""
    n_said = 0

    def say_few(text: str) -> None:
        nonlocal n_said
        n_said += 1
        if n_said <= MOST_LINES:
            say(text)
        if n_said == MOST_LINES:
            say("more such lines of this start are left out")

    return say_few
