"""`napping play` and `napping record`: one line for each mistake, and films of every domain."""

import os
import socket
from pathlib import Path

import pytest
from PIL import Image

from nappingrl.cli import main


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as end:
        main(list(words))
    assert end.value.code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


@pytest.mark.parametrize("command", ["play", "record"])
@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("cartpol",), "unknown domain 'cartpol'"),
        (("cartpole", "--env", "Acrobot-v1"), "both DOMAIN (cartpole) and --env (Acrobot-v1) are given"),
        (("cartpole", "--agent", "nobody"), "unknown agent 'nobody'"),
        (("cartpole", "--agent", "no.zip"), "no.zip"),
        (("--env", "Acrobot-v1", "--agent", "cartpole-ppo"), "cartpole-ppo"),
        (("cartpole", "--method", "autos"), "unknown method 'autos'"),
        (("--env", "Nowhere-v1"), "Nowhere-v1"),
    ],
)
def test_mistakes_are_one_line(
    capsys: pytest.CaptureFixture[str], command: str, words: tuple[str, ...], text: str
) -> None:
    extra = ("--no-browser",) if command == "play" else ()
    assert text in refused(capsys, command, *words, *extra)


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        error = refused(capsys, "play", "--no-browser", "--port", str(port))
    assert f"port {port} of 127.0.0.1 cannot be used (Address already in use); give another --port" in error
    assert "--port" in refused(capsys, "play", "--port", "70000")


def test_without_the_extra(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "nicegui", None)
    monkeypatch.delitem(sys.modules, "nappingrl.play.server", raising=False)
    assert 'pip install "nappingrl[play]"' in refused(capsys, "play", "--no-browser")


@pytest.mark.parametrize(
    "words",
    [
        ("cartpole", "--novelty", "gravity=50"), ("mountaincar",), ("crossroad", "--method", "napping"),
        ("angrybirds", "--agent", "naive", "--method", "frozen"), ("--env", "Acrobot-v1"), ("--env", "Pendulum-v1"),
        ("cartpole", "--novelty", "obs-shift[2]=0.1"),
    ],
)  # fmt: skip
def test_every_domain_is_filmed(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    path = tmp_path / "film.gif"
    main(["record", *words, "--seconds", "0.24", "--change-at", "0.1", "--out", str(path), "--width", "300"])
    assert f"film: {path}" in capsys.readouterr().out
    with Image.open(path) as film:
        assert film.size[0] == 300
        assert getattr(film, "n_frames", 1) >= 1


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--seconds", "0"), "--seconds 0 is outside its range"),
        (("--speed", "nan"), "--speed nan is outside its range"),
        (("--novelty", "gravitas=1"), "gravitas"),
        (("--novelty", "gravitas"), "unknown novelty 'gravitas'"),
        (("--width", "5"), "--width"),
        (("--out", "film.png"), "allowed: .gif, .mp4"),
        (("--out", "no/film.gif"), "there is no folder 'no'"),
    ],
)
def test_bad_options_of_a_film(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], text: str
) -> None:
    """Refused before the match is made, which may take a minute."""
    monkeypatch.setattr("nappingrl.cli.record.Match", None)
    assert text in refused(capsys, "record", *words)


def test_an_mp4_needs_ffmpeg(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    error = refused(capsys, "record", "--method", "frozen", "--out", str(tmp_path / "film.mp4"))
    assert "an .mp4 needs the program ffmpeg, which is not on the PATH; record a .gif" in error


@pytest.mark.skipif(os.name != "posix", reason="a shell script stands in for ffmpeg")
def test_an_mp4_is_filmed_with_even_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "ffmpeg"
    program.write_text('#!/bin/sh\nfor last; do :; done\necho "$@" > "$last.words"\nexec /bin/cat > "$last"\n')
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "film.mp4"
    main(["record", "--method", "frozen", "--seconds", "0.2", "--width", "301", "--out", str(path)])
    assert "-s 302x202 -r 25" in (tmp_path / "film.mp4.words").read_text()  # H.264 refuses odd sizes
    assert path.stat().st_size == 5 * 302 * 202 * 3
