"""`napping birds`: serving real clients, playing by mouse and by agent, films, level files and sheets, bad input."""

import csv
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from command_line import Done, Napping
from nappingrl.domains.angrybirds.levels import files as levels
from nappingrl.domains.angrybirds.levels.draw import draw_levels
from nappingrl.domains.angrybirds.levels.templates import make_level
from nappingrl.domains.angrybirds.physics.scene import GROUND, Item, Level
from nappingrl.domains.angrybirds.server.client import Client
from nappingrl.domains.angrybirds.server.protocol import Likelihood, State
from nappingrl.report.runs import read_runs
from nappingrl.trials.store import RunFolder
from patience import PATIENCE

FAR_UP = (-200, 600)
"""Where to let go for a steep shot over everything."""
SHORT = Level("short", ("BirdBlack",), (Item("pig", "BasicSmall", -8.0, GROUND + 0.25),))
"""Soon over: black birds explode after their first collision."""
ONE_PIG = Level("one-pig", ("BirdRed", "BirdYellow"), (Item("pig", "BasicSmall", 2.0, GROUND + 0.25),))


# ---- help, bad input ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "texts"),
    [
        ("serve --out o --novelty bonee", ("unknown novelty of angrybirds 'bonee'", "Did you mean 'bone'?")),
        ("serve --out o --preset sailor", ("unknown preset 'sailor'", "Did you mean 'sailon'?")),
        ("serve --out o --trials no.xml", ("no trial file 'no.xml'",)),
        ("serve --out o --trials full/x.xml", ("'full/x.xml' is not well-formed XML",)),
        ("serve --out o --trials no.xml --levels 3 --dev --informed", ("--levels, --informed with --trials",)),
        ("serve --out o --levels 2451", ("2451 levels", "there are 2450")),
        ("serve --out o --levels 176 --novelty bone", ("352 levels", "of bone there are 350")),
        ("serve --out o --levels -1", ("--levels -1", "from 0 to 10000")),
        ("serve --out o --novel-levels 2", ("without a novelty", "--novelty NAME")),
        ("serve --out o --port 70000", ("port 70000", "0 to 65535")),
        ("serve --out full", ("full is not empty", "another --out")),
        ("serve --out full/x.xml", ("full/x.xml cannot be written to: it is a file",)),
        ("play no.xml", ("no level file 'no.xml'",)),
        ("play full/x.xml", ("level 'x' is not a level file",)),
        ("play full/x.xml --template bone", ("give one of them",)),
        ("play --template bon", ("unknown template 'bon'", "Did you mean 'bone'?")),
        ("play --number -1", ("--number -1", "from 0 to")),
        ("play --agent nave", ("unknown agent 'nave'", "Did you mean 'naive'?")),
        ("play --headless", ("--headless", "add --agent naive")),
        ("play --agent naive --headless --record x.avi", ("'.avi'", "allowed: .gif, .mp4")),
        ("play --agent naive --headless --record no/x.gif", ("there is no folder 'no'",)),
        ("levels x.jpg", ("'.jpg'", "a .png, or a folder")),
        ("levels o --template bon", ("unknown template 'bon'",)),
        ("levels o --count 0", ("--count 0",)),
        ("levels x.png --count 100", ("700 pictures", "at most 200")),
        ("levels no/x.png", ("no/x.png cannot be written", "another --out")),
    ],
)
def test_bad_input_is_one_line(napping: Napping, words: str, texts: tuple[str, ...]) -> None:
    Path("full").mkdir()
    Path("full/x.xml").write_text("hello")
    done = napping("birds", *words.split())
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("napping: ")
    assert done.err.count("\n") == 1, done.err
    assert all(text in done.err for text in texts), done.err
    assert not Path("o").is_dir() or not list(Path("o").iterdir()), "nothing is left behind"


def test_without_pygame_there_is_one_line(napping: Napping, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygame", None)
    done = napping("birds", "play")
    assert (done.status, done.out) == (2, "")
    assert done.err == 'napping: a window needs pygame: pip install "nappingrl[render]"\n'


# ---- serve ----------------------------------------------------------------------------------------------------------


class Served:
    """`napping birds serve` in a separate process."""

    def __init__(self, *options: str) -> None:
        command = (sys.executable, "-m", "nappingrl", "birds", "serve", "--port", "0", *options)
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        self.lines = []
        while not (found := re.search(r"agents connect to [\w.]+:(\d+)", line := self.process.stderr.readline())):
            assert line, self.process.communicate()
            self.lines.append(line)
        self.port = int(found[1])

    def end(self) -> Done:
        out, err = self.process.communicate(timeout=PATIENCE)
        return Done(self.process.returncode, out, "".join(self.lines) + err)


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Served]]:
    monkeypatch.chdir(tmp_path)
    started: list[Served] = []

    def start(*options: str) -> Served:
        started.append(Served(*options))
        return started[-1]

    yield start
    for served in started:
        if served.process.poll() is None:
            served.process.kill()
            served.process.communicate()


def play_to_the_end(port: int, agent_id: int = 7, n_levels: int = 1000) -> list[State]:
    """Shoots over everything; stops early after `n_levels`. The states it was told."""
    states: list[State] = []
    n_entered = 0
    with Client(port=port, seconds=PATIENCE) as client:
        client.configure(agent_id)
        while (state := client.state()) is not State.EVALUATION_TERMINATED:
            states.append(state)
            if state is State.PLAYING:
                assert client.shoot(*FAR_UP)
            elif state is State.REQUEST_NOVELTY_LIKELIHOOD:
                assert client.report_likelihood(Likelihood(0.25, 0.75))
            elif state in (State.NEW_TRIAL, State.NEW_TRAINING_SET):
                client.ready_for_new_set()
            else:
                if n_entered == n_levels:
                    return states
                n_entered += 1
                client.next_level()
    return [*states, state]


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_serve_a_trial_with_a_novelty(serve: Callable[..., Served], napping: Napping) -> None:
    served = serve(
        *("--levels", "2", "--novelty", "green-egg", "--novel-levels", "3"),
        *("--report-step", "2", "--agents", "1", "--seed", "3", "--out", "o", "--json"),
    )
    assert play_to_the_end(served.port)[-1] is State.EVALUATION_TERMINATED
    done = served.end()
    assert done.status == 0
    assert json.loads(done.out) == {
        "out": "o",
        "runs": ["o/run"],
        "before": {"levels": 2, "passed": 0, "pass_rate": 0.0, "shots": 2},
        "novel": {"levels": 3, "passed": 0, "pass_rate": 0.0, "shots": 4},
    }
    assert "game 1 (agent 7), trial 0: 0 of 5 levels passed" in done.err
    rows = read_csv(Path("o/EvaluationData.csv"))
    assert [row["novelty"] for row in rows] == ["basic"] * 2 + ["novel"] * 3
    assert {row["LevelStatus"] for row in rows} == {"Fail"}
    names = [row["levelName"] for row in rows]
    assert names == [level.name for level in draw_levels(5, "green-egg", seed=3)]
    assert all(name.startswith("green-egg-") for name in names)
    told = read_csv(Path("o/Likelihood.csv"))
    assert [row["InteractionIndex"] for row in told] == ["2", "4", "6"]
    run = RunFolder.open(Path("o/run"))
    stored = run.read()
    assert run.faults() == {}
    assert stored["episode"].to_list() == [-2, -1, 0, 1, 2]
    assert stored["phase"].to_list() == ["pre"] * 2 + ["novel"] * 3
    assert stored["level"].to_list() == names
    assert stored["length"].to_list() == [1, 1, 1, 1, 2]
    assert {stored.schema[name] for name in ("number", "episode", "length", "detected_step", "regions")} == {pl.Int32}
    assert run.manifest.command.startswith("napping birds serve --out o --levels 2 --novelty green-egg")
    report = napping("report", "o/run", "--json")
    assert (report.status, report.err) == (0, "")
    assert json.loads(report.out)["runs"]["o/run"]["mean"] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_a_signal_writes_what_there_is(serve: Callable[..., Served], number: int, status: int) -> None:
    served = serve("--levels", "3", "--out", "o", "--host", "0.0.0.0")
    play_to_the_end(served.port, agent_id=1)
    assert play_to_the_end(served.port, agent_id=2, n_levels=1)[-1] is State.LOST
    served.process.send_signal(number)
    done = served.end()
    assert done.status == status
    assert "warning: 0.0.0.0 exposes the server" in done.err
    assert re.search(r"before +4 +0 +0.00 +7", done.out)
    assert "results: o/EvaluationData.csv   next: napping report o/run\n" in done.out
    assert "other agents and unfinished trials: o/run-2" in done.out
    first, second = (RunFolder.open(Path("o") / name) for name in ("run", "run-2"))
    assert (first.manifest.spec["agent"], first.manifest.spec["protocol"]) == ("agent-1", "0+3")
    assert (second.manifest.spec["agent"], second.manifest.spec["protocol"]) == ("agent-2", "0+1")
    assert first.manifest.spec["novelty"] == "none"
    assert [run.gap for run in read_runs([first.path, second.path])] == ["", ""]


def test_serve_a_trial_file(serve: Callable[..., Served]) -> None:
    Path("novelty_level_1").mkdir()
    levels.write(make_level("bone", 0), Path("basic.xml"))
    levels.write(make_level("bone", 1), Path("novelty_level_1/b.xml"))
    Path("config.xml").write_text(
        "<evaluation><trials><trial id='5'><game_level_set mode='training' total_interaction_limit='100'>"
        "<game_levels level_path='basic.xml'/><game_levels level_path='novelty_level_1/b.xml'/>"
        "</game_level_set></trial></trials></evaluation>"
    )
    served = serve("--trials", "config.xml", "--novelty", "bone", "--agents", "1", "--out", "o")
    play_to_the_end(served.port)
    assert served.end().status == 0
    rows = RunFolder.open(Path("o/run")).read()
    assert rows.select("novelty", "episode", "level", "length").rows() == [
        ("bone", -1, "basic.xml", 2),
        ("bone", 0, "novelty_level_1/b.xml", 2),
    ]


def test_a_port_in_use_is_one_line(napping: Napping) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        done = napping("birds", "serve", "--levels", "1", "--port", str(other.getsockname()[1]), "--out", "p")
    assert (done.status, done.out) == (2, "")
    assert "another server runs there: use another --port" in done.err
    assert done.err.count("\n") == 1


# ---- play  ----------------------------------------------------------------------------------------------------------


def test_naive_is_filmed_without_a_window(napping: Napping, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygame", None)
    levels.write(SHORT, Path("level.xml"))
    done = napping("birds", "play", "level.xml", "--agent", "naive", "--headless", "--record", "p.gif", "--seed", "1")
    assert (done.status, done.err) == (0, "")
    assert re.match(r"[01] of 1 levels passed\nfilm: p.gif \(\d+ s\)\n", done.out)
    with Image.open("p.gif") as film:
        assert film.size == (640, 480)
        assert film.n_frames > 20
        durations, pictures = [], []
        for i in range(film.n_frames):
            film.seek(i)
            durations.append(film.info["duration"])
            pictures.append(np.asarray(film.convert("RGB")).astype(int))
    seconds = int(re.findall(r"\((\d+) s\)", done.out)[0])
    assert sum(durations) / 1000 == pytest.approx(seconds, abs=1)
    assert abs(pictures[0] - pictures[-1]).max() > 100, "something has happened"
    assert len({picture.tobytes() for picture in pictures}) > 20


def test_an_mp4_needs_ffmpeg(napping: Napping, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    done = napping("birds", "play", "--agent", "naive", "--headless", "--record", "p.mp4")
    assert (done.status, done.out) == (2, "")
    assert "the program ffmpeg, which is not on the PATH" in done.err
    assert done.err.count("\n") == 1


# ---- levels ---------------------------------------------------------------------------------------------------------


def test_levels_as_files(napping: Napping) -> None:
    done = napping("birds", "levels", "d", "--novelty", "--count", "2", "--number", "5")
    assert (done.status, done.err) == (0, "")
    written = {file.stem: levels.read(file) for file in Path("d").iterdir()}
    assert written["bone-00006"] == make_level("bone", 6)
    novel = written["bone-00006-novel"]
    assert [item.type for item in novel.items if item.is_goal] == ["Bone"]
    assert len(written) == 7 * 2 + 2 * 2, "only egg and bone can be seen in a file"


def test_levels_as_a_picture(napping: Napping) -> None:
    done = napping("birds", "levels", "x.png", "--template", "circumcircle", "--novelty", "--count", "2")
    assert (done.status, done.out, done.err) == (0, "picture of 2 levels: x.png\n", "")
    with Image.open("x.png") as picture:
        pixels = np.asarray(picture).astype(int)
    height, width = pixels.shape[0] // 2, pixels.shape[1] // 2
    before, after = pixels[40:height, 15 : width - 10], pixels[40:height, 15 + 570 : width - 10 + 570]
    n = min(before.shape[1], after.shape[1])
    differs = (abs(before[:, :n] - after[:, :n]).max(axis=2) > 30).mean()
    assert 0.0005 < differs < 0.05, "circles, and nothing else"
