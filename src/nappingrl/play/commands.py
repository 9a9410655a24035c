"""What a visitor may ask of a session: a closed set of small messages, checked when they are read."""

from typing import Annotated, Literal

import msgspec

from nappingrl.errors import BadSpecError

MAX_MESSAGE = 16_384
"""Bytes of a command."""
MAX_CHANGES = 400
Name = Annotated[str, msgspec.Meta(max_length=80)]
Number = Annotated[float, msgspec.Meta(ge=-1e9, le=1e9)]
Changes = Annotated[dict[Name, Number], msgspec.Meta(max_length=MAX_CHANGES)]
Seed = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]


class Command(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="do", tag=str.lower):
    """One request."""


class Begin(Command, frozen=True):
    """Begin another match; the agent is a name that the server offered."""

    domain: Name
    agent: Name = ""
    method: Name = ""
    seed: Seed = 0
    changes: Changes = {}


class Change(Command, frozen=True):
    """Other parameters, at once; those that are not named are as trained."""

    changes: Changes


class Novelty(Command, frozen=True):
    """Draw a named novelty; an empty name is a surprise, the domain's default novelty."""

    name: Name = ""


class World(Command, frozen=True):
    """Return to a world that was met before; 0 is the one of training."""

    number: Annotated[int, msgspec.Meta(ge=0, lt=1000)]


class Method(Command, frozen=True):
    """The same match with another method."""

    name: Name


class Pause(Command, frozen=True):
    """Stop or go on; None: the other of the two."""

    on: bool | None = None


class Step(Command, frozen=True):
    """One step, then pause."""


class Speed(Command, frozen=True):
    """How fast, relative to the world's own pace; 0: as fast as it goes."""

    factor: Annotated[float, msgspec.Meta(ge=0, le=64)]


class Restart(Command, frozen=True):
    """Begin the match again, in the world as it is now."""


class Act(Command, frozen=True):
    """The action of a person."""

    action: Annotated[int, msgspec.Meta(ge=0, lt=1000)]


class Shoot(Command, frozen=True):
    """Where a person lets the bird go, in pixels of the game's screen."""

    x: Annotated[float, msgspec.Meta(ge=-2000, le=2000)]
    y: Annotated[float, msgspec.Meta(ge=-2000, le=2000)]


class Ack(Command, frozen=True):
    """The tab has shown a frame."""

    frame: int


class Film(Command, frozen=True):
    """Film the match from now on; without a format: end the film and send it."""

    format: Literal["gif", "mp4", ""] = ""


class Save(Command, frozen=True):
    """Send the adapted agent as a file."""


AnyCommand = (
    Begin | Change | Novelty | World | Method | Pause | Step | Speed | Restart | Act | Shoot | Ack | Film | Save
)
_decoder = msgspec.json.Decoder(AnyCommand)


def read_command(text: str | bytes) -> AnyCommand:
    """The command in a message; one line of complaint where it is none."""
    if len(text) > MAX_MESSAGE:
        raise BadSpecError(f"a message of {len(text)} bytes; allowed: at most {MAX_MESSAGE}")
    try:
        command: AnyCommand = _decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadSpecError(f"not a command: {str(error)[:200]}") from None
    return command
