"""Films of a play: GIF by Pillow, MP4 by the program ffmpeg where it is installed."""

import shutil
import subprocess
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from nappingrl.domains.angrybirds.play.play import FRAMES_PER_SECOND
from nappingrl.errors import BadSpecError, MissingExtraError

EVERY = 2
"""A GIF takes every second frame."""
MOST_FRAMES = 750
"""Of a GIF: a minute in which something moves all the time."""
PALETTE_FRAMES = 6
"""So many frames, evenly spaced, decide on the colours of a GIF."""
FFMPEG = "ffmpeg"

Frame = NDArray[np.uint8]
Look = Callable[[], Frame]


class Recorder(Protocol):
    """Takes frames; the film is whole after `close`."""

    @property
    def is_full(self) -> bool:
        """Whether it takes no more."""

    def add(self, look: Look) -> None:
        """One more frame; it is drawn only if it is needed."""

    def close(self) -> float:
        """Write the film; its length in seconds."""


def make_recorder(path: Path) -> Recorder:
    """The recorder for a file, by its name."""
    kinds: dict[str, Callable[[Path], Recorder]] = {".gif": GifRecorder, ".mp4": VideoRecorder}
    if path.suffix.lower() not in kinds:
        raise BadSpecError(f"--record '{path}' ends with '{path.suffix}'; allowed: .gif, .mp4")
    if not path.parent.is_dir():
        raise BadSpecError(f"--record '{path}': there is no folder '{path.parent}'; make it first")
    if path.is_dir():
        raise BadSpecError(f"--record '{path}' is a folder; give the name of a file")
    return kinds[path.suffix.lower()](path)


class GifRecorder:
    """An animated GIF. Frames in which nothing changes cost nothing; after `MOST_FRAMES` it takes no more."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._n_offered = 0
        self._shape: tuple[int, ...] = ()
        self._frames: list[bytes] = []
        self._turns: list[int] = []
        """How long each frame stays."""
        self._last: Frame | None = None

    @property
    def is_full(self) -> bool:
        """Whether it takes no more."""
        return len(self._frames) >= MOST_FRAMES

    def add(self, look: Look) -> None:
        """One more frame."""
        self._n_offered += 1
        if self._n_offered % EVERY != 1:
            return
        frame = look()
        if self._last is not None and np.array_equal(frame, self._last):
            self._turns[-1] += 1
        elif not self.is_full:
            self._shape, self._last = frame.shape, frame
            self._frames.append(zlib.compress(frame.tobytes(), 1))
            self._turns.append(1)

    def close(self) -> float:
        """Write the film."""
        if not self._frames:
            return 0.0
        colours = self._colours()
        images = [self._image(i).quantize(palette=colours, dither=Image.Dither.NONE) for i in range(len(self._frames))]
        turn_ms = 1000 * EVERY // FRAMES_PER_SECOND
        durations = [turn_ms * turns for turns in self._turns]
        try:
            images[0].save(self._path, save_all=True, append_images=images[1:], duration=durations, loop=0)
        except OSError as error:
            raise BadSpecError(f"--record '{self._path}' cannot be written ({error.strerror})") from error
        return sum(durations) / 1000

    def _colours(self) -> Image.Image:
        """The colours of some frames together, so that they do not change from one to the next."""
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
    """An MP4: raw frames go to ffmpeg as they come."""

    def __init__(self, path: Path) -> None:
        program = shutil.which(FFMPEG)
        if program is None:
            raise MissingExtraError(f"an .mp4 needs the program {FFMPEG}, which is not on the PATH; record a .gif")
        self._program, self._path = program, path
        self._process: subprocess.Popen[bytes] | None = None
        self._n_frames = 0

    @property
    def is_full(self) -> bool:
        """Never."""
        return False

    def add(self, look: Look) -> None:
        """One more frame."""
        frame = look()
        if self._process is None:
            self._process = subprocess.Popen(self._command(frame), stdin=subprocess.PIPE)
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(frame.tobytes())
        except BrokenPipeError as error:
            raise self._failed() from error
        self._n_frames += 1

    def close(self) -> float:
        """Wait until the film is written."""
        if self._process is not None:
            self._process.communicate()
            if self._process.returncode:
                raise self._failed()
        return self._n_frames / FRAMES_PER_SECOND

    def _failed(self) -> BadSpecError:
        assert self._process is not None
        return BadSpecError(f"--record '{self._path}': {FFMPEG} ended with status {self._process.wait()}")

    def _command(self, frame: Frame) -> Sequence[str]:
        size = f"{frame.shape[1]}x{frame.shape[0]}"
        taken = ("-f", "rawvideo", "-pix_fmt", "rgb24", "-s", size, "-r", str(FRAMES_PER_SECOND), "-i", "-")
        return (self._program, "-y", "-loglevel", "error", *taken, "-pix_fmt", "yuv420p", str(self._path.absolute()))
