"""Numbers that go on changing after the novelty."""

import math
from typing import Any

import gymnasium
import numpy as np
import polars as pl
import pytest

import nappingrl
from nappingrl.errors import BadSpecError
from nappingrl.novelties.ns_gym import as_updates, description_of
from nappingrl.novelties.schedule import STEPS, Schedule, read_schedule


def values(text: str, times: int, before: float = 9.8) -> list[float]:
    schedule = read_schedule(text.replace(" ", ""))
    assert schedule is not None
    return [schedule.value(time, before, seed=3) for time in range(times)]


def test_values_over_time() -> None:
    assert values("10->20 over 5 episodes", 7) == [10, 12, 14, 16, 18, 20, 20]
    assert values("20 at 2", 4) == [9.8, 9.8, 20, 20]
    assert values("5 at 3, 20 at 1", 5) == [9.8, 20, 20, 5, 5]
    assert values("sine(9, 2, 4)", 5) == pytest.approx([9, 11, 9, 7, 9])
    walk = values("walk(9, 0.5)", 400)
    assert walk[0] == 9
    assert np.std(np.diff(walk)) == pytest.approx(0.5, rel=0.15)
    assert walk == values("walk(9, 0.5)", 400), "the same for the same seed"


@pytest.mark.parametrize(
    "text",
    ["9.8->20 over 20 episodes", "20 at 40", "20 at 10, 5 at 30 steps", "sine(9.8, 5, 20) steps", "walk(1, 0.5)"],
)
def test_a_schedule_is_written_as_it_is_read(text: str) -> None:
    schedule = read_schedule(text.replace(" ", ""))
    assert str(schedule) == text
    assert read_schedule(str(schedule).replace(" ", "")) == schedule


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("gravity=9->20 over 0 episodes", "time outside"),
        ("gravity=9->20", "is no schedule"),
        ("gravity=sine(1)", "is no schedule"),
        ("gravity=walk(9, 0)", "does not move"),
        ("gravity=9 at 99999999", "time outside"),
        ("gravity=9->1e999 over 3 episodes", "not finite"),
        ("masscart=1->-1 over 3 episodes", "masscart"),
        ("action-delay=0->3 over 5 episodes", "whole number"),
        ("action-remap=1 at 4", "is for one number"),
    ],
)
def test_what_makes_no_sense_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(BadSpecError, match=complaint):
        nappingrl.run("cartpole", "ppo", "frozen", novelty=text, trials=1, protocol="0+1")


def played(novelty: str, protocol: str = "2+4", **options: Any) -> pl.DataFrame:
    return nappingrl.run("cartpole", "ppo", "frozen", novelty=novelty, trials=2, protocol=protocol, **options).rows


def test_trials_follow_a_schedule() -> None:
    """Nothing changes before the novelty; the rows show the value of each episode."""
    rows = played("gravity=9.8->29.8 over 2 episodes")
    for trial in rows.partition_by("trial"):
        assert trial["param_gravity"].to_list() == pytest.approx([9.8, 9.8, 9.8, 19.8, 29.8, 29.8])
    rows = played("gravity=30 at 1; force=4", protocol="1+2")
    assert rows["param_gravity"].to_list() == [9.8, 9.8, 30.0] * 2
    assert rows["param_force"].to_list() == [10.0, 4.0, 4.0] * 2


def test_strength_pulls_a_schedule_towards_the_usual_value() -> None:
    rows = played("gravity=9.8->29.8 over 2 episodes", strength=0.5)
    assert rows["param_gravity"].to_list()[:6] == pytest.approx([9.8, 9.8, 9.8, 14.8, 19.8, 19.8])


def test_walks_differ_between_trials_and_not_between_methods() -> None:
    rows = played("gravity=walk(9.8, 3)", protocol="1+4")
    one, other = (trial["param_gravity"].to_list() for trial in rows.partition_by("trial"))
    assert one[:2] == other[:2] == [9.8, 9.8]
    assert one[2:] != other[2:]
    again = nappingrl.run(
        "cartpole", "ppo", "napping", novelty="gravity=walk(9.8, 3)", trials=2, protocol="1+4", detector="given"
    ).rows
    assert again["param_gravity"].to_list() == rows["param_gravity"].to_list()


def test_a_schedule_of_steps_begins_anew_with_every_episode() -> None:
    rows = played("force=10->-10 over 4 steps", protocol="1+3")
    novel = rows.filter(pl.col("phase") == "novel")
    assert novel["length"].max() < 60
    assert set(novel["param_force"]) == {-10.0}, "at the end of each episode"


def test_transforms_can_be_scheduled() -> None:
    rows = played("obs-shift[2]=0->0.4 over 2 episodes", protocol="1+3")
    assert rows["param_obs-shift[2]"].to_list()[:4] == pytest.approx([0, 0, 0.2, 0.4])


def test_any_environment() -> None:
    agent = nappingrl.load_agent("cartpole-ppo")
    novelty = "gravity=9.8->49.8 over 2 episodes"
    rows = nappingrl.run("CartPole-v1", agent, "frozen", novelty=novelty, trials=1, protocol="1+3").rows
    assert rows["param_gravity"].to_list() == pytest.approx([9.8, 9.8, 29.8, 49.8])


def test_around_an_environment() -> None:
    env = nappingrl.apply_novelty(gymnasium.make("CartPole-v1"), "gravity=9.8->19.8 over 2 episodes")
    found = []
    for _ in range(4):
        env.reset(seed=0)
        found.append(env.unwrapped.gravity)
    assert found == pytest.approx([9.8, 14.8, 19.8, 19.8])
    with pytest.raises(BadSpecError, match="obs-noise is for trials"):
        nappingrl.apply_novelty(gymnasium.make("CartPole-v1"), "obs-noise=0->1 over 3 episodes")


class UpdateFn:
    """As in ns_gym.base: fires when its scheduler says so."""

    def __init__(self, scheduler: Any) -> None:
        self.scheduler = scheduler

    def __call__(self, param: float, t: int) -> tuple[float, bool]:
        fires = bool(self.scheduler(t))
        return (self.update(param, t), True) if fires else (param, False)

    def update(self, param: float, t: int) -> float:
        raise NotImplementedError


class Increment(UpdateFn):
    """As ns_gym.update_functions.IncrementUpdate."""

    def update(self, param: float, t: int) -> float:
        return param + 2.0


def test_settings_of_ns_gym_as_a_description() -> None:
    text = description_of({"gravity": Increment(lambda t: t in (1, 3))}, {"gravity": 9.8}, steps=6)
    assert text == "gravity=11.8 at 1, 13.8 at 3 steps"
    schedule = read_schedule(text.partition("=")[2].replace(" ", ""))
    assert schedule == Schedule("jumps", (11.8, 1, 13.8, 3), STEPS)
    with pytest.raises(BadSpecError, match="changes nothing"):
        description_of({"gravity": Increment(lambda t: False)}, {"gravity": 9.8}, steps=6)


def test_a_description_as_settings_of_ns_gym() -> None:
    novelty = "gravity=9.8->19.8 over 10 steps; length=1"
    updates = as_updates("CartPole-v1", novelty, UpdateFn)
    assert list(updates) == ["gravity", "length"]
    gravity, length = 9.8, 0.5
    for t in range(12):
        (gravity, fired), (length, _) = updates["gravity"](gravity, t), updates["length"](length, t)
        assert fired
        assert gravity == pytest.approx(9.8 + min(t, 10))
        assert length == 1.0
    assert math.isclose(gravity, 19.8)
    with pytest.raises(BadSpecError, match="within an episode"):
        as_updates("CartPole-v1", "gravity=9.8->19.8 over 10 episodes", UpdateFn)
    with pytest.raises(BadSpecError, match="obs-noise"):
        as_updates("CartPole-v1", "obs-noise=0.1", UpdateFn)
