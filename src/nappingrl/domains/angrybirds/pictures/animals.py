"""Birds, pigs and eggs, drawn in a box from -1 to 1 and scaled to their size."""

from collections.abc import Callable

from nappingrl.domains.angrybirds.pictures.pen import Sprite, Stroke, disc, oval
from nappingrl.types import Point


def _shape(shade: str, *points: Point) -> Stroke:
    return Stroke(points, shade)


def _line(shade: str, width: float, *points: Point) -> Stroke:
    return Stroke(points, shade, width)


def _eye(x: float, y: float, size: float, look: float = 0.25) -> list[Stroke]:
    """White with a black rim and a pupil that looks to the right."""
    return [
        disc(x, y, size * 1.18, "line"),
        disc(x, y, size, "eye"),
        disc(x + look * size, y, size * 0.5, "pupil"),
    ]


def _beak(x: float, y: float, size: float) -> list[Stroke]:
    """Two parts, the upper longer."""
    upper = ((x - 0.5 * size, y), (x, y + 0.55 * size), (x + size, y - 0.05 * size))
    lower = ((x - 0.4 * size, y), (x + 0.7 * size, y - 0.06 * size), (x - 0.05 * size, y - 0.5 * size))
    rim = tuple((x + (u - x) * 1.3, y + (v - y) * 1.3) for u, v in (*upper, lower[2]))
    parting = Stroke((lower[0], upper[2]), "line", 0.05)
    return [Stroke(rim, "line"), Stroke(lower, "mark"), Stroke(upper, "mark"), parting]


def _brow(left: Point, middle: Point, right: Point, width: float = 0.16) -> list[Stroke]:
    return [_line("line", width, left, middle), _line("line", width, middle, right)]


def _body(x: float, y: float, across: float, up: float) -> list[Stroke]:
    """A round body with a rim, a shadow below and a light above."""
    return [
        oval(x, y, across, up, "line"),
        oval(x, y, across - 0.1, up - 0.1, "dark"),
        oval(x - 0.02, y + 0.07, across - 0.14, up - 0.17, "base"),
        oval(x - 0.3 * across, y + 0.55 * up, 0.3 * across, 0.18 * up, "light", 0.5),
    ]


def _red() -> list[Stroke]:
    return [
        _shape("line", (-0.7, 0.1), (-1.0, 0.3), (-0.95, 0.0), (-1.0, -0.2), (-0.7, -0.2)),
        oval(-0.12, 0.84, 0.1, 0.2, "line", 0.5),
        oval(0.06, 0.86, 0.11, 0.2, "line", 0.1),
        oval(0.05, 0.84, 0.06, 0.14, "dark", 0.1),
        *_body(0.0, -0.06, 0.94, 0.92),
        oval(0.12, -0.62, 0.5, 0.28, "accent"),
        *_eye(0.14, 0.14, 0.24),
        *_eye(0.62, 0.14, 0.22),
        *_brow((-0.18, 0.5), (0.4, 0.26), (0.88, 0.46), 0.18),
        *_beak(0.46, -0.2, 0.44),
    ]


def _blue() -> list[Stroke]:
    return [
        oval(-0.05, 0.86, 0.09, 0.18, "line", 0.4),
        oval(0.1, 0.86, 0.09, 0.16, "line", -0.1),
        *_body(0.0, -0.06, 0.96, 0.92),
        oval(0.14, -0.64, 0.46, 0.24, "accent"),
        disc(0.1, 0.14, 0.36, "mark"),
        disc(0.64, 0.14, 0.32, "mark"),
        *_eye(0.14, 0.16, 0.24),
        *_eye(0.62, 0.16, 0.22),
        *_beak(0.44, -0.24, 0.38),
    ]


def _yellow() -> list[Stroke]:
    outer = ((-0.98, -0.72), (-0.82, -0.97), (0.82, -0.97), (0.98, -0.72), (0.9, -0.5), (0.22, 0.78), (0.0, 0.9),
             (-0.2, 0.78), (-0.9, -0.5))  # fmt: skip
    inner = tuple((0.87 * x, -0.24 + 0.86 * (y + 0.24)) for x, y in outer)
    raised = tuple((0.82 * x, -0.14 + 0.8 * (y + 0.14)) for x, y in outer)
    return [
        _shape("line", (-0.1, 0.7), (-0.42, 1.0), (-0.3, 0.72), (-0.6, 0.76), (-0.4, 0.4)),
        Stroke(outer, "line"),
        Stroke(inner, "dark"),
        Stroke(raised, "base"),
        oval(-0.18, 0.3, 0.1, 0.3, "light", -0.45),
        oval(0.1, -0.72, 0.5, 0.12, "accent"),
        *_eye(0.06, -0.02, 0.22),
        *_eye(0.5, -0.04, 0.2),
        *_brow((-0.26, 0.3), (0.3, 0.12), (0.7, 0.3), 0.17),
        *_beak(0.42, -0.38, 0.5),
    ]


def _pear(shrink: float, rise: float, shade: str) -> Stroke:
    body = oval(0.0, -0.1, 0.98 - shrink, 0.9 - shrink, shade).points
    return Stroke(tuple((x * (1 - 0.24 * y), y + rise) for x, y in body), shade)


def _white() -> list[Stroke]:
    return [
        oval(-0.06, 0.84, 0.08, 0.18, "line", 0.5),
        oval(0.04, 0.87, 0.07, 0.14, "line"),
        oval(0.13, 0.83, 0.07, 0.17, "line", -0.5),
        _pear(0.0, 0.0, "line"),
        _pear(0.08, 0.0, "dark"),
        _pear(0.15, 0.06, "base"),
        oval(-0.36, 0.3, 0.12, 0.26, "light", -0.4),
        oval(0.5, -0.14, 0.13, 0.09, "accent"),
        *_eye(0.1, 0.2, 0.17),
        *_eye(0.46, 0.2, 0.16),
        *_brow((-0.1, 0.5), (0.06, 0.46), (0.2, 0.5), 0.08),
        *_brow((0.4, 0.5), (0.5, 0.46), (0.62, 0.5), 0.08),
        *_beak(0.36, -0.14, 0.44),
    ]


def _black() -> list[Stroke]:
    return [
        _line("line", 0.2, (-0.02, 0.5), (0.0, 0.74), (0.14, 0.88)),
        _line("mark", 0.08, (-0.02, 0.5), (0.0, 0.74), (0.14, 0.88)),
        disc(0.16, 0.9, 0.14, "mark"),
        disc(0.16, 0.9, 0.08, "spark"),
        *_body(0.0, -0.22, 0.98, 0.78),
        oval(-0.04, 0.36, 0.15, 0.09, "accent"),
        *_eye(0.14, 0.02, 0.2),
        *_eye(0.6, 0.02, 0.18),
        *_brow((-0.16, 0.3), (0.38, 0.12), (0.84, 0.28), 0.13),
        *_beak(0.42, -0.28, 0.42),
    ]


def _egg() -> list[Stroke]:
    def part(shrink: float, rise: float, shade: str) -> Stroke:
        ring = oval(0.0, 0.0, 1 - shrink, 1 - shrink, shade).points
        return Stroke(tuple((x * (1 - 0.14 * y), y + rise) for x, y in ring), shade)

    spots = [oval(0.3, -0.3, 0.16, 0.13, "accent"), oval(-0.2, -0.55, 0.1, 0.08, "accent")]
    return [part(0.0, 0.0, "line"), part(0.14, 0.0, "dark"), part(0.24, 0.08, "base"), *spots,
            oval(-0.32, 0.4, 0.1, 0.22, "light", -0.4)]  # fmt: skip


def _pig(stage: int) -> list[Stroke]:
    """A pig; further stages of damage add a black eye, a plaster and another black eye."""
    strokes = [
        disc(-0.56, 0.72, 0.22, "line"),
        disc(0.5, 0.76, 0.22, "line"),
        disc(-0.56, 0.72, 0.13, "accent"),
        disc(0.5, 0.76, 0.13, "accent"),
        *_body(0.0, -0.04, 0.98, 0.94),
    ]
    if stage > 1:
        strokes.append(disc(0.56, 0.16, 0.34, "dark"))
    if stage > 3:
        strokes.append(disc(-0.56, 0.16, 0.34, "dark"))
    strokes += [*_eye(-0.56, 0.16, 0.2, 0.1), *_eye(0.56, 0.16, 0.2, -0.1)]
    if stage > 1:
        strokes.append(_shape("dark", (0.3, 0.16), (0.36, 0.36), (0.56, 0.42), (0.78, 0.36), (0.82, 0.16)))
    strokes += [
        oval(0.0, -0.02, 0.36, 0.28, "line"),
        oval(0.0, -0.01, 0.3, 0.22, "accent"),
        oval(-0.11, -0.02, 0.07, 0.1, "mark"),
        oval(0.13, -0.02, 0.07, 0.1, "mark"),
        _line("line", 0.07, (-0.2, -0.5), (0.02, -0.57), (0.24, -0.5)),
    ]
    if stage > 2:
        strokes += [_line("eye", 0.16, (-0.62, 0.52), (-0.28, 0.66)), _line("eye", 0.16, (-0.52, 0.74), (-0.38, 0.44))]
    return strokes


_BIRDS: dict[str, Callable[[], list[Stroke]]] = {
    "BirdRed": _red,
    "BirdBlue": _blue,
    "BirdYellow": _yellow,
    "BirdWhite": _white,
    "BirdBlack": _black,
    "Egg": _egg,
}


def animal(type_: str, width: float, height: float, stage: int) -> Sprite:
    """A bird, its egg or a pig of that size."""
    across, up = width / 2, height / 2
    size = (across + up) / 2
    strokes = _BIRDS[type_]() if type_ in _BIRDS else _pig(stage)
    return tuple(
        Stroke(tuple((across * x, up * y) for x, y in stroke.points), stroke.shade, stroke.width * size)
        for stroke in strokes
    )
