"""One agent's game: answers every request in bytes, without a socket."""

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite

import msgspec

from nappingrl.domains.angrybirds.physics.scene import Scene
from nappingrl.domains.angrybirds.physics.world import LONGEST_TAP_MS, STEP
from nappingrl.domains.angrybirds.server.harness import Entry, Harness
from nappingrl.domains.angrybirds.server.observer import OBSERVE_CODES, Observer
from nappingrl.domains.angrybirds.server.playable import Playable, Recorder, polar_release_point, release_point
from nappingrl.domains.angrybirds.server.protocol import MOST_RECORDS, Code, Request
from nappingrl.domains.angrybirds.server.results import FAIL, PASS, PLAYING, Episode, Journal, place_of
from nappingrl.domains.angrybirds.server.trial_plan import Source
from nappingrl.domains.angrybirds.server.wire import (
    encode_batch,
    encode_numbers,
    encode_picture,
    encode_scores,
    encode_sized,
)

OK, REFUSED = 1, 0
POLL_STEPS = 200
"""Steps that pass during a fast shot when the agent asks for the state (4 s)."""
OBSERVE_STEPS = 5
"""Steps that pass when it observes the scene (0.1 s); other requests take no time."""
MOST_STEPS = 2000
"""Limit of a fast shot, and of a batch without a shot."""
LARGEST_BYTE, LARGEST_COUNT = 2**8 - 1, 2**32 - 1

MakeWorld = Callable[[Source], Playable]
OnTrial = Callable[[tuple[Episode, ...]], None]
"""Called with the episodes of a finished trial."""


@dataclass(slots=True)
class _Play:
    """A loaded level."""

    entry: Entry
    world: Playable
    first: Scene
    n_birds: int
    n_pigs: int
    n_shots: int = 0
    n_steps: int | None = None
    """Steps of the fast shot in progress, if any."""
    is_logged: bool = False


class Game:
    """Harness, world and results of one agent.

    Attributes:
        agent_id: The id that the agent gives itself.
    """

    def __init__(
        self,
        number: int,
        harness: Harness,
        make_world: MakeWorld,
        observer: Observer,
        journal: Journal,
        on_trial: OnTrial,
    ) -> None:
        self.agent_id = 0
        self._number = number
        self._harness = harness
        self._make_world = make_world
        self._observer = observer
        self._journal = journal
        self._on_trial = on_trial
        self._play: _Play | None = None
        self._evaluation = self._n_reported = 0
        self._answers: dict[Code, Callable[[Request], bytes]] = {
            Code.CONFIGURE: self._configure,
            Code.SET_SPEED: self._accept,
            Code.STATE: lambda request: encode_numbers(request.code, self._harness.poll()),
            Code.CURRENT_LEVEL: self._current_level,
            Code.N_LEVELS: lambda request: encode_numbers(request.code, len(self._harness.levels.sources)),
            Code.MY_SCORES: lambda _: encode_scores(self._harness.best_scores),
            Code.SHOOT: self._shoot,
            Code.SHOOT_POLAR: self._shoot,
            Code.SHOOT_SEQUENCE: self._shoot_sequence,
            Code.ZOOM_OUT: self._zoom,
            Code.ZOOM_IN: self._zoom,
            Code.CLICK: self._accept,
            Code.SHOOT_AND_RECORD: self._shoot_and_record,
            Code.FAST_SHOOT: self._shoot,
            Code.FAST_SHOOT_POLAR: self._shoot,
            Code.FAST_SHOOT_SEQUENCE: self._shoot_sequence,
            Code.LOAD_LEVEL: lambda request: self._load(request, self._harness.enter(request.numbers[0])),
            Code.RESTART_LEVEL: lambda request: self._load(request, self._harness.enter_again()),
            Code.NEXT_LEVEL: lambda request: self._load(request, self._harness.enter_next()),
            Code.SCORE: self._score,
            Code.REPORT_LIKELIHOOD: self._report_likelihood,
            Code.REPORT_DESCRIPTION: self._report_description,
            Code.READY_FOR_NEW_SET: self._ready,
            Code.NOVELTY_INFO: lambda request: encode_numbers(request.code, self._harness.novelty_info()),
            Code.BATCH_TRUTH: self._record,
            Code.INITIAL_SCREENSHOT: self._initial_screenshot,
            Code.NOVELTY_HINT: self._hint,
        }

    @property
    def is_terminated(self) -> bool:
        """Whether the whole evaluation is done."""
        return self._harness.is_terminated

    def handle(self, request: Request) -> bytes:
        """Reply to a request."""
        self._harness.check_time()
        if request.code is Code.STATE:
            self._advance(POLL_STEPS)
        elif request.code in OBSERVE_CODES or request.code is Code.SCORE:
            self._advance(OBSERVE_STEPS)
        answer = self._answers.get(request.code)
        reply = answer(request) if answer is not None else self._observer.reply(request.code, self.scene())
        self._follow_harness()
        return reply

    def scene(self) -> Scene | None:
        """The scene of the loaded level, if any."""
        return self._play.world.scene() if self._play is not None else None

    def close(self) -> list[Episode]:
        """End the game; an unfinished level counts as left. Returns the episodes not passed to `on_trial`."""
        self._leave_level()
        return self._journal.episodes[self._n_reported :]

    # Answers ---------------------------------------------------------------------------------------------------------

    def _configure(self, request: Request) -> bytes:
        self.agent_id, is_training = request.numbers
        if is_training:
            return encode_numbers(request.code, 0, 0, 0)
        levels = self._harness.levels
        minutes = min(-(-levels.time_limit // 60), LARGEST_BYTE)
        return encode_numbers(request.code, 1, minutes, min(len(levels.sources), LARGEST_BYTE))

    def _accept(self, request: Request) -> bytes:
        """Do nothing: results do not depend on speed, and there is no button to click."""
        return encode_numbers(request.code, OK)

    def _zoom(self, request: Request) -> bytes:
        """The view is always zoomed out fully."""
        return encode_numbers(request.code, REFUSED if self._harness.is_report_due else OK)

    def _current_level(self, request: Request) -> bytes:
        entry = self._harness.entry
        return encode_numbers(request.code, 0 if entry is None else entry.number)

    def _score(self, request: Request) -> bytes:
        return encode_numbers(request.code, 0 if self._play is None else _count(self._play.world.score))

    def _ready(self, request: Request) -> bytes:
        if self._harness.is_untouched:
            self._play = None  # no episode: the level may be entered again
        return encode_numbers(request.code, *self._harness.ready())

    def _load(self, request: Request, is_entered: bool) -> bytes:
        """Load the level that the harness has entered."""
        if not is_entered:
            return encode_numbers(request.code, REFUSED)
        self._leave_level()
        entry = self._harness.entry
        assert entry is not None
        world = self._make_world(entry.source)
        self._play = _Play(entry, world, world.scene(), world.birds_left, world.pigs_left)
        return encode_numbers(request.code, entry.number if request.code is Code.NEXT_LEVEL else OK)

    def _report_likelihood(self, request: Request) -> bytes:
        report = request.likelihood
        assert report is not None
        if not (isfinite(report.novel) and isfinite(report.not_novel)) or not self._harness.report():
            return encode_numbers(request.code, REFUSED)
        self._journal.add_likelihood(self._index(), report, place_of(self._harness.entry))
        return encode_numbers(request.code, OK)

    def _report_description(self, request: Request) -> bytes:
        self._journal.add_description(self._index(), request.text)
        return encode_numbers(request.code, OK)

    def _initial_screenshot(self, _: Request) -> bytes:
        return encode_picture(self._observer.picture(self._play.first if self._play is not None else None))

    def _hint(self, request: Request) -> bytes:
        """Hint level 1 gives what an informed agent may know; other hints are not documented."""
        info = self._harness.novelty_info()
        is_allowed = request.numbers[0] == 1 and info >= 0
        return encode_sized(msgspec.json.encode({"novelty": bool(info)} if is_allowed else {}))

    # Shots -----------------------------------------------------------------------------------------------------------

    def _shoot(self, request: Request) -> bytes:
        return encode_numbers(request.code, self._shoot_once(request.code, request.numbers))

    def _shoot_sequence(self, request: Request) -> bytes:
        """Shoot one after the other; the reply has a byte for each."""
        faster = 10 if request.code is Code.FAST_SHOOT_SEQUENCE else 0
        numbers = request.numbers
        shots = [numbers[i : i + 5] for i in range(0, len(numbers), 5)]
        return bytes(self._shoot_once(Code(shot[0] + faster), shot[1:]) for shot in shots)

    def _shoot_once(self, code: Code, numbers: tuple[int, ...], on_step: Callable[[], None] | None = None) -> int:
        """Make one shot of any kind: 1 if it was made, 0 if it was refused."""
        is_fast = code in (Code.FAST_SHOOT, Code.FAST_SHOOT_POLAR)
        if not is_fast:
            self._advance(MOST_STEPS)
        play = self._play
        if play is None or not self._harness.is_playing:
            return REFUSED
        is_polar = code in (Code.SHOOT_POLAR, Code.FAST_SHOOT_POLAR)
        release = (polar_release_point if is_polar else release_point)(play.world.scene(), numbers[:-2])
        tap_ms = min(max(0, numbers[-1]), LONGEST_TAP_MS)
        is_made = play.world.launch(release, tap_ms) if is_fast else play.world.shoot(release, tap_ms, on_step)
        if is_made:
            play.n_shots += 1
            self._harness.on_shot()
        if is_made and is_fast:
            play.n_steps = 0
            self._advance(MOST_STEPS if self._harness.is_set_over else int(tap_ms / 1000 / STEP) + 1)
        self._judge()
        return OK if is_made else REFUSED

    def _advance(self, n_steps: int) -> None:
        """Let time pass during a fast shot."""
        play = self._play
        if play is None or play.n_steps is None:
            return
        end = min(play.n_steps + n_steps, MOST_STEPS)
        while play.n_steps < end and play.world.is_moving:
            play.world.step()
            play.n_steps += 1
        if play.n_steps >= MOST_STEPS or not play.world.is_moving:
            play.world.settle()
            play.n_steps = None
            self._judge()

    def _shoot_and_record(self, request: Request) -> bytes:
        """Make a safe shot and record it at a frame interval; a refused shot gives one record of the scene."""
        x, y, t1, tap_ms, every, *option = request.numbers
        play = self._play
        recorder = Recorder(play.world, self._observer, every) if play is not None and every > 0 else None
        if recorder is None or not self._shoot_once(Code.SHOOT, (x, y, t1, tap_ms), recorder.on_step):
            return encode_batch([self._now()])
        records = recorder.flight(tap_ms) if option == [1] else recorder.records
        return encode_batch(records or [self._now()])

    def _record(self, request: Request) -> bytes:
        """Record without a shot and let time pass in between."""
        every, n = request.numbers
        if self._play is None or every < 1 or not 1 <= n <= MOST_RECORDS:
            return encode_batch([self._now()])
        world, n_steps = self._play.world, 0
        records = []
        for _ in range(n):
            end = min(n_steps + every, MOST_STEPS)
            while n_steps < end and world.is_moving:
                world.step()
                n_steps += 1
            records.append(self._now())
        self._judge()
        return encode_batch(records)

    def _now(self) -> bytes:
        return self._observer.record(self.scene())

    # Outcomes --------------------------------------------------------------------------------------------------------

    def _judge(self) -> None:
        """Report a decided level to the harness and the results."""
        play = self._play
        if play is not None and not play.is_logged and play.world.status != "playing":
            self._harness.on_end(play.world.status == "won", play.world.score)
            self._log(play)

    def _follow_harness(self) -> None:
        """Leave a level that the harness has left; report a finished trial."""
        if not self._harness.is_in_level:
            self._leave_level()
        if self._harness.evaluation > self._evaluation:
            ended = tuple(self._journal.episodes[self._n_reported :])
            self._n_reported += len(ended)
            self._evaluation = self._harness.evaluation
            self._on_trial(ended)

    def _leave_level(self) -> None:
        if self._play is not None and not self._play.is_logged:
            self._log(self._play)
        self._play = None

    def _log(self, play: _Play) -> None:
        play.is_logged = True
        world = play.world
        status = {"won": PASS, "lost": FAIL}.get(world.status, PLAYING)
        left = world.birds_left, world.pigs_left
        self._journal.add_episode(
            Episode(self._number, self.agent_id, play.entry, status, world.score, play.n_shots, *left, play.n_birds,
                    play.n_pigs)
        )  # fmt: skip

    def _index(self) -> tuple[int, int]:
        """Level and shot of a row of the results."""
        entry = self._harness.entry
        return entry.number if entry is not None else 0, self._harness.n_shots


def _count(number: int) -> int:
    """Clamp a number to 32 bits."""
    return min(max(0, number), LARGEST_COUNT)
