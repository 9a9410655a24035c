"""A client of the protocol, for the real game and for our server."""

import json
import socket
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar

from nappingrl.domains.angrybirds.ground_truth.state import TAIL, GroundTruth
from nappingrl.domains.angrybirds.server.connection import Connection, HungUpError
from nappingrl.domains.angrybirds.server.protocol import (
    AGENT_PORT,
    MESSAGES,
    Code,
    Likelihood,
    ProtocolError,
    Request,
    State,
)
from nappingrl.domains.angrybirds.server.wire import (
    Parser,
    Picture,
    encode_request,
    parse_batch,
    parse_numbers,
    parse_picture,
    parse_scores,
    parse_sized,
    run_parser,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Configuration:
    """Reply to `configure`; all 0 in training."""

    round: int
    minutes: int
    n_levels: int


@dataclass(frozen=True, slots=True)
class SetInfo:
    """The limits of a level set."""

    seconds: int
    n_shots: int
    n_levels: int
    attempts: int
    mode: int
    order: int
    novelty_told: int
    """The last three are not documented; see docs/domains/angrybirds-protocol.md for our server."""


@dataclass(frozen=True, slots=True)
class ShotAt:
    """One shot of a sequence: a point on the screen, or a distance and an angle if polar."""

    x: int
    y: int
    tap_ms: int = 0
    is_polar: bool = False


class Client:
    """One agent's connection; use it as a context.

    Each method is one request. A refusal is False, 0 or None; violations of the protocol raise.

    Args:
        host: Host of the game's server.
        port: Its port for agents.
        seconds: Timeout of a reply; a safe shot in the real game takes up to a minute.

    Raises:
        ProtocolError: If there is no server, or it hangs up, is silent, or speaks another protocol.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = AGENT_PORT, seconds: float = 300.0) -> None:
        self._where = f"{host}:{port}"
        try:
            sock = socket.create_connection((host, port), timeout=seconds)
        except OSError as error:
            reason = error.strerror or "no answer"
            raise ProtocolError(f"no game server at {self._where} ({reason}); start it, or give its port") from error
        self._connection = Connection(sock, seconds, seconds)

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hang up; the game on the server ends."""
        self._connection.close()

    # The game --------------------------------------------------------------------------------------------------------

    def configure(self, agent_id: int, is_training: bool = True) -> Configuration:
        """Register the agent; must be the first request."""
        return Configuration(*self._numbers(Code.CONFIGURE, agent_id, int(is_training)))

    def set_speed(self, speed: int) -> bool:
        """Set the speed of the real game, 1 to 50."""
        return self._is_done(Code.SET_SPEED, speed)

    def state(self) -> State:
        """State of the game."""
        (number,) = self._numbers(Code.STATE)
        try:
            return State(number)
        except ValueError as error:
            raise self._wrong(f"state {number}; allowed: 0 to {max(State)}") from error

    def current_level(self) -> int:
        """Number of the level from 1; 0 if there is none."""
        return self._numbers(Code.CURRENT_LEVEL)[0]

    def n_levels(self) -> int:
        """Number of levels of the set."""
        return self._numbers(Code.N_LEVELS)[0]

    def my_scores(self) -> tuple[int, ...]:
        """The best score per level."""
        return self._ask(Request(Code.MY_SCORES), parse_scores())

    def score(self) -> int:
        """The score of the current level."""
        return self._numbers(Code.SCORE)[0]

    def ready_for_new_set(self) -> SetInfo:
        """Begin the announced trial or set."""
        return SetInfo(*self._numbers(Code.READY_FOR_NEW_SET))

    def load_level(self, number: int) -> bool:
        """Load a level by its number from 1."""
        return self._is_done(Code.LOAD_LEVEL, number)

    def restart_level(self) -> bool:
        """Load the current level again."""
        return self._is_done(Code.RESTART_LEVEL)

    def next_level(self) -> int:
        """Load the next available level: its number, 0 if there is none."""
        return self._numbers(Code.NEXT_LEVEL)[0]

    # Shots -----------------------------------------------------------------------------------------------------------

    def shoot(self, x: int, y: int, tap_ms: int = 0, is_fast: bool = False) -> bool:
        """Release at a point of the screen; returns when nothing moves, or at once if fast."""
        return self._is_done(Code.FAST_SHOOT if is_fast else Code.SHOOT, x, y, 0, tap_ms)

    def shoot_polar(self, r: int, theta: int, tap_ms: int = 0, is_fast: bool = False) -> bool:
        """Release by distance and angle; their units in the real game are not known."""
        return self._is_done(Code.FAST_SHOOT_POLAR if is_fast else Code.SHOOT_POLAR, r, theta, 0, tap_ms)

    def shoot_sequence(self, shots: list[ShotAt], is_fast: bool = False) -> list[bool]:
        """Several shots, at most 16."""
        code = Code.FAST_SHOOT_SEQUENCE if is_fast else Code.SHOOT_SEQUENCE
        numbers: list[int] = []
        for shot in shots:
            numbers += [Code.SHOOT_POLAR if shot.is_polar else Code.SHOOT, shot.x, shot.y, 0, shot.tap_ms]
        done = self._ask(Request(code, tuple(numbers)), parse_numbers("B" * len(shots)))
        return [number == 1 for number in done]

    def shoot_and_record(
        self, x: int, y: int, tap_ms: int = 0, every: int = 1, only_flight: bool | None = None
    ) -> list[GroundTruth]:
        """A safe shot, recorded every n-th frame; `only_flight` must be None for servers before v0.5.0."""
        option = () if only_flight is None else (int(only_flight),)
        request = Request(Code.SHOOT_AND_RECORD, (x, y, 0, tap_ms, every, *option))
        return [self._truth(record) for record in self._ask(request, parse_batch())]

    def zoom_out(self) -> bool:
        """Show the whole level."""
        return self._is_done(Code.ZOOM_OUT)

    def zoom_in(self) -> bool:
        """Show a part of the level."""
        return self._is_done(Code.ZOOM_IN)

    def click(self) -> bool:
        """Click in the centre of the screen."""
        return self._is_done(Code.CLICK)

    # Observations ----------------------------------------------------------------------------------------------------

    def screenshot(self) -> Picture:
        """A screenshot, (480, 640, 3)."""
        return self._ask(Request(Code.SCREENSHOT), parse_picture())

    def initial_screenshot(self) -> Picture:
        """The screenshot at the start of the level."""
        return self._ask(Request(Code.INITIAL_SCREENSHOT), parse_picture())

    def ground_truth(self, is_noisy: bool = False) -> GroundTruth:
        """The ground truth of the scene."""
        code = Code.NOISY_TRUTH if is_noisy else Code.TRUTH
        return self._truth(self._ask(Request(code), parse_sized()))

    def ground_truth_and_screenshot(self, is_noisy: bool = False) -> tuple[GroundTruth, Picture]:
        """Ground truth and screenshot of the same moment."""
        code = Code.NOISY_TRUTH_AND_SCREENSHOT if is_noisy else Code.TRUTH_AND_SCREENSHOT
        truth, picture = self._ask(Request(code), _parse_both())
        return self._truth(truth), picture

    def batch_ground_truth(self, every: int, n: int) -> list[GroundTruth]:
        """At most 300 ground truths, every n-th frame, without a shot."""
        records = self._ask(Request(Code.BATCH_TRUTH, (every, n)), parse_batch())
        return [self._truth(record) for record in records]

    # Novelty ---------------------------------------------------------------------------------------------------------

    def report_likelihood(self, report: Likelihood) -> bool:
        """Report how likely a novelty is."""
        (number,) = self._ask(Request(Code.REPORT_LIKELIHOOD, likelihood=report), parse_numbers("B"))
        return number == 1

    def report_description(self, text: str) -> bool:
        """Describe the novelty."""
        (number,) = self._ask(Request(Code.REPORT_DESCRIPTION, text=text), parse_numbers("B"))
        return number == 1

    def has_novelty(self) -> bool | None:
        """Whether the novelty has begun; None if this trial does not tell."""
        (number,) = self._numbers(Code.NOVELTY_INFO)
        return None if number < 0 else number > 0

    def novelty_hint(self, level: int = 1) -> Any:
        """A hint on the novelty."""
        return self._json(self._ask(Request(Code.NOVELTY_HINT, (level,)), parse_sized()))

    # Requests --------------------------------------------------------------------------------------------------------

    def _numbers(self, code: Code, *numbers: int) -> tuple[int, ...]:
        return self._ask(Request(code, numbers), parse_numbers(MESSAGES[code].reply))

    def _is_done(self, code: Code, *numbers: int) -> bool:
        return self._numbers(code, *numbers)[0] == 1

    def _ask(self, request: Request, parser: Parser[T]) -> T:
        try:
            self._connection.send(encode_request(request))
            self._connection.begin_message()
            return run_parser(parser, self._connection.read)
        except HungUpError as error:
            raise self._wrong("hung up") from error
        except OSError as error:
            raise self._wrong(error.strerror or "is gone") from error
        except ProtocolError as error:
            raise self._wrong(str(error)) from error

    def _truth(self, data: bytes) -> GroundTruth:
        truth: GroundTruth = self._json(data[: -len(TAIL)])
        return truth

    def _json(self, data: bytes) -> Any:
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise self._wrong(f"its ground truth is not JSON ({error})") from error

    def _wrong(self, what: str) -> ProtocolError:
        return ProtocolError(f"game server at {self._where}: {what}; is it a Science Birds server, and still running?")


def _parse_both() -> Parser[tuple[bytes, Picture]]:
    truth = yield from parse_sized()
    return truth, (yield from parse_picture())
