"""The trials to play, from a file of the original framework or from a list of levels."""

import codecs
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from nappingrl.domains.angrybirds.levels import files
from nappingrl.domains.angrybirds.physics.scene import Level
from nappingrl.errors import BadSpecError
from nappingrl.files import UnusableFileError, read_file

MAX_BYTES = 10_000_000
"""Of a trial file."""
TRAINING, TEST = "training", "test"
LARGEST = 2**32 - 1
"""Limits are sent as 32-bit numbers."""

ReadLevel = Callable[[Path], Level]

_ENCODINGS = (
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
    (b"", "utf-8-sig"),
)
"""First bytes of a file and its encoding, whatever it declares."""
_NOVELTY_LEVEL = re.compile(r"novelty_level_(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Source:
    """A level of a set, its name in the results, and whether it counts as novel."""

    name: str
    level: Level
    is_novel: bool = False


@dataclass(frozen=True, slots=True)
class LevelSet:
    """A set of levels; limits of 0 mean no limit."""

    sources: tuple[Source, ...]
    mode: str = TRAINING
    time_limit: int = 0
    """Seconds of the wall clock."""
    interaction_limit: int = 0
    """Shots."""
    attempts: int = 1
    """Number of times each level may be entered."""
    is_selectable: bool = False
    """Levels may be chosen in any order."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A training set and, in some trials, test sets."""

    name: str
    training: LevelSet
    tests: tuple[LevelSet, ...] = ()
    n_executions: int = 1
    is_informed: bool = False
    """Agents may ask whether the novelty has begun."""
    checkpoint_time: int = 0
    checkpoint_interactions: int = 0
    """The test sets interrupt training after this many seconds or shots."""


@dataclass(frozen=True, slots=True)
class Plan:
    """An evaluation: a list of trials."""

    trials: tuple[Trial, ...]
    report_step: int = 0
    """Shots between two requests for a novelty likelihood, in uninformed trials; 0: never."""
    is_asked_in_training: bool = True
    is_asked_in_tests: bool = False


def one_trial(
    before: Sequence[Level],
    novel: Sequence[Level] = (),
    *,
    report_step: int = 0,
    is_informed: bool = False,
    attempts: int = 1,
    is_selectable: bool = False,
) -> Plan:
    """One trial: the levels before the novelty, then the novel ones."""
    sources = [Source(level.name, level) for level in before] + [Source(level.name, level, True) for level in novel]
    if not sources:
        raise BadSpecError("a trial without levels; give at least one")
    levels = LevelSet(tuple(sources), attempts=attempts, is_selectable=is_selectable)
    return Plan((Trial("0", levels, is_informed=is_informed),), report_step)


def read_trials(path: Path, read_level: ReadLevel = files.read) -> Plan:
    """Read the evaluation of a config.xml, with all its levels.

    Level paths are relative to the folder of the file, or else to the current folder.

    Raises:
        NappingError: If the file or one of its levels cannot be used.
    """
    return _Reader(Path(path), read_level).plan()


class _Reader:
    """Reads one file, and each of its levels once."""

    def __init__(self, path: Path, read_level: ReadLevel) -> None:
        self._path, self._read_level = path, read_level
        self._known: dict[str, Source] = {}

    def plan(self) -> Plan:
        root = _parse(self._path)
        trials = tuple(self._trial(element, i) for i, element in enumerate(root.iter("trial")))
        if not trials:
            raise BadSpecError(f"'{self._path}' has no <trial>; an evaluation is a list of trials")
        measure = next(root.iter("novelty_detection_measurement"), ElementTree.Element(""))
        return Plan(
            trials,
            self._number(measure, "step", 0),
            _is_true(measure, "measure_in_training", True),
            _is_true(measure, "measure_in_testing", False),
        )

    def _trial(self, element: ElementTree.Element, i: int) -> Trial:
        name = element.get("id", str(i))
        sets = [self._level_set(child, name) for child in element.iter("game_level_set")]
        training = [levels for levels in sets if levels.mode == TRAINING]
        if len(training) != 1:
            raise BadSpecError(f"'{self._path}', trial '{name}': {len(training)} training sets; a trial has one")
        return Trial(
            name,
            training[0],
            tuple(levels for levels in sets if levels.mode == TEST),
            max(1, self._number(element, "number_of_executions", 1)),
            _is_true(element, "notify_novelty", False),
            self._number(element, "checkpoint_time_limit", 0),
            self._number(element, "checkpoint_interaction_limit", 0),
        )

    def _level_set(self, element: ElementTree.Element, trial: str) -> LevelSet:
        mode = element.get("mode", TRAINING).strip().lower()
        mode = TEST if mode == "testing" else mode
        if mode not in (TRAINING, TEST):
            raise BadSpecError(f"'{self._path}', trial '{trial}': mode '{mode}'; allowed: {TRAINING}, {TEST}")
        sources = tuple(self._source(child, trial) for child in element.iter("game_levels"))
        if not sources:
            raise BadSpecError(f"'{self._path}', trial '{trial}': a level set without <game_levels level_path='...'>")
        return LevelSet(
            sources,
            mode,
            self._number(element, "time_limit", 0),
            self._number(element, "total_interaction_limit", 0),
            self._number(element, "attempt_limit_per_level", 1),
            _is_true(element, "allow_level_selection", False),
        )

    def _source(self, element: ElementTree.Element, trial: str) -> Source:
        name = element.get("level_path", "").strip()
        if not name:
            raise BadSpecError(f"'{self._path}', trial '{trial}': <game_levels> without a level_path")
        if name not in self._known:
            relative = Path(name.replace("\\", "/"))
            near = self._path.parent / relative
            level = self._read_level(near if near.is_file() or not relative.is_file() else relative)
            self._known[name] = Source(name, level, is_novel(name))
        return self._known[name]

    def _number(self, element: ElementTree.Element, name: str, default: int) -> int:
        """A whole number; negative ones become 0, as both mean no limit."""
        text = element.get(name, "").strip()
        try:
            number = int(float(text)) if text else default
        except (ValueError, OverflowError) as error:
            raise BadSpecError(f"'{self._path}': {name}='{text}' of <{element.tag}> is not a number") from error
        return min(max(0, number), LARGEST)


def is_novel(path: str) -> bool:
    """Whether a level is novel by its path: the number after `novelty_level_` is above 0.

    Examples:
        >>> is_novel("Levels/novelty_level_0/type1/1.xml"), is_novel("Levels/novelty_level_22/type1/1.xml")
        (False, True)
    """
    match = _NOVELTY_LEVEL.search(path)
    return match is not None and int(match[1]) > 0


def _is_true(element: ElementTree.Element, name: str, default: bool) -> bool:
    return element.get(name, str(default)).strip().lower() in ("true", "1", "yes")


def _parse(path: Path) -> ElementTree.Element:
    """The tree of an XML file, with names in lower case; ignores the declared encoding, refuses entities."""
    try:
        data = read_file(path, MAX_BYTES)
    except UnusableFileError as error:
        raise BadSpecError(f"no trial file '{path}': {error}; give the path of a config.xml") from None
    try:
        text = data.decode(next(encoding for start, encoding in _ENCODINGS if data.startswith(start)))
    except UnicodeDecodeError as error:
        raise BadSpecError(f"'{path}' is not a text file: {error.reason} at byte {error.start}") from error
    text = re.sub(r"^\s*<\?xml.*?\?>", "", text, flags=re.DOTALL)
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise BadSpecError(f"'{path}' declares a document type or entities; a trial file needs none: take them out")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise BadSpecError(f"'{path}' is not well-formed XML: {error}") from error
    for element in root.iter():
        element.tag = element.tag.lower()
        element.attrib = {name.lower(): value for name, value in element.attrib.items()}
    return root
