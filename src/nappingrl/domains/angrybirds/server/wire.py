"""The bytes of every request and reply of the protocol, without sockets.

Parsers are generators that yield how many bytes they need next, so server, client and tests share them. All numbers
are big-endian; a request is one byte of code followed by its arguments.
"""

import struct
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nappingrl.domains.angrybirds.server.protocol import (
    LONGEST_TEXT,
    MESSAGES,
    MOST_HIERARCHY,
    MOST_OBJECTS,
    MOST_SHOTS,
    Code,
    Likelihood,
    ProtocolError,
    Request,
)

T = TypeVar("T")
Picture = NDArray[np.uint8]
"""(height, width, 3) red, green, blue; rows from top to bottom."""

LARGEST_SIDE = 8192
LARGEST_TRUTH = 1 << 26
LARGEST_COUNT = 100_000
"""Limits of a reply; a sender that exceeds them is not a server of this protocol."""


@dataclass(frozen=True, slots=True)
class Need:
    """The bytes that a parser waits for."""

    n_bytes: int
    is_optional: bool = False
    """b"" is accepted, too: client versions differ in their tails."""


Parser = Generator[Need, bytes, T]


def run_parser(parser: Parser[T], read: Callable[[Need], bytes]) -> T:
    """Run a parser with a function that reads the bytes it needs."""
    try:
        need = next(parser)
        while True:
            need = parser.send(read(need))
    except StopIteration as stop:
        result: T = stop.value
        return result


# Requests ------------------------------------------------------------------------------------------------------------


def parse_request() -> Parser[Request]:
    """Parse one request."""
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
    """Encode a request, with the tail if it has enough numbers.

    Raises:
        ProtocolError: If a number does not fit into its bytes.
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
    """Encode a reply of fixed length."""
    return struct.pack(">" + MESSAGES[code].reply, *numbers)


def encode_picture(picture: Picture) -> bytes:
    """Encode width, height and pixels."""
    height, width, _ = picture.shape
    return struct.pack(">II", width, height) + picture.tobytes()


def encode_sized(data: bytes) -> bytes:
    """Encode length and content: a ground truth with its tail, or a hint without."""
    return struct.pack(">I", len(data)) + data


def encode_batch(records: Sequence[bytes]) -> bytes:
    """Encode the count, then each record with its length."""
    return struct.pack(">I", len(records)) + b"".join(map(encode_sized, records))


def encode_scores(scores: Sequence[int]) -> bytes:
    """Encode the count, then one number per level."""
    return struct.pack(f">I{len(scores)}I", len(scores), *scores)


def parse_numbers(letters: str) -> Parser[tuple[int, ...]]:
    """Parse a part of fixed length; no letters need no bytes."""
    if not letters:
        return ()
    return struct.unpack(">" + letters, (yield Need(struct.calcsize(">" + letters))))


def parse_picture() -> Parser[Picture]:
    """Inverse of `encode_picture`."""
    width, height = yield from parse_numbers("II")
    if not (0 < width <= LARGEST_SIDE and 0 < height <= LARGEST_SIDE):
        raise ProtocolError(f"a picture of {width} x {height} pixels; allowed: 1 to {LARGEST_SIDE} a side")
    pixels = yield Need(width * height * 3)
    return np.frombuffer(pixels, np.uint8).reshape(height, width, 3)


def parse_sized() -> Parser[bytes]:
    """Inverse of `encode_sized`."""
    (n,) = yield from parse_numbers("I")
    _check_count("bytes of ground truth", n, LARGEST_TRUTH)
    return (yield Need(n)) if n else b""


def parse_batch() -> Parser[list[bytes]]:
    """Inverse of `encode_batch`."""
    (n,) = yield from parse_numbers("I")
    _check_count("records", n, LARGEST_COUNT)
    records: list[bytes] = []
    while len(records) < n:
        records.append((yield from parse_sized()))
    return records


def parse_scores() -> Parser[tuple[int, ...]]:
    """Inverse of `encode_scores`."""
    (n,) = yield from parse_numbers("I")
    _check_count("scores", n, LARGEST_COUNT)
    return (yield from parse_numbers("I" * n))
