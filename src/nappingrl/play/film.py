"""A match as a film: both panes side by side, drawn with Pillow, without a browser."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from nappingrl.domains.angrybirds.play.record import make_recorder
from nappingrl.domains.canvas import SIZE, Sketch
from nappingrl.play.match import Match, title_of
from nappingrl.play.pane import Pane
from nappingrl.play.watched import WatchedPane

Colour = tuple[int, int, int]
FRAMES_PER_SECOND = 25
OVER = 2
"""Pictures are drawn this many times as large, then reduced: smooth edges."""
WIDTH = 720
MAX_FILM_SECONDS = 20.0
"""Of a film that is made from the page."""
HEAD, FOOT, GAP = 34, 56, 12
SHOWN_RETURNS = 6
COLOURS: dict[str, Colour] = {
    "page": (244, 246, 248), "card": (255, 255, 255), "text": (24, 33, 44), "muted": (86, 98, 114),
    "frozen": (194, 65, 12), "adapting": (3, 105, 161), "alert": (180, 83, 9),
    "sky": (248, 250, 252), "ground": (100, 116, 139), "body": (30, 58, 95), "part": (217, 119, 6),
    "joint": (107, 114, 128), "goal": (21, 128, 61), "pavement": (213, 218, 225), "car": (185, 28, 28),
    "player": (22, 163, 74),
}  # fmt: skip
"""The light theme of the page."""


class Film:
    """Draws the frames of a match; `width` is that of the picture."""

    def __init__(self, match: Match, width: int = WIDTH) -> None:
        self.match, self._width = match, width
        self._pane_width = (width - 3 * GAP) // 2
        self._pane_height = self._pane_width * SIZE[1] // SIZE[0]
        height = HEAD + self._pane_height + FOOT + 2 * GAP
        self.size = width + width % 2, height + height % 2  # MP4 takes even numbers

    def frame(self) -> NDArray[np.uint8]:
        """The picture of now, (height, width, 3)."""
        picture = Image.new("RGB", (self.size[0] * OVER, self.size[1] * OVER), COLOURS["page"])
        pen = ImageDraw.Draw(picture)
        left_title = "Connected agent" if isinstance(self.match.frozen, WatchedPane) else "Frozen agent"
        titles = (left_title, f"The same agent with {title_of(self.match.spec.method)}")
        for i, (pane, title, colour) in enumerate(zip(self.match.panes, titles, ("frozen", "adapting"), strict=True)):
            left = GAP + i * (self._pane_width + GAP)
            self._draw_pane(picture, pen, pane, left, title, colour)
        words = self.match.describe_world(self.match.worlds.index(self.match.changes))
        self._write(pen, (GAP, self.size[1] - 24), f"World: {words}", "alert" if self.match.changes else "muted", 13)
        return np.asarray(picture.resize(self.size, Image.Resampling.LANCZOS))

    def _draw_pane(
        self,
        picture: Image.Image,
        pen: ImageDraw.ImageDraw,
        pane: Pane | WatchedPane,
        left: int,
        title: str,
        colour: str,
    ) -> None:
        width, height, top = self._pane_width, self._pane_height, GAP
        box = [OVER * value for value in (left, top, left + width, top + HEAD + height)]
        pen.rounded_rectangle(box, 8 * OVER, COLOURS["card"])
        pen.rectangle((box[0] + 8 * OVER, box[1], box[2] - 8 * OVER, box[1] + 3 * OVER), COLOURS[colour])
        self._write(pen, (left + 10, top + 10), title, "text", 14)
        self._write(pen, (left + width - 10, top + 9), f"return {pane.total:g}", colour, 15, anchor="ra")
        picture.paste(self._paint(pane.sketch()), (OVER * left, OVER * (top + HEAD)))
        latest = [f"{episode.total:g}" for episode in pane.episodes if episode.number >= 0][-SHOWN_RETURNS:]
        said = f"returns so far: {', '.join(latest)}" if latest else "first episode"
        self._write(pen, (left + 2, top + HEAD + height + 7), said, "muted", 12)
        own = self.match.adapting
        alarm = own.alarms[-1] if pane is own and own.alarms and own.adaptation.contexts[0] else None
        if alarm is not None:
            rule = own.status.rule[:40]
            noticed = f"noticed after {alarm.after} steps" + (f"; {rule}" if rule else "")
            self._write(pen, (left + width - 8, top + HEAD + 6), noticed, "alert", 13, anchor="ra")

    def _paint(self, sketch: Sketch) -> Image.Image:
        """The drawing of a domain, or the picture of an environment."""
        size = self._pane_width * OVER, self._pane_height * OVER
        picture = Image.new("RGB", size, COLOURS["sky"])
        if sketch.picture is not None:
            image = Image.fromarray(sketch.picture)
            share = min(size[0] / image.width, size[1] / image.height)
            image = image.resize((round(image.width * share), round(image.height * share)))
            picture.paste(image, ((size[0] - image.width) // 2, (size[1] - image.height) // 2))
            return picture
        pen, scale = ImageDraw.Draw(picture), size[0] / SIZE[0]
        for kind, colour, *rest in sketch.shapes:
            fill = COLOURS.get(colour, COLOURS["muted"])
            if kind == "polygon":
                pen.polygon([(x * scale, y * scale) for x, y in rest[0]], fill)
            elif kind == "line":
                (a, b), (c, d), width = rest
                pen.line((a * scale, b * scale, c * scale, d * scale), fill, max(1, round(width * scale)))
            else:
                (x, y), radius = rest
                box = (x - radius, y - radius, x + radius, y + radius)
                pen.ellipse([value * scale for value in box], fill)
        return picture

    def _write(
        self, pen: ImageDraw.ImageDraw, at: tuple[int, int], text: str, colour: str, size: int, anchor: str = "la"
    ) -> None:
        font = ImageFont.load_default(size * OVER)
        room = (self._width - 2 * GAP) * OVER
        while text and pen.textlength(text, font) > room:
            text = text[:-2].rstrip(".") + "."
        pen.text((at[0] * OVER, at[1] * OVER), text, COLOURS[colour], font, anchor=anchor)


class Recording:
    """A film of a match that goes on: a frame for each 1/25 s that passes in it."""

    def __init__(self, match: Match, path: Path, seconds: float, width: int = WIDTH) -> None:
        self.path, self._n_frames = path, round(seconds * FRAMES_PER_SECOND)
        self._film, self._recorder = Film(match, width), make_recorder(path, FRAMES_PER_SECOND, every=1)
        self._n_recorded, self._due = 0, 0.0

    @property
    def seconds(self) -> float:
        """How long the film is so far."""
        return self._n_recorded / FRAMES_PER_SECOND

    @property
    def is_full(self) -> bool:
        """Whether the film has its length."""
        return self._n_recorded >= self._n_frames

    def advance(self, match: Match, speed: float) -> None:
        """Advance a match, and film it at its own pace times `speed`."""
        self._film.match = match
        seconds = 1 / (match.frames_per_second * speed)
        match.advance()
        self._due += seconds * FRAMES_PER_SECOND
        n_frames = min(int(self._due), self._n_frames - self._n_recorded)
        self._due -= int(self._due)
        if n_frames:
            frame = self._film.frame()
            for _ in range(n_frames):
                self._recorder.add(lambda: frame)
            self._n_recorded += n_frames

    def close(self) -> float:
        """Write the file; returns its length in seconds."""
        return self._recorder.close()


def record(
    match: Match, path: Path, changes: dict[str, float], seconds: float, change_at: float, speed: float, width: int
) -> float:
    """Film a match in which the world changes after `change_at` seconds; returns the length of the film in seconds."""
    recording = Recording(match, path, seconds, width)
    has_changed = False
    while not recording.is_full:
        if not has_changed and recording.seconds >= change_at:
            match.change_world(changes)
            has_changed = True
        recording.advance(match, speed)
    return recording.close()
