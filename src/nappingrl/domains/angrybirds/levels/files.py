"""Level files of Science Birds: a tolerant reader and a strict writer.

Real files declare a wrong encoding, leave elements open and put spaces where XML allows none, so a strict parser
refuses them. They are read tag by tag here: nesting does not matter, and entities are never resolved.
"""

import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nappingrl.domains.angrybirds.physics.scene import BIRDS, BLOCKS, MATERIALS, NOVEL, PIGS, Camera, Item, Level
from nappingrl.errors import BadSpecError, check_name, did_you_mean
from nappingrl.files import UnusableFileError, read_file, write_whole

MAX_BYTES = 10_000_000
MAX_ITEMS = 1000
MAX_TAGS = 5 * MAX_ITEMS
MAX_BIRDS = 100
MAX_NUMBER = 1e4
"""Limit of coordinates, angles, scales and widths."""
MAX_WIDTH = 100

_ITEMS = {"block": "Block", "pig": "Pig", "tnt": "TNT", "platform": "Platform"}
"""Element by kind of item."""
_TYPES = {"block": (*BLOCKS, *NOVEL), "pig": PIGS, "tnt": ("TNT",), "platform": ("Platform",)}
_ONCE = ("Level", "Camera", "Score", "Birds", "Slingshot", "assetBundle", "GameObjects")
_ELEMENTS = {name.lower(): name for name in (*_ONCE, "Bird", *_ITEMS.values())}
_GOAL = {"": False, "false": False, "true": True}

_LEVEL = re.compile(r"<\s*+level\b", re.IGNORECASE)
_ASIDE = re.compile(r"<!--.*?-->|<\?.*?\?>", re.DOTALL)
_TAG = re.compile(r"""<\s*+(/?)\s*+([A-Za-z][\w.-]*+)((?:[^<>"'/]++|"[^"<]*+"|'[^'<]*+')*+)/?\s*+>""")
_ATTRIBUTE = re.compile(r"""\s*+([A-Za-z_][\w:.-]*+)\s*+=\s*+(["'])(.*?)\2""", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOVEL_TYPE = re.compile(r"[a-z0-9_.-]*novel[a-z0-9_.-]*", re.IGNORECASE)
_ENCODINGS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
    (b"", "utf-8"),
)
"""First bytes of a file and its encoding."""


def read(path: Path, skip_unknown: bool = False) -> Level:
    """Read a level, named like its file; `skip_unknown` ignores unknown elements.

    Raises:
        NappingError: If the level cannot be played; the message says why and where.
    """
    path = Path(path)
    try:
        data = read_file(path, MAX_BYTES)
    except UnusableFileError as error:
        siblings = [file.name for file in path.parent.glob("*.xml")]
        raise BadSpecError(f"no level file '{path}': {error}.{did_you_mean(path.name, siblings)}") from None
    encoding = next(encoding for start, encoding in _ENCODINGS if data.startswith(start))
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise BadSpecError(f"'{path}' is not a level file: byte {error.start} is not {encoding} text") from error
    return parse(text, path.stem, skip_unknown)


def parse(text: str, name: str, skip_unknown: bool = False) -> Level:
    """Parse the text of a level file.

    Examples:
        >>> parse("<Level width ='2'><Camera x='0'><Bird type='BirdRed'/></Level>", "tiny").birds
        ('BirdRed',)
    """
    where = f"level '{name}'"
    if len(text) > MAX_BYTES:
        raise BadSpecError(f"{where} has {len(text):,} characters; at most {MAX_BYTES:,} are read")
    if not _LEVEL.search(text):
        raise BadSpecError(f"{where} is not a level file: it has no <Level>, but begins with '{_shown(text)}'")
    singles: dict[str, _Tag] = {}
    birds: list[str] = []
    items: list[Item] = []
    is_closed = False
    for tag in _tags(text, where):
        if tag.is_end:
            is_closed |= tag.element == "Level"
        elif tag.element in _ONCE:
            if tag.element in singles:
                raise BadSpecError(f"{tag.where}: a second <{tag.element}>; a level has one")
            singles[tag.element] = tag
        elif tag.element == "Bird":
            birds.append(tag.text("type"))
            _check_bird(birds[-1], tag.where)
        elif tag.element in _ITEMS.values():
            items.append(_item(tag))
        elif not skip_unknown:
            raise _unknown(tag)
    if not is_closed:
        raise BadSpecError(f"{where} is cut off: it has no </Level>")
    level = _framed(name, birds, items, singles)
    _check_frame(level, where)
    return level


def text_of(level: Level) -> str:
    """The level as well-formed XML; numbers are read back exactly."""
    where = f"level '{level.name}'"
    _check_frame(level, where)
    for bird in level.birds:
        _check_bird(bird, where)
    for i, item in enumerate(level.items, 1):
        _check_item(item, f"{where}, item {i}")
    camera = level.camera
    view = {"x": camera.x, "y": camera.y, "minWidth": camera.min_width, "maxWidth": camera.max_width}
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<Level width="{level.width}">',
        "  " + _element("Camera", view),
        "  " + _element("Score", {"highScore": "0"}),
        "  <Birds>",
        *("    " + _element("Bird", {"type": bird}) for bird in level.birds),
        "  </Birds>",
        "  " + _element("Slingshot", {"x": level.sling[0], "y": level.sling[1]}),
        "  <GameObjects>",
        *("    " + _item_element(item) for item in level.items),
        "  </GameObjects>",
        "</Level>",
    ]
    return "\n".join(lines) + "\n"


def write(level: Level, path: Path) -> None:
    """Write a level, whole or not at all; `read` restores it if the file is named like the level."""
    write_whole(Path(path), text_of(level).encode())


@dataclass(frozen=True, slots=True)
class _Tag:
    """One tag: its element, its position, and its attributes by lower-case name."""

    element: str
    where: str
    attributes: Mapping[str, str]
    is_end: bool = False

    def text(self, name: str) -> str:
        return self.attributes.get(name.lower(), "").strip()

    def number(self, name: str, default: float | None = None) -> float:
        text = self.text(name)
        if not text and default is not None:
            return default
        if not _NUMBER.fullmatch(text):
            raise BadSpecError(f"{self.where}: {name} of <{self.element}> is '{_shown(text)}'; it must be a number")
        return float(text)


def _tags(text: str, where: str) -> Iterator[_Tag]:
    """All tags in order, in linear time."""
    at, line, n_tags = 0, 1, 0
    while (start := text.find("<", at)) >= 0:
        line += text.count("\n", at, start)
        here = f"{where}, line {line}"
        aside = _ASIDE.match(text, start)
        match = aside or _TAG.match(text, start)
        if match is None:
            raise BadSpecError(f"{here}: '{_shown(text[start : start + 80])}' is not a tag of a level file")
        if aside is None:
            n_tags += 1
            if n_tags > MAX_TAGS:
                raise BadSpecError(f"{where} has more than {MAX_TAGS} tags; it may have up to {MAX_ITEMS} objects")
            element = _ELEMENTS.get(match[2].lower(), match[2])
            yield _Tag(element, here, _attributes(match[3], here), is_end=bool(match[1]))
        at = match.end()
        line += text.count("\n", start, at)


def _attributes(text: str, where: str) -> dict[str, str]:
    """The attributes of a tag by lower-case name; the text must contain nothing else."""
    attributes: dict[str, str] = {}
    text = text.strip()
    at = 0
    while at < len(text):
        match = _ATTRIBUTE.match(text, at)
        if match is None or match[1].lower() in attributes:
            raise BadSpecError(
                f"{where}: cannot read '{_shown(text[at : at + 80])}'; write each attribute once, as name=\"value\""
            )
        attributes[match[1].lower()] = match[3]
        at = match.end()
    return attributes


def _item(tag: _Tag) -> Item:
    kind = tag.element.lower()
    type_ = {"tnt": "TNT", "platform": tag.text("type") or "Platform"}.get(kind, tag.text("type"))
    material = tag.text("material").lower() if kind == "block" else ""
    if type_ in NOVEL or _NOVEL_TYPE.fullmatch(type_):
        material = "novel"
    goal = tag.text("goal").lower()
    if goal not in _GOAL:
        raise BadSpecError(f"{tag.where}: goal of <{tag.element}> is '{_shown(goal)}'; allowed: true, false")
    item = Item(
        kind,
        type_,
        tag.number("x"),
        tag.number("y"),
        tag.number("rotation", 0.0),
        material,
        abs(tag.number("scaleX", 1.0)),  # a mirrored platform is the same platform
        abs(tag.number("scaleY", 1.0)),
        _GOAL[goal],
    )
    _check_item(item, tag.where)
    return item


def _framed(name: str, birds: Sequence[str], items: Sequence[Item], singles: Mapping[str, _Tag]) -> Level:
    """Build the level; elements that occur at most once have defaults."""
    nothing = _Tag("", "", {})
    frame, camera, sling = (singles.get(element, nothing) for element in ("Level", "Camera", "Slingshot"))
    usual = Level(name, (), ())
    view = Camera(
        camera.number("x", usual.camera.x),
        camera.number("y", usual.camera.y),
        camera.number("minWidth", usual.camera.min_width),
        camera.number("maxWidth", usual.camera.max_width),
    )
    width = frame.number("width", float(usual.width))
    if not width.is_integer():
        raise BadSpecError(f"{frame.where}: width of <Level> is {width:g}; it must be a whole number")
    place = sling.number("x", usual.sling[0]), sling.number("y", usual.sling[1])
    return Level(name, tuple(birds), tuple(items), place, view, int(width))


def _check_frame(level: Level, where: str) -> None:
    if not 1 <= len(level.birds) <= MAX_BIRDS:
        raise BadSpecError(f"{where} has {len(level.birds)} birds; it must have 1 to {MAX_BIRDS}")
    if len(level.items) > MAX_ITEMS:
        raise BadSpecError(f"{where} has {len(level.items)} objects; it may have up to {MAX_ITEMS}")
    if not 1 <= level.width <= MAX_WIDTH:
        raise BadSpecError(f"{where}: width is {level.width}; it must be 1 to {MAX_WIDTH}")
    camera = level.camera
    _check_numbers(where, camera_x=camera.x, camera_y=camera.y, sling_x=level.sling[0], sling_y=level.sling[1])
    _check_sizes(where, min_width=camera.min_width, max_width=camera.max_width)


def _check_bird(bird: str, where: str) -> None:
    if not _NOVEL_TYPE.fullmatch(bird):
        check_name(f"type of <Bird> in {where}:", bird, BIRDS)


def _check_item(item: Item, where: str) -> None:
    check_name(f"kind of object in {where}:", item.kind, _ITEMS)
    is_novel = item.kind != "tnt" and bool(_NOVEL_TYPE.fullmatch(item.type))
    if not is_novel:
        check_name(f"type of <{_ITEMS[item.kind]}> in {where}:", item.type, _TYPES[item.kind])
    plain = MATERIALS if item.kind == "block" else ("",)
    materials = ("novel",) if is_novel or item.type in NOVEL else plain
    check_name(f"material of <{_ITEMS[item.kind]}> in {where}:", item.material, materials)
    _check_numbers(where, x=item.x, y=item.y, rotation=item.rotation)
    _check_sizes(where, scale_x=item.scale_x, scale_y=item.scale_y)


def _check_numbers(where: str, **values: float) -> None:
    for name, value in values.items():
        if not abs(value) <= MAX_NUMBER:  # also refuses nan
            raise BadSpecError(f"{where}: {name} is {value:g}; it must lie within +-{MAX_NUMBER:g}")


def _check_sizes(where: str, **values: float) -> None:
    for name, value in values.items():
        if not 0 < value <= MAX_NUMBER:
            raise BadSpecError(f"{where}: {name} is {value:g}; it must be above 0 and at most {MAX_NUMBER:g}")


def _unknown(tag: _Tag) -> BadSpecError:
    allowed, hint = ", ".join(_ELEMENTS.values()), did_you_mean(tag.element, _ELEMENTS.values())
    return BadSpecError(
        f"{tag.where}: unknown element <{tag.element}>; allowed: {allowed}.{hint} "
        "To leave out what is unknown, read with skip_unknown=True"
    )


def _element(name: str, attributes: Mapping[str, str | float]) -> str:
    words = (f'{key}="{value if isinstance(value, str) else repr(float(value))}"' for key, value in attributes.items())
    return f"<{name} {' '.join(words)} />"


def _item_element(item: Item) -> str:
    attributes: dict[str, str | float] = {"type": item.type}
    if item.material:
        attributes["material"] = item.material
    attributes |= {"x": item.x, "y": item.y, "rotation": item.rotation}
    if item.kind == "platform" or (item.scale_x, item.scale_y) != (1.0, 1.0):
        attributes |= {"scaleX": item.scale_x, "scaleY": item.scale_y}
    if item.is_goal:
        attributes["goal"] = "true"
    return _element(_ITEMS[item.kind], attributes)


def _shown(text: str) -> str:
    """The beginning of a text, on one line."""
    short = " ".join(text[:200].split())
    return short if len(short) <= 40 else short[:40] + "..."
