"""The trial harness by its public interface, and the files that describe trials."""

from dataclasses import replace
from pathlib import Path

import pytest

from domains.angrybirds.server.toy_world import toy_level
from nappingrl.domains.angrybirds.server.harness import Harness
from nappingrl.domains.angrybirds.server.protocol import State
from nappingrl.domains.angrybirds.server.trial_plan import (
    LevelSet,
    Plan,
    Source,
    Trial,
    is_novel,
    one_trial,
    read_trials,
)
from nappingrl.errors import BadSpecError

S = State


class Clock:
    """Stands still unless told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def sources(n: int, n_novel: int = 0) -> tuple[Source, ...]:
    return tuple(Source(f"level{i}", toy_level(f"level{i}"), i >= n) for i in range(n + n_novel))


def begin(levels: LevelSet, clock: Clock | None = None, **trial: object) -> Harness:
    """A harness whose first set has begun."""
    plan = {key: trial.pop(key) for key in ("report_step", "is_asked_in_training") if key in trial}
    harness = Harness(Plan((Trial("t", levels, **trial),), **plan), clock or Clock())
    harness.ready()
    harness.ready()
    assert harness.poll() is S.MAIN_MENU
    return harness


def win(harness: Harness, score: int = 100) -> None:
    harness.on_shot()
    harness.on_end(True, score)


def test_the_way_from_a_new_trial_to_the_end() -> None:
    harness = Harness(one_trial([toy_level("a"), toy_level("b")]), Clock())
    assert harness.poll() is S.NEW_TRIAL
    assert harness.ready() == (0, 0, 2, 1, 1, 0, 0)
    assert harness.poll() is S.NEW_TRAINING_SET
    assert not harness.enter_next()
    harness.ready()
    assert harness.poll() is S.MAIN_MENU
    assert harness.entry is None
    assert harness.enter_next()
    assert harness.poll() is S.PLAYING
    assert harness.entry.number == 1
    harness.on_shot()
    harness.on_end(False, 0)
    assert [harness.poll(), harness.poll()] == [S.LOST, S.LOST]
    assert harness.enter_next()
    win(harness)
    assert harness.entry.number == 2
    assert harness.best_scores == [0, 100]
    assert [harness.poll(), harness.poll()] == [S.WON, S.EVALUATION_TERMINATED]
    assert harness.is_terminated
    assert not harness.enter_next()
    assert harness.ready()[2] == 2
    assert harness.poll() is S.EVALUATION_TERMINATED


def test_asking_for_a_level_when_none_is_left_ends_the_set() -> None:
    harness = begin(LevelSet(sources(1)))
    assert harness.enter_next()
    assert not harness.enter_next()  # skips the level while it is played
    assert harness.poll() is S.EVALUATION_TERMINATED


def test_a_level_is_repeated_while_entries_are_left() -> None:
    harness = begin(LevelSet(sources(2), attempts=2))
    numbers = []
    while harness.enter_next():
        numbers.append((harness.entry.number, harness.entry.attempt))
        win(harness)
    assert numbers == [(1, 1), (1, 2), (2, 1), (2, 2)]


def test_without_a_limit_of_entries_every_level_comes_once() -> None:
    harness = begin(LevelSet(sources(3), attempts=0))
    numbers = []
    while harness.enter_next():
        numbers.append(harness.entry.number)
        win(harness)
    assert numbers == [1, 2, 3]


def test_levels_are_chosen_freely_only_where_that_is_allowed() -> None:
    harness = begin(LevelSet(sources(3), attempts=1, is_selectable=True))
    assert [harness.enter(number) for number in (0, 4, 3, 3, 1)] == [False, False, True, False, True]
    assert harness.enter_next()
    assert harness.entry.number == 2
    assert not harness.is_set_over
    win(harness)
    assert harness.is_set_over

    harness = begin(LevelSet(sources(3)))
    assert [harness.enter(number) for number in (2, 1, 1, 3, 2)] == [False, True, False, False, True]


def test_free_choice_without_a_limit_of_entries_never_ends_by_itself() -> None:
    harness = begin(LevelSet(sources(2), attempts=0, is_selectable=True))
    for number in (2, 2, 1, 2, 1):
        assert harness.enter(number)
        win(harness)
        assert harness.poll() is S.WON
    assert harness.entry.attempt == 2


def test_a_restart_takes_an_entry() -> None:
    harness = begin(LevelSet(sources(1), attempts=2))
    assert not harness.enter_again()
    harness.enter_next()
    assert [harness.enter_again(), harness.enter_again()] == [True, False]
    assert harness.poll() is S.PLAYING


def test_likelihoods_are_asked_for_and_nothing_else_goes_on_meanwhile() -> None:
    harness = begin(LevelSet(sources(3)), report_step=2)
    harness.enter_next()
    harness.on_shot()
    assert harness.poll() is S.PLAYING
    harness.on_shot()
    harness.on_end(True, 5)
    assert harness.poll() is S.REQUEST_NOVELTY_LIKELIHOOD
    assert [harness.is_playing, harness.enter_next(), harness.enter(2), harness.enter_again()] == [False] * 4
    assert harness.ready() == (0, 0, 3, 1, 1, 0, 0)
    assert harness.poll() is S.REQUEST_NOVELTY_LIKELIHOOD
    assert harness.report()
    assert harness.poll() is S.MAIN_MENU  # left by being ready
    assert harness.enter_next()


def test_a_pending_likelihood_comes_before_the_outcome_and_the_end() -> None:
    harness = begin(LevelSet(sources(1)), report_step=1)
    harness.enter_next()
    win(harness)
    assert harness.poll() is S.REQUEST_NOVELTY_LIKELIHOOD
    harness.report()
    assert [harness.poll(), harness.poll()] == [S.WON, S.EVALUATION_TERMINATED]
    assert not harness.report()


@pytest.mark.parametrize("trial", [{"is_informed": True}, {"is_asked_in_training": False}])
def test_no_likelihoods_where_they_are_not_measured(trial: dict) -> None:
    harness = begin(LevelSet(sources(1)), report_step=1, **trial)
    harness.enter_next()
    harness.on_shot()
    assert harness.poll() is S.PLAYING


def test_novelty_is_told_to_the_informed_only() -> None:
    harness = begin(LevelSet(sources(1, 1)), is_informed=True)
    assert harness.ready()[6] == 1
    assert harness.novelty_info() == 0
    harness.enter_next()
    assert harness.novelty_info() == 0
    harness.enter_next()
    assert harness.novelty_info() == 1

    harness = begin(LevelSet(sources(0, 1)))
    assert harness.novelty_info() == -1
    harness.enter_next()
    assert harness.novelty_info() == -1


def test_being_ready_before_the_first_shot_gives_the_level_back() -> None:
    harness = begin(LevelSet(sources(2)))
    harness.enter_next()
    harness.ready()
    assert harness.poll() is S.MAIN_MENU
    assert harness.enter(1)
    assert harness.entry.attempt == 1
    assert not harness.is_set_over


def test_being_ready_while_playing_leads_to_the_menu_and_costs_the_entry() -> None:
    harness = begin(LevelSet(sources(2)))
    harness.enter_next()
    harness.on_shot()
    harness.ready()
    assert harness.poll() is S.MAIN_MENU
    assert not harness.is_in_level
    assert harness.enter_next()
    assert harness.entry.number == 2


def test_the_limit_of_shots_ends_the_set_and_the_outcome_is_still_told() -> None:
    harness = begin(LevelSet(sources(3), interaction_limit=2))
    harness.enter_next()
    win(harness)
    assert harness.poll() is S.WON
    harness.enter_next()
    win(harness)
    assert not harness.is_playing
    assert [harness.poll(), harness.poll()] == [S.WON, S.EVALUATION_TERMINATED]


def test_the_limit_of_shots_ends_the_set_in_an_undecided_level() -> None:
    harness = begin(LevelSet(sources(3), interaction_limit=1))
    harness.enter_next()
    harness.on_shot()
    assert harness.poll() is S.EVALUATION_TERMINATED


def test_the_limit_of_time_counts_from_the_beginning_of_the_set() -> None:
    clock = Clock()
    harness = Harness(Plan((Trial("t", LevelSet(sources(3), time_limit=60)),)), clock)
    harness.ready()
    clock.now += 1000
    assert harness.poll() is S.NEW_TRAINING_SET
    assert harness.ready()[0] == 60
    harness.enter_next()
    clock.now += 59
    assert harness.poll() is S.PLAYING
    clock.now += 1
    assert not harness.enter_next()
    assert harness.poll() is S.EVALUATION_TERMINATED


def test_trials_are_repeated_and_follow_each_other() -> None:
    trials = Trial("a", LevelSet(sources(1)), n_executions=2), Trial("b", LevelSet(sources(1)))
    harness = Harness(Plan(trials), Clock())
    seen = []
    while harness.poll() is S.NEW_TRIAL:
        harness.ready()
        harness.ready()
        harness.enter_next()
        entry = harness.entry
        seen.append((entry.evaluation, entry.trial, entry.execution))
        win(harness)
        assert harness.poll() is S.WON
    assert seen == [(0, "a", 0), (1, "a", 1), (2, "b", 0)]
    assert harness.poll() is S.EVALUATION_TERMINATED


def play_set(harness: Harness, n: int) -> None:
    harness.ready()
    for _ in range(n):
        assert harness.enter_next()
        win(harness)
        harness.poll()


def test_test_sets_follow_training() -> None:
    test = LevelSet(sources(1), mode="test")
    harness = begin(LevelSet(sources(1)), tests=(test, replace(test, sources=sources(2))))
    harness.enter_next()
    win(harness)
    assert [harness.poll(), harness.poll()] == [S.WON, S.NEW_TEST_SET]
    assert harness.ready()[2:5] == (1, 1, 0)
    play_set(harness, 1)
    assert harness.poll() is S.NEW_TEST_SET
    assert harness.ready()[2] == 2
    play_set(harness, 2)
    assert harness.poll() is S.EVALUATION_TERMINATED


def test_checkpoints_interrupt_training_by_tests() -> None:
    clock = Clock()
    test = LevelSet(sources(1), mode="test")
    harness = begin(LevelSet(sources(4), time_limit=100), clock, tests=(test,), checkpoint_interactions=2)
    clock.now += 90
    for expected in (S.WON, S.WON):
        harness.enter_next()
        win(harness)
        assert harness.poll() is expected
    assert harness.poll() is S.NEW_TEST_SET
    play_set(harness, 1)
    clock.now += 90  # does not count for the training
    assert harness.poll() is S.RESUME_TRAINING
    harness.ready()
    assert harness.poll() is S.MAIN_MENU
    assert harness.enter_next()
    assert harness.entry.number == 3
    clock.now += 10
    assert harness.poll() is S.NEW_TEST_SET
    play_set(harness, 1)
    assert harness.poll() is S.EVALUATION_TERMINATED


def test_a_trial_needs_levels() -> None:
    with pytest.raises(BadSpecError, match="a trial without levels"):
        one_trial([])


def test_own_levels_before_and_after_the_novelty() -> None:
    plan = one_trial([toy_level("a")], [toy_level("b")], report_step=3, attempts=2, is_selectable=True)
    assert (plan.trials[0].training.attempts, plan.trials[0].training.is_selectable) == (2, True)
    assert [(s.name, s.is_novel) for s in plan.trials[0].training.sources] == [("a", False), ("b", True)]
    assert plan.report_step == 3


# Files ---------------------------------------------------------------------------------------------------------------

CONFIG = """<?xml version="1.0" encoding="utf-16"?>
<evaluation>
  <novelty_detection_measurement step="1" measure_in_training="True" measure_in_testing="False"/>
  <trials>
    <trial id="7" number_of_executions="2" checkpoint_time_limit="200" checkpoint_interaction_limit="-1"
           notify_novelty="True">
      <game_level_set mode="training" time_limit="500000.0" total_interaction_limit="1000" attempt_limit_per_level="-1"
                      allow_level_selection="True">
        <game_levels level_path="Levels/novelty_level_0/type1/a.xml"/>
        <game_levels level_path="Levels\\novelty_level_1\\type6\\b.xml" />
        <game_levels level_path="Levels/novelty_level_0/type1/a.xml"></game_levels>
      </game_level_set>
      <game_level_set mode="test" time_limit="60">
        <game_levels level_path="Levels/novelty_level_0/type1/a.xml"/>
      </game_level_set>
    </trial>
  </trials>
</evaluation>
"""


def read_file(path: Path, data: bytes) -> tuple[Plan, list[str]]:
    """Read it with levels that are only named, and tell which were asked for."""
    read: list[str] = []

    def level(file: Path):
        read.append(file.relative_to(path).as_posix())
        return toy_level(file.stem)

    file = path / "config.xml"
    file.write_bytes(data)
    return read_trials(file, level), read


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_a_trial_file_is_read_whatever_its_encoding(tmp_path: Path, encoding: str) -> None:
    plan, read = read_file(tmp_path, CONFIG.encode(encoding))
    (trial,) = plan.trials
    assert (plan.report_step, plan.is_asked_in_training, plan.is_asked_in_tests) == (1, True, False)
    assert (trial.name, trial.n_executions, trial.is_informed) == ("7", 2, True)
    assert (trial.checkpoint_time, trial.checkpoint_interactions) == (200, 0)
    levels = trial.training
    assert [source.level.name for source in levels.sources] == ["a", "b", "a"]
    assert [source.is_novel for source in levels.sources] == [False, True, False]
    limits = levels.time_limit, levels.interaction_limit, levels.attempts, levels.is_selectable
    assert limits == (500000, 1000, 0, True)
    (test,) = trial.tests
    assert (test.mode, test.time_limit, test.attempts, test.is_selectable) == ("test", 60, 1, False)
    assert read == ["Levels/novelty_level_0/type1/a.xml", "Levels/novelty_level_1/type6/b.xml"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<evaluation>", '<!DOCTYPE a [<!ENTITY b "c">]><evaluation>', "declares a document type or entities"),
        ("</trials>", "", "is not well-formed XML: mismatched tag"),
        ('mode="training"', 'mode="exam"', "trial '7': mode 'exam'; allowed: training, test"),
        ('mode="test"', "", "trial '7': 2 training sets; a trial has one"),
        ('mode="training"', 'mode="testing"', "trial '7': 0 training sets; a trial has one"),
        ('step="1"', 'step="often"', "step='often' of <novelty_detection_measurement> is not a number"),
        ('time_limit="60"', 'time_limit="inf"', "time_limit='inf' of <game_level_set> is not a number"),
        ('level_path="Levels/novelty_level_0/type1/a.xml"/', "/", "<game_levels> without a level_path"),
        ("game_levels", "levels", "a level set without <game_levels"),
        ("<trial ", "<try ", "not well-formed"),
    ],
)
def test_a_trial_file_with_a_mistake_is_refused_by_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in CONFIG
    with pytest.raises(BadSpecError) as caught:
        read_file(tmp_path, CONFIG.replace(old, new).encode())
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_are_no_trial_files(tmp_path: Path) -> None:
    with pytest.raises(BadSpecError, match="no trial file"):
        read_trials(tmp_path / "none.xml")
    with pytest.raises(BadSpecError, match="has no <trial>"):
        read_file(tmp_path, b"<evaluation/>")
    with pytest.raises(BadSpecError, match="is not a text file"):
        read_file(tmp_path, b"\xff\xfe\x00")
    (tmp_path / "config.xml").write_text(CONFIG)
    with pytest.raises(BadSpecError, match="no level file"):
        read_trials(tmp_path / "config.xml")


def test_the_path_of_a_level_says_whether_it_is_novel() -> None:
    assert not is_novel("Levels/novelty_level_0/type1/1_1_1_0.xml")
    assert is_novel("Levels/Novelty_Level_3/type7/x.xml")
    assert is_novel("novelty_level_25/x.xml")
    assert not is_novel("own-00001")
