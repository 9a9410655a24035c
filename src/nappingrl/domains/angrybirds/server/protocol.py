"""The Science Birds agent protocol as data: codes, states, and the layout of every request and reply."""

from dataclasses import dataclass
from enum import IntEnum

from nappingrl.errors import NappingError

AGENT_PORT = 2004

MOST_SHOTS = 16
MOST_OBJECTS = 4096
MOST_HIERARCHY = 64
LONGEST_TEXT = 65536
MOST_RECORDS = 300
"""Limits of a request; a sender that exceeds them is not an agent of this protocol."""


class ProtocolError(NappingError):
    """Raised when bytes violate the protocol, or the other side is gone."""


class State(IntEnum):
    """State of the game; published agents crash at larger numbers."""

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
    """Code of a request."""

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
    """Layout of a request and its reply: `struct` letters, or the name of a layout of variable length."""

    request: str = ""
    """Letters, or one of shots, likelihood, text."""
    reply: str = "B"
    """Letters, or one of picture, truth, truth+picture, batch, scores, hint, shots."""
    tail: str = ""
    """Arguments that only some client versions append; the fixed part does not announce them."""


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
    """An agent's report on novelty."""

    novel: float
    not_novel: float
    objects: tuple[int, ...] = ()
    """Ids of the objects that it considers novel."""
    level: int = 0
    text: str = ""
    hierarchy: tuple[float, ...] | None = None
    """One number per hierarchy level 0 to 8; None in the older form, which has none."""


@dataclass(frozen=True, slots=True)
class Request:
    """A parsed request."""

    code: Code
    numbers: tuple[int, ...] = ()
    """The arguments; a sequence of shots has five per shot, its code and four arguments."""
    likelihood: Likelihood | None = None
    text: str = ""
