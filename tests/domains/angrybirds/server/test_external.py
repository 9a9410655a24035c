"""`napping birds external`: good and bad agents in other processes and languages."""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from domains.angrybirds.server.toy_world import ToyWorld, toy_level
from nappingrl.cli import main
from nappingrl.cli.argv import parse
from nappingrl.cli.birds.external import External
from nappingrl.domains.angrybirds.domain import AngryBirds
from nappingrl.domains.angrybirds.server import process, supervise
from nappingrl.domains.angrybirds.server.harness import Entry
from nappingrl.domains.angrybirds.server.results import FAIL, PASS, PLAYING, Episode
from nappingrl.domains.angrybirds.server.supervise import MOST_LINES, Patience, Supervised, Supervisor
from nappingrl.domains.angrybirds.server.trial_plan import LevelSet, Plan, Source, Trial, one_trial
from nappingrl.domains.angrybirds.server.unfinished import MISSING, UnfinishedPlan
from nappingrl.errors import BadSpecError
from nappingrl.report.runs import read_runs
from nappingrl.trials.science_birds import external_trial
from nappingrl.trials.spec import RunSpec, TrialSpec
from nappingrl.trials.store import RunFolder
from patience import PATIENCE, wait_for

AGENTS = Path(__file__).parent / "external"
PLAIN = AGENTS / "agent.py"
FIVE = one_trial([toy_level(f"level {i}") for i in range(1, 4)], [toy_level(f"level {i}") for i in (4, 5)])


class Clock:
    """Stands still, and leaps with every look at it while a condition holds."""

    sleep = staticmethod(time.sleep)

    def __init__(self, leaps: Callable[[], bool]) -> None:
        self._leaps, self._now = leaps, 0.0

    def monotonic(self) -> float:
        self._now += 2 * PATIENCE if self._leaps() else 0.0
        return self._now


def text(file: Path) -> str:
    return file.read_text() if file.exists() else ""


class Play:
    """Supervises an agent in the toy world."""

    def __init__(self, out: Path) -> None:
        self.out, self.lines = out, []

    def __call__(
        self, kind: str, plan: Plan = FIVE, restarts: int = 1, seconds: float = PATIENCE, grace: float = PATIENCE
    ) -> Supervised:
        return Supervisor(
            plan,
            ToyWorld,
            lambda port: [sys.executable, str(PLAIN), str(port), kind],
            self.out,
            0,
            Patience(seconds, restarts, grace),
            say=self.lines.append,
        ).run()

    @property
    def starts(self) -> list[str]:
        """The line of each start, without its time."""
        return [re.sub(r", \d+ s\b", "", line) for line in self.lines if re.match(r"start \d+: (?!the agent)", line)]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    return Play(tmp_path / "out")


def outcomes(episodes: tuple[Episode, ...]) -> list[tuple[int, str, str]]:
    return [(episode.entry.number, episode.entry.source.name, episode.status) for episode in episodes]


# ---- good agents ----------------------------------------------------------------------------------------------------


def test_a_good_agent_is_started_once(play: Play) -> None:
    done = play("good", restarts=0)
    assert outcomes(done.episodes) == [
        (1, "level 1", PASS),
        (2, "level 2", PASS),
        (3, "level 3", FAIL),
        (4, "level 4", FAIL),
        (5, "level 5", FAIL),
    ]
    assert [episode.n_shots for episode in done.episodes] == [1, 1, 2, 2, 2]
    assert (done.missing, done.interruption) == ((), None)
    assert play.starts == ["start 1: played to the end; levels 5, passed 2, shots 8"]
    assert done.starts[0].exit_status == 0
    assert (play.out / "start-1" / "EvaluationData.csv").read_text().count("\n") == 6


def test_an_agent_that_does_not_end_is_ended(play: Play) -> None:
    done = play("forgets_to_end", grace=0.3)
    assert len(done.episodes) == 5
    assert play.starts == [
        "start 1: played to the end; stopped, as it did not end by itself; levels 5, passed 2, shots 8"
    ]


def test_a_launcher_may_end_before_its_agent(play: Play) -> None:
    done = play("launches", restarts=0)
    assert [episode.status for episode in done.episodes] == [PASS] * 5
    assert play.starts == ["start 1: played to the end; levels 5, passed 5, shots 5"]


def test_more_output_than_wanted_is_dropped(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MOST_OUTPUT", 100_000)
    assert len(play("chatters").episodes) == 5
    log = (play.out / "start-1" / "agent.log").read_bytes()
    assert log == b"x" * 100_000 + b"\n[more output was left out]\n"


# ---- bad agents -----------------------------------------------------------------------------------------------------


def test_a_crashing_agent_goes_on_with_the_next_level(play: Play) -> None:
    done = play("crashes", restarts=1)
    assert outcomes(done.episodes) == [
        (1, "level 1", PASS),
        (2, "level 2", PLAYING),
        (3, "level 3", PASS),
        (4, "level 4", PLAYING),
    ]
    assert {(episode.agent, episode.entry.evaluation) for episode in done.episodes} == {(1, 0)}, "one trial"
    assert outcomes(done.missing) == [(5, "level 5", MISSING)]
    assert play.starts == [
        "start 1: ended by itself (exit status 1); levels 2, passed 1, shots 1; levels left 3, restarts left 1",
        "start 2: ended by itself (exit status 1); levels 2, passed 1, shots 1; levels left 1, restarts left 0",
    ]
    assert "SystemError: crashed" in (play.out / "start-2" / "agent.log").read_text()


def test_a_hanging_agent_is_ended_with_its_children(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "TERM_SECONDS", 0.3)
    log = play.out / "start-1" / "agent.log"
    monkeypatch.setattr(supervise, "time", Clock(lambda: not (play.out / "start-2").exists() and "child" in text(log)))
    done = play("hangs", restarts=1)
    assert [status for _, _, status in outcomes(done.episodes)] == [PASS, PLAYING, PASS, PASS, PASS]
    assert play.starts == [
        "start 1: no shot for 600 s; stopped; levels 2, passed 1, shots 1; levels left 3, restarts left 1",
        "start 2: played to the end; levels 3, passed 3, shots 3",
    ]
    child = re.search(r"child (\d+)", text(log))
    assert child is not None
    wait_until_gone(int(child[1]))


@pytest.mark.parametrize(
    ("kind", "seconds", "line", "n_entered"),
    [
        ("lies", PATIENCE, "ended by itself (exit status 0); no level entered; levels left 5, restarts left 0", 0),
        ("never_connects", 0.5, "no shot for 0.5 s; stopped; no level entered; levels left 5, restarts left 0", 0),
        ("knocks", 1, "no shot for 1 s; stopped; no level entered; levels left 5, restarts left 0", 0),
        ("only_skips", PATIENCE, "played to the end; levels 5, passed 0, shots 0", 5),
    ],
)
def test_an_agent_without_a_shot_passes_nothing(
    play: Play, kind: str, seconds: float, line: str, n_entered: int
) -> None:
    done = play(kind, restarts=0, seconds=seconds)
    assert play.starts == [f"start 1: {line}"]
    assert (len(done.episodes), len(done.missing)) == (n_entered, 5 - n_entered)
    assert len(play.lines) <= MOST_LINES + 3, "it cannot flood the terminal"


def test_an_agent_that_never_shoots_is_stopped(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise, "time", Clock(lambda: "in a level" in text(play.out / "start-1" / "agent.log")))
    done = play("never_shoots", restarts=0)
    assert (len(done.episodes), len(done.missing)) == (1, 4)
    assert play.starts == [
        "start 1: no shot for 600 s; stopped; levels 1, passed 0, shots 0; levels left 4, restarts left 0"
    ]


def test_garbage_ends_the_conversation(play: Play) -> None:
    done = play("garbage", restarts=0)
    assert outcomes(done.episodes) == [(1, "level 1", PLAYING)]
    assert any("code 250" in line and line.endswith("hung up") for line in play.lines), play.lines
    assert play.starts == [
        "start 1: ended by itself (exit status 1); levels 1, passed 0, shots 0; levels left 4, restarts left 0"
    ]


def test_an_agent_that_hangs_up_is_not_waited_for(play: Play) -> None:
    assert outcomes(play("hangs_up", restarts=0, grace=0.3).episodes) == [(1, "level 1", PASS)]
    assert play.starts == [
        "start 1: hung up, but did not end; stopped; levels 1, passed 1, shots 1; levels left 4, restarts left 0"
    ]


def test_no_level_is_played_twice(play: Play) -> None:
    done = play("peeks", restarts=1)
    assert outcomes(done.episodes) == [(1, "level 1", PLAYING), (2, "level 2", PLAYING)], "its hits do not count"
    assert sum("a second game" in line for line in play.lines) == 2


def test_a_set_without_end_is_refused(play: Play) -> None:
    with pytest.raises(BadSpecError, match="limits neither entries nor shots nor time"):
        play("good", one_trial([toy_level()], attempts=0))


def wait_until_gone(pid: int) -> None:
    def is_gone() -> bool:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        return state == "Z"  # ended, but not yet waited for

    wait_for(is_gone)


# ---- what is left ---------------------------------------------------------------------------------------------------


def episode_of(plan: Plan, trial: int, number: int, n_shots: int = 1, agent_id: int = 7) -> Episode:
    levels = plan.trials[trial].training
    entry = Entry(trial, plan.trials[trial].name, 0, levels.mode, False, number, 1, levels.sources[number - 1])
    return Episode(3, agent_id, entry, FAIL, 0, n_shots, 0, 1, 2, 1)


def names(plan: Plan) -> list[list[str]]:
    return [[source.name for source in trial.training.sources] for trial in plan.trials]


def make_set(letters: str, **options: object) -> LevelSet:
    return LevelSet(tuple(Source(letter, toy_level(letter)) for letter in letters), **options)


def test_each_game_gets_what_was_not_entered() -> None:
    unfinished = UnfinishedPlan(Plan((Trial("t", make_set("abc"), n_executions=2), Trial("u", make_set("d")))))
    given = unfinished.next_game()
    assert names(given) == [["a", "b", "c"], ["a", "b", "c"], ["d"]]
    unfinished.add([*(episode_of(given, 0, i) for i in (1, 2, 3)), episode_of(given, 1, 2)], 1, 5.0)
    given = unfinished.next_game()
    assert names(given) == [["a", "c"], ["d"]]
    assert unfinished.n_left == 3
    unfinished.add([episode_of(given, 0, 2, agent_id=8)], 0, 5.0)
    assert names(unfinished.next_game()) == [["a"], ["d"]]
    entries = [(one.entry.evaluation, one.entry.execution, one.entry.number) for one in unfinished.episodes]
    assert entries == [(0, 0, 1), (0, 0, 2), (0, 0, 3), (1, 1, 2), (1, 1, 3)]
    assert {one.agent_id for one in unfinished.episodes} == {7}
    missing = [(one.entry.evaluation, one.entry.source.name, one.n_birds, one.n_pigs) for one in unfinished.missing()]
    assert missing == [(1, "a", 2, 1), (2, "d", 2, 1)]


def test_limits_go_down_and_end_a_trial() -> None:
    unfinished = UnfinishedPlan(Plan((Trial("t", make_set("abcd", interaction_limit=5, time_limit=60)),)))
    given = unfinished.next_game()
    unfinished.add([episode_of(given, 0, 1, n_shots=2)], 0, 20.9)
    training = unfinished.next_game().trials[0].training
    assert (training.interaction_limit, training.time_limit) == (3, 40)
    unfinished.add([episode_of(Plan((Trial("t", training),)), 0, 1, n_shots=3)], 0, 1.0)
    assert (unfinished.n_left, unfinished.missing()) == (0, []), "no shots are left for the others"


def test_a_trial_with_test_sets_is_not_played_on() -> None:
    plan = Plan((Trial("t", make_set("ab"), (make_set("cd", mode="test"),)), Trial("u", make_set("e"))))
    unfinished = UnfinishedPlan(plan)
    unfinished.next_game()
    unfinished.add([], 0, 1.0)
    assert names(unfinished.next_game()) == [["a", "b"], ["e"]], "not begun"
    unfinished.add([episode_of(plan, 0, 1)], 0, 1.0)
    assert names(unfinished.next_game()) == [["e"]]
    assert [one.entry.source.name for one in unfinished.missing()] == ["b", "c", "d", "e"]


# ---- the command ----------------------------------------------------------------------------------------------------

Napping = Callable[..., tuple[int, str, str]]


@pytest.fixture
def napping(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Napping:
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = 0
        try:
            main(["birds", "external", *arguments])
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
        return status, *capsys.readouterr()

    return call


def need(program: str) -> None:
    """Skips where a program is not installed, but never in CI."""
    if shutil.which(program) is None:
        reason = f"{program} is not installed; agents in its language are not tested"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)


def test_a_node_agent_plays_a_whole_trial(napping: Napping) -> None:
    need("node")
    status, out, err = napping(
        *("--command", f"node '{AGENTS / 'agent.mjs'}' {{port}}", "--port", "0", "--seed", "3", "--json"),
        *("--levels", "8", "--novelty", "taller-slingshot", "--novel-levels", "3", "--out", "o"),
    )
    assert status == 0, err
    told = json.loads(out)
    assert (told["runs"], told["missing"]) == (["o/run"], 0)
    assert (told["before"]["levels"], told["novel"]["levels"]) == (8, 3)
    assert told["before"]["passed"] >= 1, "it aims at pigs"
    assert [start["end"] for start in told["starts"]] == ["played to the end"]
    assert Path("o/start-1/agent.log").read_text().splitlines() == [
        *(f"level {i}" for i in (*range(1, 12), 0)),
        "done",
    ]
    run = RunFolder.open(Path("o/run"))
    assert run.faults() == {}
    assert (run.manifest.spec["agent"], run.manifest.spec["protocol"]) == ("agent-77", "8+3")
    assert isinstance(command := parse(shlex.split(run.manifest.command)[1:]), External)
    assert (command.levels, command.novelty) == (8, "taller-slingshot")
    assert run.read()["level"].to_list() == [
        source.name for source in external_trial("taller-slingshot", 8, 3, 3, 0).training.sources
    ]
    assert [loaded.gap for loaded in read_runs([Path("o/run")])] == [""]


def test_a_java_agent_plays_in_a_temporary_folder(napping: Napping, tmp_path: Path) -> None:
    need("java")
    shutil.copy(AGENTS / "Agent.java", tmp_path)
    status, out, err = napping(
        *("--command", "java -XX:TieredStopAtLevel=1 Agent.java {port}", "--port", "0", "--out", "o"),
        *("--novelty", "green-egg", "--levels", "1", "--count", "2"),
    )
    assert status == 0, err
    assert re.search(r"before +2 +0 +0.00 +\d", out)
    assert "starts: 1   results: o/run   next: napping report o/run\n" in out
    assert not Path("output.csv").exists()
    folder = re.search(r"shots in (.+)", Path("o/start-1/agent.log").read_text())
    assert folder is not None
    assert "napping-agent-" in folder[1]
    assert not Path(folder[1]).exists(), "nothing is left behind"
    rows = RunFolder.open(Path("o/run")).read()
    assert rows.select("number", "episode").rows() == [(0, -1), (0, 0), (1, -1), (1, 0)]


def test_missing_levels_are_failed_in_the_run(napping: Napping) -> None:
    status, out, err = napping(
        *("--command", f"'{sys.executable}' '{PLAIN}' {{port}} crashes", "--port", "0", "--restarts", "0"),
        *("--novelty", "green-egg", "--levels", "2", "--novel-levels", "2", "--out", "o", "--json"),
    )
    assert status == 0, err
    told = json.loads(out)
    assert (told["missing"], told["novel"]) == (2, {"levels": 2, "passed": 0, "pass_rate": 0.0, "shots": 0})
    assert "napping: 2 of 4 levels were never entered: they count as failed\n" in err
    assert json.loads(Path("o/starts.json").read_text())["starts"] == told["starts"]
    rows = RunFolder.open(Path("o/run")).read()
    assert rows["outcome"].to_list()[1:] == [PLAYING, MISSING, MISSING]
    assert rows.filter(pl.col("outcome") != PASS)["won"].any() is False
    main(["report", "o/run", "--json"])


def test_an_agent_that_never_plays_is_one_line(napping: Napping) -> None:
    shutil.copy(PLAIN, "copy.py")
    status, out, err = napping(
        *("--command", f"'{sys.executable}' {{here}}/copy.py {{port}} lies", "--port", "0", "--restarts", "1"),
        *("--levels", "1", "--out", "o"),
    )
    assert (status, out) == (2, "")
    assert err.splitlines()[-1] == (
        "napping: the agent entered no level in 2 starts: there is nothing to score; "
        "see its output in o/start-*/agent.log"
    )
    assert not Path("o/run").exists()
    assert "3 of 3 levels passed" in Path("o/start-2/agent.log").read_text()


@pytest.mark.parametrize(("number", "kind"), [(signal.SIGINT, "hangs"), (signal.SIGTERM, "waits")])
def test_ctrl_c_stops_the_agent_too(number: signal.Signals, kind: str, tmp_path: Path) -> None:
    agent = f"'{sys.executable}' '{PLAIN}' {{port}} {kind}"
    command = (sys.executable, "-m", "nappingrl", "birds", "external", "--command", agent, "--port", "0")
    with subprocess.Popen(
        (*command, "--novelty", "green-egg", "--levels", "3", "--out", "o", "--json"),
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as napping:  # fmt: skip
        log = tmp_path / "o" / "start-1" / "agent.log"
        wait_for(lambda: re.search(r"child \d+\n", text(log)), napping)
        child = re.search(r"child (\d+)\n", text(log))
        napping.send_signal(number)
        out, err = napping.communicate(timeout=PATIENCE)
    assert napping.returncode == 128 + number, err
    wait_until_gone(int(child[1]))
    told = json.loads(out)
    assert (told["before"]["levels"], told["missing"]) == (2, 0), "what was not played is not its fault"
    assert [start["end"] for start in told["starts"]] == ["stopped by you"]
    assert "stopped, and the agent with it" in err


@pytest.mark.parametrize(
    ("words", "texts"),
    [
        (("--command", "nonesuch-agent 1"), ("'nonesuch-agent'", "no program here")),
        (("--command", ""), ("an empty text",)),
        (("--command", "java 'x"), ("cannot be split into words",)),
        (("--command", "env", "--port", "0"), ("put {port} in --command",)),
        (("--command", "env", "--count", "0"), ("--count 0",)),
        (("--command", "env", "--timeout", "0"), ("--timeout 0",)),
        (("--command", "env", "--timeout", "nan"), ("--timeout nan",)),
        (("--command", "env", "--restarts", "-1"), ("--restarts -1 is not a whole number from 0",)),
        (("--command", "env", "--seed", "-1"), ("--seed -1 is not a whole number from 0",)),
        (("--command", "env", "--novelty", "bonee"), ("Did you mean 'bone'?",)),
        (("--command", "env", "--preset", "sailor"), ("Did you mean 'sailon'?",)),
        (("--command", "env", "--novel-levels", "2"), ("add --novelty NAME",)),
        (("--command", "env", "--trials", "no.xml"), ("no trial file 'no.xml'",)),
        (("--command", "env", "--trials", "no.xml", "--levels", "2", "--count", "2"), ("--levels, --count with",)),
    ],
)
def test_bad_input_is_one_line(napping: Napping, words: tuple[str, ...], texts: tuple[str, ...]) -> None:
    status, out, err = napping(*words, "--out", "o")
    assert (status, out) == (2, "")
    assert err.startswith("napping: ")
    assert err.count("\n") == 1, err
    assert all(text in err for text in texts), err
    assert not Path("o").exists()


def test_a_folder_or_port_in_use_is_one_line(napping: Napping) -> None:
    Path("full").mkdir()
    Path("full/x").touch()
    assert "full is not empty" in napping("--command", "env", "--out", "full")[2]
    with socket.create_server(("127.0.0.1", 0)) as other:
        status, out, err = napping(
            "--command", "env", "--levels", "1", "--port", str(other.getsockname()[1]), "--out", "p"
        )
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "use another --port" in err


@pytest.mark.parametrize("novelty", ["bone", "none"])
def test_the_trials_are_those_of_our_own_agents(novelty: str) -> None:
    trial = external_trial("" if novelty == "none" else novelty, 2, 0 if novelty == "none" else 1, 5, 4)
    protocol = "0+2" if novelty == "none" else "2+1"
    spec = TrialSpec(RunSpec("angrybirds", novelty=novelty, seed=5, protocol=protocol), novelty, 4)
    uniforms = spec.stream("reset").random((len(trial.training.sources), 2))
    domain, row = AngryBirds(1), np.array([0])
    domain.apply(row, spec.setting())
    for source, numbers in zip(trial.training.sources, uniforms, strict=True):
        domain.reset(row, numbers[None])
        assert domain.world(0).level.name == source.name
    assert [source.is_novel for source in trial.training.sources] == [False, False, True][: len(uniforms)]
