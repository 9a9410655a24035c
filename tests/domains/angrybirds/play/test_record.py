"""Recorders: GIF and MP4."""

import os
import stat
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from nappingrl.domains.angrybirds.play.record import GifRecorder, make_recorder
from nappingrl.errors import BadSpecError


def test_a_gif_holds_still_frames_for_their_time(tmp_path: Path) -> None:
    recorder = GifRecorder(tmp_path / "a.gif")
    colours = [np.full((8, 8, 3), value, np.uint8) for value in (0, 255)]
    for colour in (colours[0],) * 10 + (colours[1],) * 20:
        recorder.add(lambda colour=colour: colour)
    assert recorder.close() == pytest.approx(30 / 25)
    with Image.open(tmp_path / "a.gif") as film:
        assert film.n_frames == 2
        assert film.info["duration"] == 400
        film.seek(1)
        assert film.info["duration"] == 800


@pytest.mark.skipif(os.name != "posix", reason="a shell script stands in for ffmpeg")
def test_an_mp4_is_what_ffmpeg_makes_of_the_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "ffmpeg"
    program.write_text('#!/bin/sh\nfor last; do :; done\necho "$@" > "$last.words"\nexec /bin/cat > "$last"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))
    recorder = make_recorder(tmp_path / "p.mp4")
    frames = [np.full((480, 640, 3), value, np.uint8) for value in (1, 2, 3)]
    for frame in frames:
        recorder.add(lambda frame=frame: frame)
    assert recorder.close() == pytest.approx(3 / 25)
    assert (tmp_path / "p.mp4").read_bytes() == b"".join(frame.tobytes() for frame in frames)
    assert "-pix_fmt rgb24 -s 640x480 -r 25 -i -" in (tmp_path / "p.mp4.words").read_text()
    program.write_text("#!/bin/sh\nexit 3\n")
    failing = make_recorder(tmp_path / "q.mp4")
    failing.add(lambda: np.zeros((1, 1, 3), np.uint8))  # small enough for the pipe
    with pytest.raises(BadSpecError, match="ffmpeg ended with status 3"):
        failing.close()
