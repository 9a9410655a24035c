"""Record a play: GIF with Pillow, MP4 with ffmpeg if it is installed."""

import shutil
import subprocess
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from nappingrl.errors import BadSpecError, MissingExtraError

FRAMES_PER_SECOND = 25
EVERY = 2
"""A GIF keeps every second frame."""
MOST_FRAMES = 750
"""Longest GIF: one minute of motion."""
PALETTE_FRAMES = 6
"""Number of evenly spaced frames that determine the palette of a GIF."""
FFMPEG = "ffmpeg"
SUFFIXES = (".gif", ".mp4")

Frame = NDArray[np.uint8]
DrawFrame = Callable[[], Frame]


class Recorder(Protocol):
    """Records frames; the file is complete after `close`."""

    @property
    def is_full(self) -> bool:
        """Whether further frames are dropped."""

    def add(self, draw: DrawFrame) -> None:
        """Add a frame; it is drawn only if it is needed."""

    def close(self) -> float:
        """Write the file; returns its length in seconds."""


def make_recorder(path: Path, frames_per_second: int = FRAMES_PER_SECOND, every: int = EVERY) -> Recorder:
    """The recorder for a file, by its suffix; a GIF keeps one of `every` frames."""
    recorders: dict[str, Callable[[], Recorder]] = {
        ".gif": lambda: GifRecorder(path, frames_per_second, every),
        ".mp4": lambda: VideoRecorder(path, frames_per_second),
    }
    check_film(path)
    return recorders[path.suffix.lower()]()


def check_film(path: Path) -> None:
    """Refuse a path at which no film can be written."""
    if path.suffix.lower() not in SUFFIXES:
        raise BadSpecError(f"film '{path}' ends with '{path.suffix}'; allowed: {', '.join(SUFFIXES)}")
    if not path.parent.is_dir():
        raise BadSpecError(f"film '{path}': there is no folder '{path.parent}'; make it first")
    if path.is_dir():
        raise BadSpecError(f"film '{path}' is a folder; give the name of a file")


class GifRecorder:
    """An animated GIF; repeated frames are stored once, and frames beyond `MOST_FRAMES` are dropped."""

    def __init__(self, path: Path, frames_per_second: int = FRAMES_PER_SECOND, every: int = EVERY) -> None:
        self._path, self._frame_ms, self._every = path, 1000 * every // frames_per_second, every
        self._n_offered = 0
        self._shape: tuple[int, ...] = ()
        self._frames: list[bytes] = []
        self._repeats: list[int] = []
        """How often each frame is shown."""
        self._last: Frame | None = None

    @property
    def is_full(self) -> bool:
        """Whether further frames are dropped."""
        return len(self._frames) >= MOST_FRAMES

    def add(self, draw: DrawFrame) -> None:
        """Add a frame."""
        self._n_offered += 1
        if (self._n_offered - 1) % self._every:
            return
        frame = draw()
        if self._last is not None and np.array_equal(frame, self._last):
            self._repeats[-1] += 1
        elif not self.is_full:
            self._shape, self._last = frame.shape, frame
            self._frames.append(zlib.compress(frame.tobytes(), 1))
            self._repeats.append(1)

    def close(self) -> float:
        """Write the file."""
        if not self._frames:
            return 0.0
        colours = self._colours()
        images = [self._image(i).quantize(palette=colours, dither=Image.Dither.NONE) for i in range(len(self._frames))]
        durations = [self._frame_ms * repeats for repeats in self._repeats]
        try:
            images[0].save(self._path, save_all=True, append_images=images[1:], duration=durations, loop=0)
        except OSError as error:
            raise BadSpecError(f"film '{self._path}' cannot be written ({error.strerror})") from error
        return sum(durations) / 1000

    def _colours(self) -> Image.Image:
        """One palette for all frames, so that colours do not flicker."""
        height, width = self._shape[:2]
        chosen = sorted(set(np.linspace(0, len(self._frames) - 1, PALETTE_FRAMES).astype(int).tolist()))
        together = Image.new("RGB", (width, height * len(chosen)))
        for place, i in enumerate(chosen):
            together.paste(self._image(i), (0, place * height))
        return together.quantize(256)

    def _image(self, i: int) -> Image.Image:
        pixels = np.frombuffer(zlib.decompress(self._frames[i]), np.uint8)
        return Image.fromarray(pixels.reshape(self._shape))


class VideoRecorder:
    """An MP4; raw frames are piped to ffmpeg."""

    def __init__(self, path: Path, frames_per_second: int = FRAMES_PER_SECOND) -> None:
        self._frames_per_second = frames_per_second
        program = shutil.which(FFMPEG)
        if program is None:
            raise MissingExtraError(f"an .mp4 needs the program {FFMPEG}, which is not on the PATH; record a .gif")
        self._program, self._path = program, path
        self._process: subprocess.Popen[bytes] | None = None
        self._n_frames = 0

    @property
    def is_full(self) -> bool:
        """Always False."""
        return False

    def add(self, draw: DrawFrame) -> None:
        """Add a frame."""
        frame = draw()
        if self._process is None:
            self._process = subprocess.Popen(self._command(frame), stdin=subprocess.PIPE)
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(frame.tobytes())
        except BrokenPipeError as error:
            raise self._failed() from error
        self._n_frames += 1

    def close(self) -> float:
        """Wait until the file is written."""
        if self._process is not None:
            self._process.communicate()
            if self._process.returncode:
                raise self._failed()
        return self._n_frames / self._frames_per_second

    def _failed(self) -> BadSpecError:
        assert self._process is not None
        return BadSpecError(f"film '{self._path}': {FFMPEG} ended with status {self._process.wait()}")

    def _command(self, frame: Frame) -> Sequence[str]:
        size = f"{frame.shape[1]}x{frame.shape[0]}"
        taken = ("-f", "rawvideo", "-pix_fmt", "rgb24", "-s", size, "-r", str(self._frames_per_second), "-i", "-")
        return (self._program, "-y", "-loglevel", "error", *taken, "-pix_fmt", "yuv420p", str(self._path.absolute()))
