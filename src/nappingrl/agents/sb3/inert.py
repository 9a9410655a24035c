"""Pickles as inert records: nothing that a pickle names is imported or called, and its memory is bounded.

Unpickling calls whatever the file names. Here every name becomes a record that only stores its arguments. The opcodes
are counted and checked first: nine bytes are enough to make Python's unpickler allocate gigabytes.
"""

import io
import pickle
import pickletools
from collections.abc import Iterator
from typing import Any, BinaryIO

from typing_extensions import override

from nappingrl.errors import BadAgentError

DAMAGED = "it is not a pickle, or a damaged one"


class Inert:
    """Stands for any class, function or instance in a pickle; stores its arguments and does nothing with them."""

    origin = ""
    args: tuple[Any, ...]
    state: Any

    def __new__(cls, *args: Any, **kwargs: Any) -> "Inert":
        """Record a call."""
        self = object.__new__(cls)
        self.args, self.state = args, None
        return self

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: __new__ has stored the arguments."""

    def __call__(self, *args: Any, **kwargs: Any) -> "Inert":
        """Record a call of an instance."""
        return Inert(*args)

    def __setstate__(self, state: Any) -> None:
        """Store the state."""
        self.state = state

    def ignore(self, *args: Any) -> None:
        """Drop the items of dictionaries, lists and sets of unknown classes."""

    __setitem__ = append = extend = add = ignore


class InertDict(dict[Any, Any]):
    """Stands for an OrderedDict: keeps its items and drops its attributes."""

    def __setstate__(self, state: Any) -> None:
        """Drop the attributes."""


class Stored(Inert):
    """Stands for a persistent id, which torch uses for the content of tensors."""


class _InertUnpickler(pickle.Unpickler):
    def __init__(self, content: BinaryIO) -> None:
        super().__init__(content)
        self.stored: list[Stored] = []

    @override
    def find_class(self, module: str, name: str) -> Any:
        """An inert class with the name as its origin."""
        if (module, name) == ("collections", "OrderedDict"):
            return InertDict
        return type("Inert", (Inert,), {"origin": f"{module}.{name}"})

    @override
    def persistent_load(self, pid: tuple[Any, ...]) -> "Stored":
        """A record of the id."""
        self.stored.append(Stored(*pid))
        return self.stored[-1]


def load_inert(stream: BinaryIO, max_opcodes: int) -> tuple[Any, list[Stored]]:
    """The next pickle of a stream as inert records, and its persistent ids; the stream stands behind it."""
    begin = stream.tell()
    for _ in opcodes(stream, max_opcodes):
        pass
    end = stream.tell()
    stream.seek(begin)
    unpickler = _InertUnpickler(io.BytesIO(stream.read(end - begin)))
    try:
        return unpickler.load(), unpickler.stored
    except Exception:  # a damaged pickle can raise anything
        raise BadAgentError(DAMAGED) from None


def opcodes(stream: BinaryIO, max_opcodes: int) -> Iterator[tuple[str, Any]]:
    """Names and arguments of the opcodes of a pickle; raises if there are too many, or one needs too much memory."""
    codes = pickletools.genops(stream)
    for number in range(max_opcodes):
        try:
            code, argument, _ = next(codes)
        except StopIteration:
            return
        except Exception:  # a damaged pickle can raise anything
            raise BadAgentError(DAMAGED) from None
        if code.name.endswith("PUT") and int(argument or 0) > number:  # the memo grows to the largest index
            raise BadAgentError(DAMAGED)
        yield code.name, argument
    raise BadAgentError(f"it is a pickle of more than {max_opcodes:,} operations")
