"""One agent's game without a socket: every request against a predictable world."""

import csv
import json
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from domains.angrybirds.server.toy_world import FLIGHT, HIT, MISS, SLING, ToyWorld, toy_level
from nappingrl.domains.angrybirds.physics.scene import Camera, Scene, View
from nappingrl.domains.angrybirds.server.game import Game
from nappingrl.domains.angrybirds.server.harness import Harness
from nappingrl.domains.angrybirds.server.observer import Observer
from nappingrl.domains.angrybirds.server.protocol import Code, Likelihood, Request, State
from nappingrl.domains.angrybirds.server.results import Episode, Results
from nappingrl.domains.angrybirds.server.trial_plan import LevelSet, Plan, Source, Trial
from nappingrl.domains.angrybirds.server.wire import parse_batch, parse_picture, run_parser
from nappingrl.errors import BadRunError

S = State
SOURCES = tuple(Source(f"novelty_level_{i // 2}/{i}.xml", toy_level(str(i)), i >= 2) for i in range(3))


class Table:
    """A game, what it wrote and told, and short ways to ask it."""

    def __init__(self, levels: LevelSet | None = None, out: Path | None = None, is_dev: bool = True, **plan) -> None:
        self.now, self.trials, self.worlds = 0.0, [], []
        is_informed, self.world = plan.pop("is_informed", False), plan.pop("world", ToyWorld)
        trial = Trial("t", levels or LevelSet(SOURCES), is_informed=is_informed)
        self.game = Game(
            3, Harness(Plan((trial,), **plan), lambda: self.now), self.make_world,
            Observer(is_dev, False, np.random.default_rng(0)), Results(out).journal(), self.trials.append,
        )  # fmt: skip

    def make_world(self, source: Source) -> ToyWorld:
        self.worlds.append(self.world(source))
        return self.worlds[-1]

    def ask(self, code: int, *numbers: int) -> bytes:
        return self.game.handle(Request(Code(code), numbers))

    def state(self) -> State:
        return State(self.ask(12)[0])

    def start(self) -> "Table":
        """Into the first level."""
        self.ask(1, 77, 1)
        assert [len(self.ask(68)), len(self.ask(68))] == [19, 19]
        assert self.ask(53) == b"\0\0\0\1"
        return self

    def records(self, code: int, *numbers: int) -> list[bytes]:
        return run_parser(parse_batch(), _reader(self.ask(code, *numbers)))


def _reader(data: bytes):
    left = [data]

    def take(need) -> bytes:
        taken, left[0] = left[0][: need.n_bytes], left[0][need.n_bytes :]
        return taken

    return take


def test_configuring_tells_limits_in_a_competition_only() -> None:
    table = Table(LevelSet(SOURCES, time_limit=61))
    assert table.ask(1, 5, 1) == b"\0\0\0"
    assert table.ask(1, 5, 0) == b"\1\2\3"
    assert Table(LevelSet(SOURCES * 100, time_limit=10**6)).ask(1, 5, 0) == b"\1\xff\xff"


def test_outside_a_level_there_is_nothing_to_see() -> None:
    table = Table()
    assert table.ask(62) == b'\0\0\0\x31[{"type":"FeatureCollection","features":[]}]     '
    assert table.ask(11)[:8] == struct.pack(">II", 640, 480)
    assert len(table.ask(71)) == 8 + 640 * 480 * 3
    assert table.ask(65) == table.ask(14) == b"\0\0\0\0"
    assert table.ask(31, *HIT, 0, 0) == table.ask(51, 1) == table.ask(52) == b"\0"
    assert table.records(38, *HIT, 0, 0, 1) == table.records(70, 1, 5) == [table.ask(62)[4:]]
    assert table.ask(23) == b"\0\0\0\3" + bytes(12)
    assert table.ask(15) == b"\0\0\0\3"


def test_what_is_always_granted() -> None:
    table = Table().start()
    assert table.ask(2, 10**6) == table.ask(34) == table.ask(35) == table.ask(36) == b"\1"


def test_a_level_won_and_one_lost() -> None:
    table = Table().start()
    assert table.ask(14) == b"\0\0\0\1"
    assert table.state() is S.PLAYING
    assert table.ask(31, *MISS, 0, 0) == b"\1"
    assert table.state() is S.PLAYING
    assert table.ask(65) == b"\0\0\0\0"
    assert table.ask(31, *HIT, 0, 0) == b"\1"
    assert table.state() is S.WON
    assert table.ask(65) == struct.pack(">I", 5000)
    assert table.ask(31, *HIT, 0, 0) == b"\0"
    assert table.ask(53) == b"\0\0\0\2"
    table.ask(31, *MISS, 0, 0)
    table.ask(31, *MISS, 0, 0)
    assert table.state() is S.LOST
    assert table.ask(23) == struct.pack(">4I", 3, 5000, 0, 0)


def test_the_truth_is_exact_only_in_developer_mode() -> None:
    table = Table().start()
    exact = table.ask(62)
    assert exact == table.ask(62)
    (collection,) = json.loads(exact[4:-5])
    assert "pig_basic_small_1" in [feature["properties"]["label"] for feature in collection["features"]]
    assert len({table.ask(64) for _ in range(5)}) > 1

    table = Table(is_dev=False).start()
    assert len({table.ask(62) for _ in range(5)}) > 1
    labels = [feature["properties"]["label"] for feature in json.loads(table.ask(62)[4:-5])[0]["features"]]
    assert set(labels) == {"Ground", "Slingshot", "Object"}


@pytest.mark.parametrize("code", [61, 63])
def test_truth_and_screenshot_come_one_after_the_other(code: int) -> None:
    table = Table().start()
    reply = table.ask(code)
    length = struct.unpack(">I", reply[:4])[0]
    if code == 61:
        assert reply[: length + 4] == table.ask(62)
    assert reply[length + 4 :] == table.ask(11)


def test_the_initial_screenshot_stays() -> None:
    table = Table().start()
    first = table.ask(11)
    table.ask(31, *HIT, 0, 0)
    assert table.ask(11) != first
    assert table.ask(71) == first
    assert run_parser(parse_picture(), _reader(first)).shape == (480, 640, 3)


def test_a_fast_shot_goes_on_only_while_the_game_is_looked_at() -> None:
    table = Table().start()
    (world,) = table.worlds
    assert table.ask(41, *HIT, 0, 0) == b"\1"
    assert world.time == pytest.approx(0.02)
    assert table.ask(41, *HIT, 0, 0) == b"\0"  # the first is in the air
    table.ask(2, 50)
    table.ask(34)
    assert world.time == pytest.approx(0.02)
    table.ask(62)
    table.ask(65)
    assert world.time == pytest.approx(0.02 * 11)
    assert table.state() is S.WON  # a poll lets 4 s pass
    assert world.time == pytest.approx(0.02 * FLIGHT)
    assert table.ask(23)[4:8] == struct.pack(">I", 15000)


def test_a_fast_shot_returns_after_its_tap_and_a_safe_one_waits_for_it() -> None:
    table = Table().start()
    table.ask(41, *MISS, 0, 200)
    assert table.worlds[0].time == pytest.approx(0.02 * 11)
    assert table.ask(31, *HIT, 0, 0) == b"\1"
    assert table.worlds[0].time == pytest.approx(0.02 * FLIGHT * 2)
    assert table.state() is S.WON


def test_old_clients_give_a_point_and_how_far_it_is_drawn() -> None:
    table = Table().start()
    assert table.ask(41, 98, 252, 200, 50, 0, 0) == b"\1"  # to the right: misses
    assert table.state() is S.PLAYING
    assert table.ask(41, 98, 252, -60, 50, 0, 0) == b"\1"
    assert table.state() is S.WON


@pytest.mark.parametrize("code", [32, 42])
def test_polar_shots_are_by_distance_and_hundredths_of_a_degree(code: int) -> None:
    table = Table().start()
    table.ask(code, 100, 18000 - 4500, 0, 0)  # drawn to the right
    assert table.state() is S.PLAYING
    table.ask(code, 100, 4500, 0, 0)
    assert table.state() is S.WON


def test_sequences_answer_each_shot() -> None:
    table = Table().start()
    assert table.ask(33, 31, *MISS, 0, 0, 32, 100, 4500, 0, 0, 31, *HIT, 0, 0) == b"\1\1\0"
    assert table.state() is S.WON
    table.ask(53)
    assert table.ask(43, 31, *MISS, 0, 0, 31, *HIT, 0, 0) == b"\1\0"
    assert table.ask(33) == b""


def test_the_screen_may_be_turned() -> None:
    class Turned(ToyWorld):
        def scene(self) -> Scene:
            return replace(super().scene(), view=View(rotation=180))

    table = Table(world=Turned).start()
    assert table.ask(31, 640 - HIT[0], 480 - HIT[1], 0, 0) == b"\1"
    assert table.state() is S.WON


def test_release_points_are_pixels_of_the_camera() -> None:
    seen = []

    class Watched(ToyWorld):
        def shoot(self, release, tap_ms=0, on_step=None) -> bool:
            seen.append((release, tap_ms))
            return super().shoot(release, tap_ms, on_step)

    table = Table(world=Watched).start()
    x, y = Camera().to_pixels(*SLING.origin)
    table.ask(31, round(x), round(y), 0, -5)
    table.ask(31, -(2**31), 2**31 - 1, 0, 99999)
    (release, tap), (far, long_tap) = seen
    assert release == pytest.approx(SLING.origin, abs=0.03)
    assert tap == 0
    assert far[0] < -1e8
    assert far[1] < -1e8
    assert long_tap == 5000


def test_a_recorded_shot() -> None:
    table = Table().start()
    records = table.records(38, *MISS, 0, 0, 10)
    assert len(records) == 6  # steps 1, 11, ..., 51 of 60
    assert all(record.endswith(b"     ") for record in records)
    assert table.state() is S.PLAYING
    n_dots = [len(_dots(record)) for record in records]
    assert n_dots == [0, 2, 4, 6, 8, 8]
    flight = table.records(38, *MISS, 0, 0, 10, 1)
    assert len(flight) == 4  # up to the last dot, step 40
    assert table.state() is S.LOST
    assert len(table.records(38, *MISS, 0, 0, 10)) == 1


def test_a_flight_is_recorded_up_to_the_tap() -> None:
    table = Table().start()
    assert len(table.records(38, *MISS, 0, 500, 5, 1)) == 5  # steps 1, 6, 11, 16, 21 of 25
    assert len(table.records(38, *MISS, 0, 0, 1, 0)) == FLIGHT


def test_a_recording_without_frames_is_refused() -> None:
    table = Table().start()
    assert len(table.records(38, *MISS, 0, 0, 0)) == 1
    assert len(table.records(38, *MISS, 0, 0, -3)) == 1
    assert table.worlds[0].birds_left == 2


def _dots(record: bytes) -> list:
    features = json.loads(record[:-5])[0]["features"]
    found = [f["geometry"]["coordinates"] for f in features if f["properties"]["label"] == "Trajectory"]
    return found[0] if found else []


def test_batches_without_a_shot() -> None:
    table = Table().start()
    assert len(table.records(70, 10, 3)) == 3
    assert table.worlds[0].time == 0  # nothing moves
    table.ask(41, *HIT, 0, 0)
    assert [len(_dots(record)) for record in table.records(70, 10, 3)] == [2, 4, 6]
    assert table.worlds[0].time == pytest.approx(0.02 * 31)
    assert len(table.records(70, 2**31 - 1, 300)) == 300
    assert table.state() is S.WON
    for bad in ((0, 3), (1, 0), (1, 301), (-1, -1)):
        assert len(table.records(70, *bad)) == 1


def test_novelty_reports() -> None:
    table = Table(report_step=1).start()
    table.ask(31, *MISS, 0, 0)
    assert table.state() is S.REQUEST_NOVELTY_LIKELIHOOD
    assert table.ask(31, *HIT, 0, 0) == table.ask(34) == table.ask(35) == table.ask(51, 2) == table.ask(52) == b"\0"
    assert table.ask(53) == b"\0\0\0\0"
    nonsense = Request(Code.REPORT_LIKELIHOOD, likelihood=Likelihood(float("nan"), 0.0))
    assert table.game.handle(nonsense) == b"\0"
    assert table.state() is S.REQUEST_NOVELTY_LIKELIHOOD
    assert table.game.handle(Request(Code.REPORT_LIKELIHOOD, likelihood=Likelihood(0.5, 0.5))) == b"\1"
    assert table.state() is S.PLAYING


def test_novelty_info_and_hints() -> None:
    table = Table(is_informed=True).start()
    assert table.ask(69) == b"\0\0\0\0"
    assert table.ask(72, 1) == b'\0\0\0\x11{"novelty":false}'
    table.ask(53)
    table.ask(53)
    assert table.ask(69) == b"\0\0\0\1"
    assert table.ask(72, 1) == b'\0\0\0\x10{"novelty":true}'
    assert table.ask(72, 2) == b"\0\0\0\2{}"
    table = Table().start()
    assert table.ask(69) == b"\xff\xff\xff\xff"
    assert table.ask(72, 1) == b"\0\0\0\2{}"


def test_time_runs_out_while_playing() -> None:
    table = Table(LevelSet(SOURCES, time_limit=10)).start()
    table.now = 10
    assert table.ask(31, *HIT, 0, 0) == b"\0"
    assert table.state() is S.EVALUATION_TERMINATED
    assert table.game.is_terminated
    assert [episode.status for episode in table.trials[0]] == ["Playing"]
    assert table.ask(11)[:8] == struct.pack(">II", 640, 480)


def test_the_last_shot_counts_even_if_it_is_a_fast_one() -> None:
    table = Table(LevelSet(SOURCES, interaction_limit=1)).start()
    table.ask(41, *HIT, 0, 0)
    assert table.state() is S.WON
    assert table.state() is S.EVALUATION_TERMINATED


def finish(table: Table) -> tuple[Episode, ...]:
    """Level 1 won by the second shot, 2 lost, 3 left."""
    table.start()
    table.ask(31, *MISS, 0, 0)
    table.ask(31, *HIT, 0, 0)
    table.ask(53)
    table.ask(33, *(31, *MISS, 0, 0) * 2)
    table.ask(53)
    table.game.handle(Request(Code.REPORT_LIKELIHOOD, likelihood=Likelihood(0.1, 0.9, (-1, -2), 3, 'a "b",\nc')))
    table.game.handle(Request(Code.REPORT_DESCRIPTION, text="odd"))
    assert table.trials == []
    assert table.ask(53) == b"\0\0\0\0"
    return table.trials[0]


def test_a_level_left_before_the_first_shot_by_being_ready_is_no_episode() -> None:
    table = Table().start()
    table.ask(68)
    assert table.state() is S.MAIN_MENU
    assert table.ask(53) == b"\0\0\0\1"
    table.ask(31, *MISS, 0, 0)
    table.ask(68)
    assert table.ask(53) == b"\0\0\0\2"
    assert [(e.status, e.n_shots) for e in table.game.close()] == [("Playing", 1), ("Playing", 0)]


def test_episodes_are_told_at_the_end_of_the_trial() -> None:
    table = Table()
    episodes = finish(table)
    assert [(e.status, e.score, e.n_shots, e.birds_left, e.pigs_left) for e in episodes] == [
        ("Pass", 5000, 2, 0, 0), ("Fail", 0, 2, 0, 1), ("Playing", 0, 0, 2, 1),
    ]  # fmt: skip
    assert {(e.agent, e.agent_id, e.n_birds, e.n_pigs) for e in episodes} == {(3, 77, 2, 1)}
    assert [e.entry.source.is_novel for e in episodes] == [False, False, True]
    assert table.game.close() == []


def test_what_was_not_told_is_given_at_the_close() -> None:
    table = Table().start()
    table.ask(31, *HIT, 0, 0)
    table.ask(53)
    assert [episode.status for episode in table.game.close()] == ["Pass", "Playing"]
    assert table.trials == []


def test_tables_have_the_columns_of_the_original(tmp_path: Path) -> None:
    finish(Table(out=tmp_path))
    with (tmp_path / "EvaluationData.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    assert ", ".join(head) == (
        "EvaluationIndex, LevelIndex, Score, LevelStatus, birdsRemaining, pigsRemaining, birdsAtStart, pigsAtStart, "
        "trial, levelName, playStatus, informed, novelty"
    )
    assert ",".join(rows[0]) == "1,1,5000,Pass,0,0,2,1,t,novelty_level_0/0.xml,training,uninformed,basic"
    assert ",".join(rows[2]) == "3,3,0,Playing,2,1,2,1,t,novelty_level_1/2.xml,training,uninformed,novel"
    with (tmp_path / "Likelihood.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    assert ", ".join(head) == (
        "EvaluationIndex, LevelIndex, InteractionIndex, HasNoveltyLikelihood, NoNoveltyLikelihood, novel object IDs, "
        "novelty level, novelty description, trial, levelName, playStatus, informed, novelty"
    )
    place = ["t", "novelty_level_1/2.xml", "training", "uninformed", "novel"]
    assert rows == [["1", "3", "4", "0.1", "0.9", "-1 -2", "3", 'a "b",\nc', *place]]
    assert (tmp_path / "Description.csv").read_text().splitlines()[1:] == ["1,3,4,odd"]


def test_results_are_never_mixed_with_older_ones(tmp_path: Path) -> None:
    finish(Table(out=tmp_path))
    with pytest.raises(BadRunError, match=r"already holds EvaluationData.csv; use another --out"):
        Results(tmp_path)
    with pytest.raises(BadRunError, match="is a file; --out takes a folder"):
        Results(tmp_path / "Likelihood.csv")


def test_each_game_with_results_has_a_folder(tmp_path: Path) -> None:
    results = Results(tmp_path)
    journals = [results.journal() for _ in range(3)]
    journals[2].add_description((0, 0), "c")
    journals[1].add_description((0, 0), "b")
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("Description.csv")) == [
        "Description.csv", "agent-2/Description.csv",
    ]  # fmt: skip
