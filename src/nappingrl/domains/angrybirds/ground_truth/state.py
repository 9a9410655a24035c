"""The ground truth of a scene as JSON, and its reader."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, hypot, sin, tau
from typing import Any

import msgspec
import numpy as np

from nappingrl.domains.angrybirds.ground_truth import palette
from nappingrl.domains.angrybirds.ground_truth.labels import GROUND as GROUND_LABEL
from nappingrl.domains.angrybirds.ground_truth.labels import OBJECT, SLINGSHOT, TRAJECTORY, label
from nappingrl.domains.angrybirds.ground_truth.outlines import Contour, contours
from nappingrl.domains.angrybirds.physics.scene import GROUND, PIXELS, Box, Camera, Scene, Thing, View
from nappingrl.errors import BadObservationError

FLOAT_MAX = 3.4028234663852886e38
"""Life of objects that cannot be destroyed."""
TAIL = b"     "
"""Clients drop the last five bytes of a reply."""
GROUND_ID, SLING_ID, TRAJECTORY_ID = -2147483647, -2147483646, 2147483647
"""Outside the range of object ids."""
COLOUR_NOISE = 0.01
"""Largest relative change of a share."""

GroundTruth = list[dict[str, Any]]
Pixel = list[int]
Shift = tuple[int, int]

_LONGEST = max(len(paint.colour_map) for paint in palette.PAINTS.values())
_WIDTH, _HEIGHT = PIXELS


def ground_truth(scene: Scene, dev: bool = True, noise: np.random.Generator | None = None) -> GroundTruth:
    """A list with one FeatureCollection; y points down, the origin is the top left corner of the screen.

    Args:
        scene: The scene to report.
        dev: Developer mode: labels tell what an object is, and `currentLife` its life.
        noise: Source of noise; None for an exact ground truth.
    """
    screen = _Screen(scene.camera, scene.view)
    features = [screen.ground(), screen.sling(scene, dev)]
    if scene.dots:
        features.append(screen.trajectory(scene.dots, noise))
    n_things = len(scene.things)
    shifts: Sequence[Shift | None] = _shifts(n_things, noise) if noise is not None else [None] * n_things
    wobbles: Sequence[list[float] | None] = [None] * n_things
    if noise is not None:
        wobbles = noise.uniform(1 - COLOUR_NOISE, 1 + COLOUR_NOISE, (n_things, _LONGEST)).tolist()
    for thing, shift, wobble in zip(scene.things, shifts, wobbles, strict=True):
        is_bird = thing.kind == "bird"
        geometry = screen.thing(thing, None if is_bird else shift)
        if geometry is not None:
            properties: dict[str, Any] = {
                "id": str(thing.id),
                "label": label(thing) if dev else OBJECT,
                "colormap": _colours(thing, scene.view, None if is_bird else wobble),
            }
            if dev:
                properties["currentLife"] = FLOAT_MAX if thing.kind == "platform" else min(thing.life, FLOAT_MAX)
            features.append(_feature(geometry, properties))
    return [{"type": "FeatureCollection", "features": features}]


def payload(scene: Scene, dev: bool = True, noise: np.random.Generator | None = None) -> bytes:
    """The ground truth in wire format."""
    return msgspec.json.encode(ground_truth(scene, dev, noise)) + TAIL


def _feature(geometry: dict[str, Any], properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Feature", "geometry": geometry, "properties": properties}


def _shifts(n: int, noise: np.random.Generator) -> list[Shift]:
    """Random shifts in pixels of n objects or points: a clamped normal length in a uniform direction."""
    lengths = np.clip(0.5 + 0.5 * noise.standard_normal(n), 0, 1).tolist()
    angles = noise.uniform(0, tau, n).tolist()
    return [(round(far * cos(way)), round(far * sin(way))) for far, way in zip(lengths, angles, strict=True)]


def _colours(thing: Thing, view: View, wobble: list[float] | None) -> list[dict[str, Any]]:
    colours = palette.paint(thing.colour).colour_map
    if view.grayscale:
        colours = palette.grayed(colours)
    if wobble is None:
        return [{"color": code, "percent": share} for code, share in colours]
    shares = [share * factor for (_, share), factor in zip(colours, wobble, strict=False)]
    whole = sum(shares)
    return [{"color": code, "percent": share / whole} for (code, _), share in zip(colours, shares, strict=True)]


class _Screen:
    """Converts world units to whole pixels of the (possibly rotated) screen."""

    def __init__(self, camera: Camera, view: View) -> None:
        self._scale = camera.scale
        self._left, self._top = camera.to_pixels(0.0, 0.0)
        self._view = view
        self._is_turned = view.rotation == 180
        self._ground_row = self._pixel(0.0, GROUND)[1]

    def _pixel(self, x: float, y: float) -> Pixel:
        """A pixel before rotation."""
        return [round(self._left + x * self._scale), round(self._top - y * self._scale)]

    def _turned(self, pixel: Pixel) -> Pixel:
        return [_WIDTH - pixel[0], _HEIGHT - pixel[1]] if self._is_turned else pixel

    def ground(self) -> dict[str, Any]:
        """The ground: no shape, only the row of its surface."""
        row = self._turned([0, self._ground_row])[1]
        properties = {"id": str(GROUND_ID), "label": GROUND_LABEL, "colormap": [], "yindex": row}
        return _feature({}, properties)

    def sling(self, scene: Scene, dev: bool) -> dict[str, Any]:
        """The slingshot: bottom left, top left, top right and bottom right of its box."""
        sling = scene.sling
        left, bottom = self._pixel(sling.left, sling.bottom)
        right, top = self._pixel(sling.right, sling.top)
        if self._view.circumcircle:
            radius = hypot(sling.right - sling.left, sling.top - sling.bottom) / 2
            geometry = self._circle((sling.left + sling.right) / 2, (sling.bottom + sling.top) / 2, radius, (0, 0))
        else:
            geometry = self._polygon([[[left, bottom], [left, top], [right, top], [right, bottom]]])
        properties: dict[str, Any] = {"id": str(SLING_ID), "label": SLINGSHOT, "colormap": []}
        if dev:
            properties["currentLife"] = FLOAT_MAX
        return _feature(geometry, properties)

    def trajectory(self, dots: Contour, noise: np.random.Generator | None) -> dict[str, Any]:
        """The dots of the last flight, with independent noise."""
        pixels = [self._pixel(x, y) for x, y in dots]
        if noise is not None:
            moves = _shifts(len(pixels), noise)
            pixels = [[x + dx, y + dy] for (x, y), (dx, dy) in zip(pixels, moves, strict=True)]
        geometry = {"type": "MultiPoint", "coordinates": [self._turned(pixel) for pixel in pixels]}
        return _feature(geometry, {"id": str(TRAJECTORY_ID), "label": TRAJECTORY, "colormap": []})

    def thing(self, thing: Thing, shift: Shift | None) -> dict[str, Any] | None:
        """The outline of an object or the circle around it; None if it is off the screen or under the ground."""
        left, top, scale = self._left, self._top, self._scale
        shape = contours(thing)
        rings = [[[round(left + x * scale), round(top - y * scale)] for x, y in ring] for ring in shape]
        if self._is_outside(rings[0]):
            return None
        if self._view.circumcircle:
            radius = max([hypot(x - thing.x, y - thing.y) for x, y in shape[0]])
            return self._circle(thing.x, thing.y, radius, shift or (0, 0))
        if shift is not None:
            dx, dy = shift
            rings = [[[x + dx, y + dy] for x, y in ring] for ring in rings]
        return self._polygon(rings)

    def _is_outside(self, ring: list[Pixel]) -> bool:
        """Whether all corners are beyond the same edge of the screen, or below the ground."""
        xs, ys = [x for x, _ in ring], [y for _, y in ring]
        bottom = min(_HEIGHT, self._ground_row)
        return max(xs) <= 0 or min(xs) >= _WIDTH or max(ys) <= 0 or min(ys) >= bottom

    def _polygon(self, rings: list[list[Pixel]]) -> dict[str, Any]:
        if self._is_turned:
            rings = [[self._turned(pixel) for pixel in ring] for ring in rings]
        return {"type": "Polygon", "coordinates": rings}

    def _circle(self, x: float, y: float, radius: float, shift: Shift) -> dict[str, Any]:
        """A circle in our own format: the game's is not published."""
        pixel = self._pixel(x, y)
        centre = self._turned([pixel[0] + shift[0], pixel[1] + shift[1]])
        return {"type": "Circle", "center": centre, "radius": round(radius * self._scale)}


# Reader --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SeenObject:
    """One object of a ground truth."""

    id: int
    label: str
    colour: str
    """As in `Thing.colour`, classified by the colour map, or "unknown"."""
    box: Box


def boxes(truth: GroundTruth) -> list[SeenObject]:
    """All objects of a ground truth in order, without ground, slingshot and trajectory."""
    seen = []
    for feature in features_of(truth):
        properties = feature["properties"]
        if properties["label"] not in (GROUND_LABEL, SLINGSHOT, TRAJECTORY):
            colours = tuple([(entry["color"], entry["percent"]) for entry in properties["colormap"]])
            colour = palette.classify(colours)
            seen.append(SeenObject(int(properties["id"]), properties["label"], colour, _box(feature)))
    return seen


def sling_box(truth: GroundTruth) -> Box:
    """The box around the slingshot."""
    for feature in features_of(truth):
        if feature["properties"]["label"] == SLINGSHOT:
            return _box(feature)
    raise BadObservationError("a ground truth without a Slingshot; a level in play always has one: ask again later")


def features_of(truth: GroundTruth) -> list[dict[str, Any]]:
    """The features of a ground truth."""
    if len(truth) != 1 or truth[0].get("type") != "FeatureCollection":
        raise BadObservationError(f"a ground truth is a list with one FeatureCollection, not {str(truth)[:60]}")
    features: list[dict[str, Any]] = truth[0]["features"]
    return features


def _box(feature: dict[str, Any]) -> Box:
    geometry = feature["geometry"]
    shape = geometry.get("type")
    if shape == "Polygon":
        ring = geometry["coordinates"][0]
        xs, ys = [x for x, _ in ring], [y for _, y in ring]
        return Box(min(xs), min(ys), max(xs), max(ys))
    if shape == "Circle":
        (x, y), radius = geometry["center"], geometry["radius"]
        return Box(x - radius, y - radius, x + radius, y + radius)
    raise BadObservationError(f"object {feature['properties']['id']} is a '{shape}'; allowed: Polygon, Circle")
