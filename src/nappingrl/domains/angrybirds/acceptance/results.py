"""The file of measured levels, one line of JSON each: what it holds already is not measured again."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from nappingrl.domains.angrybirds.acceptance.measuring import Measured, fingerprint, measure
from nappingrl.domains.angrybirds.acceptance.playing import Policy
from nappingrl.domains.angrybirds.levels.templates import make_level
from nappingrl.errors import BadRunError
from nappingrl.files import UnusableFileError, read_file

MAX_BYTES = 64_000_000
_DECODER = msgspec.json.Decoder(Measured)
_Key = tuple[str, int, bool]


def read_results(path: Path) -> dict[_Key, Measured]:
    """All levels of a file, by template, number and phase; the last line may be cut off."""
    if not path.exists():
        return {}
    try:
        lines = read_file(path, MAX_BYTES).split(b"\n")
    except UnusableFileError as error:
        raise BadRunError(f"{path} is no file of measured levels: {error}") from error
    found = {}
    for number, line in enumerate(lines[:-1], 1):
        try:
            level = _DECODER.decode(line)
        except msgspec.MsgspecError as error:
            raise BadRunError(f"line {number} of {path} is no measured level ({error}); use another --out") from error
        found[level.template, level.number, level.is_after] = level
    return found


def measure_all(
    templates: Sequence[str], numbers: Sequence[int], path: Path | None, make_policy: Callable[[int], Policy]
) -> Iterator[Measured]:
    """Measure levels before and after their novelty, and add them to the file; what it holds is reused.

    `make_policy` makes the scripted agent of a level. A level that has changed since is measured again.
    """
    known = read_results(path) if path is not None else {}
    if path is not None and path.exists():
        _cut_off_rest(path)
    for template in templates:
        for number in numbers:
            mark = fingerprint(make_level(template, number))
            for is_after in (False, True):
                level = known.get((template, number, is_after))
                if level is None or level.level != mark:
                    level = measure(template, number, is_after, make_policy(number))
                    if path is not None:
                        _append(path, level)
                yield level


def _append(path: Path, level: Measured) -> None:
    try:
        with path.open("ab") as file:
            file.write(msgspec.json.encode(level) + b"\n")
    except OSError as error:
        raise BadRunError(f"{path} cannot be written ({error.strerror}); use another --out") from error


def _cut_off_rest(path: Path) -> None:
    """Remove a last line that was not written whole."""
    data = read_file(path, MAX_BYTES)
    if data and not data.endswith(b"\n"):
        with path.open("r+b") as file:
            file.truncate(data.rfind(b"\n") + 1)
