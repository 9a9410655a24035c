"""Commands in, messages out: what a tab and its session say to each other."""

import gc
import io
import json
import shutil
import subprocess
from collections import deque
from pathlib import Path
from types import FunctionType, ModuleType

import msgspec
import pytest
from PIL import Image

import nappingrl
from nappingrl.errors import NappingError
from nappingrl.play import commands
from nappingrl.play.choices import Choices
from nappingrl.play.commands import MAX_MESSAGE, read_command
from nappingrl.play.session import Session


def begun(domain: str = "cartpole", method: str = "frozen", **options: object) -> Session:
    session = Session()
    session.do(commands.Begin(domain, method=method, **options))  # type: ignore[arg-type]
    return session


@pytest.mark.parametrize("domain", ["cartpole", "mountaincar", "crossroad", "angrybirds"])
def test_every_domain_is_described_and_drawn(domain: str) -> None:
    session = Session()
    about = session.do(commands.Begin(domain, agent="naive" if domain == "angrybirds" else "", method="frozen"))
    assert about is not None
    assert set(about["domains"]) >= {"cartpole", "mountaincar", "crossroad", "angrybirds"}
    for slider in about["sliders"]:
        assert slider["low"] <= slider["trained"] <= slider["high"]
    session.advance()
    frame = json.loads(msgspec.json.encode(session.frame()))
    assert all("shapes" in pane or "image" in pane for pane in frame["panes"])
    assert frame["facts"]["world"] == "as trained"


def test_an_agent_plays_with_the_options_of_its_domain() -> None:
    """DataLab reads colours, the other scripted agents labels."""
    session = begun("angrybirds", agent="naive")
    assert session.match.world.domain.chosen.get("observation", "label") == "label"
    session.do(commands.Begin("angrybirds", agent="datalab", method="frozen"))
    assert session.match.agent.name == "datalab"
    assert session.match.world.domain.chosen == {"observation": "colour"}
    session.advance()


def test_shapes_that_stay_are_not_sent_again() -> None:
    session = begun("mountaincar")
    session.frame()
    session.advance()
    shapes = session.frame()["panes"][0]["shapes"]
    assert shapes[0] == 0  # the hill
    assert any(shapes)


def test_sliders_have_the_papers_range_and_the_trained_value() -> None:
    about = begun().frames.about()
    gravity = next(slider for slider in about["sliders"] if slider["name"] == "gravity")
    assert (gravity["trained"], gravity["paper"], gravity["is_log"]) == (9.8, (0.98, 98.0), True)
    assert about["switches"][0]["title"] == "reversed controls"


def test_commands_change_the_world_and_it_is_said_in_words() -> None:
    session = begun()
    session.do(read_command('{"do": "change", "changes": {"gravity": 30}}'))
    facts = session.frame()["facts"]
    assert facts["world"] == "gravity is 30 instead of 9.8"
    session.do(read_command('{"do": "novelty"}'))
    assert len(session.match.changes) == 5
    session.do(read_command('{"do": "world", "number": 0}'))
    assert session.match.changes == {}
    session.do(commands.Change({"action-remap[0]": 1.0, "action-remap[1]": 0.0}))
    assert session.match.world.describe(session.match.changes).startswith("reversed controls")


def test_pause_step_speed_restart_and_method() -> None:
    session = begun()
    session.do(commands.Pause())
    assert session.is_paused
    session.do(commands.Step())
    assert session.match.frozen.step_number == 1
    session.do(commands.Speed(4.0))
    session.do(commands.Change({"gravity": 30.0}))
    about = session.do(commands.Restart())
    assert about is not None
    assert about["match"] == 2
    assert session.match.spec.changes == session.match.changes == {"gravity": 30.0}
    about = session.do(commands.Method("napping"))
    assert about is not None
    assert about["method"] == "napping"
    assert session.match.changes == {"gravity": 30.0}


def test_the_statistic_of_the_detector_comes_with_its_limits() -> None:
    session = begun(method="auto")
    session.advance(30)
    frame = session.frame()
    assert len(frame["gauge"]) == 30
    assert frame["limits"] == ["surprise of the latest steps", None, 1.0]
    assert session.frame()["gauge"] == []


def test_regions_and_the_present_state_are_on_the_map() -> None:
    session = begun(method="napping", changes={"action-remap[0]": 1.0, "action-remap[1]": 0.0})
    for _ in range(400):
        session.advance()
        frame = session.frame()
    assert len(frame["point"]) == 2
    regions = session.frames._facts()["map"]
    assert any(wanted != done for _, _, wanted, done in regions)


def test_an_adapted_agent_is_saved_and_loaded(tmp_path: Path) -> None:
    session = begun(method="napping", changes={"action-remap[0]": 1.0, "action-remap[1]": 0.0})
    session.advance(300)
    file = session.do(commands.Save())
    assert file is not None
    path = tmp_path / file["name"]
    path.write_bytes(file["data"])
    agent = nappingrl.NappingAgent.load(path)
    assert len(agent.explain()) > 0


def test_links_carry_no_path_and_restore_the_match() -> None:
    session = Session(Choices(agent="/somewhere/secret.zip"))
    session.do(commands.Begin("cartpole", "ppo", "frozen", 7, {"gravity": 30.0}))
    link = session.frames.copies()["link"]
    assert link == "domain=cartpole&agent=ppo&method=frozen&seed=7&p.gravity=30"
    assert "secret" in Session(Choices(agent="/somewhere/secret.zip")).choices.agents_of("cartpole")


@pytest.mark.parametrize(
    "text",
    [
        "{}", "[]", "no", '{"do": "begin"}', '{"do": "begin", "domain": "cartpole", "path": "x"}',
        '{"do": "change", "changes": {"gravity": "9"}}', '{"do": "change", "changes": {"gravity": 1e300}}',
        '{"do": "speed", "factor": -1}', '{"do": "act", "action": -1}', '{"do": "world", "number": 99999999999}',
        '{"do": "method", "name": "' + "x" * 100 + '"}', b"\xff\xfe", '{"do": "pause"}' + " " * MAX_MESSAGE,
    ],
)  # fmt: skip
def test_other_messages_are_refused_in_one_line(text: str | bytes) -> None:
    with pytest.raises(NappingError) as caught:
        read_command(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "command",
    [
        commands.Begin("cartpole", "/etc/passwd"), commands.Begin("cartpole", "hf:x/y"), commands.Begin("os:X-v0"),
        commands.Begin("cartpole", method="os"), commands.Change({"gravitas": 1.0}), commands.World(3),
        commands.Novelty("gravitas"), commands.Change({"length": 0.0}),
    ],
)  # fmt: skip
def test_names_that_were_not_offered_are_refused_and_the_match_goes_on(command: commands.AnyCommand) -> None:
    session = begun()
    with pytest.raises(NappingError) as caught:
        session.do(command)
    assert "\n" not in str(caught.value)
    session.advance()
    assert session.frame()["match"] == 1


def test_a_film_of_the_running_match_is_sent_as_a_file() -> None:
    session = begun()
    assert session.do(commands.Film("gif")) is None
    session.advance(10)
    session.do(commands.Change({"gravity": 50.0}))
    session.advance(10)
    session.do(commands.Begin("mountaincar", method="frozen"))  # the film goes on in another match
    session.advance(10)
    assert session.frame()["recorded"] == 0.7  # 20 steps at 50 a second, 10 at 30
    file = session.do(commands.Film())
    assert file is not None
    assert file["name"] == "mountaincar-frozen.gif"
    with Image.open(io.BytesIO(file["data"])) as film:
        assert film.size == (720, 342)
        lengths = []
        for i in range(film.n_frames):  # type: ignore[attr-defined]
            film.seek(i)
            lengths.append(film.info["duration"])
    assert sum(lengths) == 18 * 40
    assert session.do(commands.Film()) is None
    assert "recorded" not in session.frame()


def test_a_film_has_a_greatest_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nappingrl.play.session.MAX_FILM_SECONDS", 0.2)
    session = begun()
    session.do(commands.Film("gif"))
    session.advance(30)
    assert session.recording is not None
    assert session.recording.is_full
    assert session.frame()["recorded"] == 0.2
    with pytest.raises(NappingError, match="a film is being recorded; end it first"):
        session.do(commands.Film("gif"))


def test_mp4_without_ffmpeg_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    session = begun()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NappingError, match=r"an \.mp4 needs the program ffmpeg, .* record a \.gif"):
        session.do(commands.Film("mp4"))
    assert session.recording is None


def lengths_of_containers(root: object) -> int:
    """How many items all lists, dicts, sets and queues hold that can be reached from an object."""
    n_items, seen, waiting = 0, {id(root)}, [root]
    while waiting:
        item = waiting.pop()
        n_items += len(item) if isinstance(item, list | dict | set | deque) else 0
        for child in gc.get_referents(item):
            if id(child) not in seen and not isinstance(child, type | ModuleType | FunctionType):
                seen.add(id(child))
                waiting.append(child)
    return n_items


def test_nothing_grows_while_a_match_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nappingrl.play.pane.MAX_EPISODES", 20)
    session = begun(changes={"action-remap[0]": 1.0, "action-remap[1]": 0.0})
    sizes, ended = [], []
    for _ in range(2):
        for _ in range(100):
            session.advance(10)
            ended += [number for number, *_ in session.frame()["panes"][0]["ended"]]
        sizes.append(lengths_of_containers(session))
    assert ended == list(range(len(ended)))  # the tab is told of every episode
    assert len(ended) > 80
    assert sizes[1] <= sizes[0]


def test_every_paused_frame_says_what_the_agent_does() -> None:
    session = begun()
    for _ in range(3):
        session.do(commands.Step())
        assert "facts" in session.frame()  # words and chips are of the same step


def test_shots_are_named_by_what_they_aim_at() -> None:
    session = begun("angrybirds", agent="naive")
    session.do(commands.Change({"taller_slingshot": 1.0, "template": 3.0}))
    frame = session.frame()
    assert frame["facts"]["world"] == "taller slingshot is 1 instead of 0"  # levels are no change of the world
    session.advance()
    wanted, does = session.frame()["panes"][1]["words"]
    assert wanted == does
    assert "pig" in does


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="needs the program ffmpeg")
def test_an_mp4_is_written_by_ffmpeg(tmp_path: Path) -> None:
    session = begun()
    session.do(commands.Film("mp4"))
    session.advance(10)
    file = session.do(commands.Film())
    assert file is not None
    path = tmp_path / file["name"]
    path.write_bytes(file["data"])
    words = ["ffmpeg", "-v", "error", "-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    decoded = subprocess.run(words, capture_output=True, check=True)
    assert decoded.stderr == b""
    assert len(decoded.stdout) == 5 * 342 * 720 * 3  # 10 steps at 50 a second, 25 frames a second
