"""The words of the Science Birds agent protocol, as data: codes, states, and the bytes of every request and reply.

Nothing here touches a socket. Bytes are read by parsers: generators that say how much they need next, so that server,
client and tests share them. All numbers are big-endian; a request is one byte of code and its arguments.
"""

import struct
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nappingrl.errors import NappingError

T = TypeVar("T")
Picture = NDArray[np.uint8]
"""(height, width, 3) red, green, blue; rows from top to bottom."""

AGENT_PORT = 2004

MOST_SHOTS = 16
MOST_OBJECTS = 4096
MOST_HIERARCHY = 64
LONGEST_TEXT = 65536
MOST_RECORDS = 300
"""What a request may ask for; beyond it the sender is not an agent of this protocol."""
LARGEST_SIDE = 8192
LARGEST_TRUTH = 1 << 26
LARGEST_COUNT = 100_000
"""What a reply may hold; beyond it the sender is not a server of this protocol."""


class ProtocolError(NappingError):
    """Raised when bytes do not follow the protocol, or the other side is gone."""


class State(IntEnum):
    """What the game is doing; larger numbers crash published agents."""

    UNKNOWN = 0
    MAIN_MENU = 1
    EPISODE_MENU = 2
    LEVEL_SELECTION = 3
    LOADING = 4
    PLAYING = 5
    WON = 6
    LOST = 7
    NEW_TEST_SET = 8
    NEW_TRAINING_SET = 9
    RESUME_TRAINING = 10
    NEW_TRIAL = 11
    REQUEST_NOVELTY_LIKELIHOOD = 12
    EVALUATION_TERMINATED = 13


class Code(IntEnum):
    """What a request is about."""

    CONFIGURE = 1
    SET_SPEED = 2
    SCREENSHOT = 11
    STATE = 12
    CURRENT_LEVEL = 14
    N_LEVELS = 15
    MY_SCORES = 23
    SHOOT = 31
    SHOOT_POLAR = 32
    SHOOT_SEQUENCE = 33
    ZOOM_OUT = 34
    ZOOM_IN = 35
    CLICK = 36
    SHOOT_AND_RECORD = 38
    FAST_SHOOT = 41
    FAST_SHOOT_POLAR = 42
    FAST_SHOOT_SEQUENCE = 43
    LOAD_LEVEL = 51
    RESTART_LEVEL = 52
    NEXT_LEVEL = 53
    TRUTH_AND_SCREENSHOT = 61
    TRUTH = 62
    NOISY_TRUTH_AND_SCREENSHOT = 63
    NOISY_TRUTH = 64
    SCORE = 65
    REPORT_LIKELIHOOD = 66
    REPORT_DESCRIPTION = 67
    READY_FOR_NEW_SET = 68
    NOVELTY_INFO = 69
    BATCH_TRUTH = 70
    INITIAL_SCREENSHOT = 71
    NOVELTY_HINT = 72


@dataclass(frozen=True, slots=True)
class Message:
    """How a request and its reply are laid out: letters of `struct`, or the name of a layout of variable length."""

    request: str = ""
    """Letters, or: shots, likelihood, text."""
    reply: str = "B"
    """Letters, or: picture, truth, truth+picture, batch, scores, hint, shots."""
    tail: str = ""
    """Arguments that only some versions append; the fixed part does not say whether they follow."""


MESSAGES: dict[Code, Message] = {
    Code.CONFIGURE: Message("IB", "BBB"),
    Code.SET_SPEED: Message("I"),
    Code.SCREENSHOT: Message(reply="picture"),
    Code.STATE: Message(),
    Code.CURRENT_LEVEL: Message(reply="I"),
    Code.N_LEVELS: Message(reply="I"),
    Code.MY_SCORES: Message(reply="scores"),
    Code.SHOOT: Message("iiii"),
    Code.SHOOT_POLAR: Message("iiii"),
    Code.SHOOT_SEQUENCE: Message("shots", "shots"),
    Code.ZOOM_OUT: Message(),
    Code.ZOOM_IN: Message(),
    Code.CLICK: Message(),
    Code.SHOOT_AND_RECORD: Message("iiiii", "batch", tail="i"),
    Code.FAST_SHOOT: Message("iiii", tail="ii"),
    Code.FAST_SHOOT_POLAR: Message("iiii", tail="ii"),
    Code.FAST_SHOOT_SEQUENCE: Message("shots", "shots"),
    Code.LOAD_LEVEL: Message("I"),
    Code.RESTART_LEVEL: Message(),
    Code.NEXT_LEVEL: Message(reply="I"),
    Code.TRUTH_AND_SCREENSHOT: Message(reply="truth+picture"),
    Code.TRUTH: Message(reply="truth"),
    Code.NOISY_TRUTH_AND_SCREENSHOT: Message(reply="truth+picture"),
    Code.NOISY_TRUTH: Message(reply="truth"),
    Code.SCORE: Message(reply="I"),
    Code.REPORT_LIKELIHOOD: Message("likelihood"),
    Code.REPORT_DESCRIPTION: Message("text"),
    Code.READY_FOR_NEW_SET: Message(reply="IIIIBBB"),
    Code.NOVELTY_INFO: Message(reply="i"),
    Code.BATCH_TRUTH: Message("ii", "batch"),
    Code.INITIAL_SCREENSHOT: Message(reply="picture"),
    Code.NOVELTY_HINT: Message("I", "hint"),
}


@dataclass(frozen=True, slots=True)
class Likelihood:
    """What an agent believes about novelty."""

    novel: float
    not_novel: float
    objects: tuple[int, ...] = ()
    """Ids of the objects it takes for novel."""
    level: int = 0
    text: str = ""
    hierarchy: tuple[float, ...] | None = None
    """One number per hierarchy level 0 to 8; None: the older form without them."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request, read."""

    code: Code
    numbers: tuple[int, ...] = ()
    """The arguments; of a sequence of shots, five per shot: code and four arguments."""
    likelihood: Likelihood | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Need:
    """What a parser waits for."""

    n_bytes: int
    is_optional: bool = False
    """Nothing (b"") is an answer, too: the tail of another version."""


Parser = Generator[Need, bytes, T]


def run_parser(parser: Parser[T], read: Callable[[Need], bytes]) -> T:
    """Drive a parser to its end by a function that gets the bytes it needs."""
    try:
        need = next(parser)
        while True:
            need = parser.send(read(need))
    except StopIteration as stop:
        result: T = stop.value
        return result


# Requests ------------------------------------------------------------------------------------------------------------


def parse_request() -> Parser[Request]:
    """Read one request, whatever its code."""
    number = (yield Need(1))[0]
    if number not in MESSAGES:
        raise ProtocolError(f"code {number} is not a request of this protocol")
    code = Code(number)
    layout = MESSAGES[code]
    if layout.request == "shots":
        return Request(code, (yield from _parse_shots()))
    if layout.request == "likelihood":
        return Request(code, likelihood=(yield from _parse_likelihood()))
    if layout.request == "text":
        return Request(code, text=(yield from _parse_text()))
    numbers: tuple[int, ...] = yield from parse_numbers(layout.request)
    if layout.tail and (more := (yield Need(struct.calcsize(">" + layout.tail), is_optional=True))):
        numbers += struct.unpack(">" + layout.tail, more)
    return Request(code, numbers)


def _parse_shots() -> Parser[tuple[int, ...]]:
    n = (yield Need(1))[0]
    _check_count("shots", n, MOST_SHOTS)
    numbers: list[int] = []
    for _ in range(n):
        shot = yield from parse_numbers("Biiii")
        if shot[0] not in (Code.SHOOT, Code.SHOOT_POLAR):
            raise ProtocolError(f"code {shot[0]} in a sequence of shots; allowed: 31, 32")
        numbers += shot
    return tuple(numbers)


def _parse_likelihood() -> Parser[Likelihood]:
    novel, not_novel, n = struct.unpack(">ffi", (yield Need(12)))
    _check_count("object ids", n, MOST_OBJECTS)
    objects = yield from parse_numbers("i" * n)
    (level,) = yield from parse_numbers("i")
    text = yield from _parse_text()
    hierarchy = None
    if more := (yield Need(4, is_optional=True)):
        (k,) = struct.unpack(">i", more)
        _check_count("hierarchy levels", k, MOST_HIERARCHY)
        hierarchy = struct.unpack(f">{k}f", (yield Need(4 * k)) if k else b"")
    return Likelihood(novel, not_novel, objects, level, text, hierarchy)


def _parse_text() -> Parser[str]:
    (n,) = yield from parse_numbers("i")
    _check_count("bytes of text", n, LONGEST_TEXT)
    return ((yield Need(n)) if n else b"").decode("utf-8", errors="replace")


def _check_count(what: str, n: int, most: int) -> None:
    if not 0 <= n <= most:
        raise ProtocolError(f"{n} {what}; allowed: 0 to {most}")


def encode_request(request: Request) -> bytes:
    """The bytes of a request; whole, with or without the tail, as its numbers are.

    Raises:
        ProtocolError: if a number does not fit into its bytes.
    """
    layout, code = MESSAGES[request.code], bytes([request.code])
    if layout.request == "shots":
        n = len(request.numbers) // 5
        _check_count("shots", n, MOST_SHOTS)
        return code + _pack("B" + "Biiii" * n, n, *request.numbers)
    if layout.request == "likelihood":
        assert request.likelihood is not None
        return code + _encode_likelihood(request.likelihood)
    if layout.request == "text":
        text = request.text.encode()
        return code + _pack("I", len(text)) + text
    letters = layout.request + (layout.tail if len(request.numbers) > len(layout.request) else "")
    return code + _pack(letters, *request.numbers)


def _encode_likelihood(report: Likelihood) -> bytes:
    text = report.text.encode()
    n = len(report.objects)
    data = _pack(f"ffi{n}iii", report.novel, report.not_novel, n, *report.objects, report.level, len(text)) + text
    if report.hierarchy is not None:
        k = len(report.hierarchy)
        data += _pack(f"i{k}f", k, *report.hierarchy)
    return data


def _pack(letters: str, *numbers: float) -> bytes:
    try:
        return struct.pack(">" + letters, *numbers)
    except (struct.error, OverflowError) as error:
        raise ProtocolError(f"{numbers} cannot be sent: {error}") from error


# Replies -------------------------------------------------------------------------------------------------------------


def encode_numbers(code: Code, *numbers: int) -> bytes:
    """A reply of fixed length."""
    return struct.pack(">" + MESSAGES[code].reply, *numbers)


def encode_picture(picture: Picture) -> bytes:
    """Width, height, pixels."""
    height, width, _ = picture.shape
    return struct.pack(">II", width, height) + picture.tobytes()


def encode_sized(data: bytes) -> bytes:
    """Length, content: a ground truth with its tail, or a hint without."""
    return struct.pack(">I", len(data)) + data


def encode_batch(records: Sequence[bytes]) -> bytes:
    """Count, then each record with its length."""
    return struct.pack(">I", len(records)) + b"".join(map(encode_sized, records))


def encode_scores(scores: Sequence[int]) -> bytes:
    """Count, then one number per level."""
    return struct.pack(f">I{len(scores)}I", len(scores), *scores)


def parse_numbers(letters: str) -> Parser[tuple[int, ...]]:
    """A part of fixed length; no bytes are asked for where there are no letters."""
    if not letters:
        return ()
    return struct.unpack(">" + letters, (yield Need(struct.calcsize(">" + letters))))


def parse_picture() -> Parser[Picture]:
    """What `encode_picture` writes."""
    width, height = yield from parse_numbers("II")
    if not (0 < width <= LARGEST_SIDE and 0 < height <= LARGEST_SIDE):
        raise ProtocolError(f"a picture of {width} x {height} pixels; allowed: 1 to {LARGEST_SIDE} a side")
    pixels = yield Need(width * height * 3)
    return np.frombuffer(pixels, np.uint8).reshape(height, width, 3)


def parse_sized() -> Parser[bytes]:
    """What `encode_sized` writes."""
    (n,) = yield from parse_numbers("I")
    _check_count("bytes of ground truth", n, LARGEST_TRUTH)
    return (yield Need(n)) if n else b""


def parse_batch() -> Parser[list[bytes]]:
    """What `encode_batch` writes."""
    (n,) = yield from parse_numbers("I")
    _check_count("records", n, LARGEST_COUNT)
    records: list[bytes] = []
    while len(records) < n:
        records.append((yield from parse_sized()))
    return records


def parse_scores() -> Parser[tuple[int, ...]]:
    """What `encode_scores` writes."""
    (n,) = yield from parse_numbers("I")
    _check_count("scores", n, LARGEST_COUNT)
    return (yield from parse_numbers("I" * n))
