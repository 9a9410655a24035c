"""Novelties on their own, and those of any gymnasium environment; those of the domains are in tests/domains."""

from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest

from domains import toy_envs
from nappingrl.errors import BadSpecError, NappingError
from nappingrl.novelties import apply_novelty
from nappingrl.novelties.description import read_description
from nappingrl.novelties.novelty import Novelty
from nappingrl.novelties.subject import make_env, read_env
from nappingrl.novelties.verify import verify

DEFAULTS = {"a": 1.0, "b": -2.0, "c": 5.0}
BOTH = Novelty("both", {"a": (10.0, 20.0), "b": (-1.0, 1.0)})


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_draws_named_parameters_and_keeps_the_others() -> None:
    draws = [BOTH.sample(rng(seed), DEFAULTS) for seed in range(100)]
    assert all(list(draw) == list(DEFAULTS) for draw in draws)
    assert {draw["c"] for draw in draws} == {5.0}
    for name, (low, high) in BOTH.ranges.items():
        values = [draw[name] for draw in draws]
        assert low <= min(values) < low + (high - low) / 10
        assert high - (high - low) / 10 < max(values) <= high
    places = np.array([((draw["a"] - 10) / 10, (draw["b"] + 1) / 2) for draw in draws])
    assert abs(np.corrcoef(places.T)[0, 1]) < 0.5, "drawn apart"


def test_the_generator_decides_everything() -> None:
    assert BOTH.sample(rng(3), DEFAULTS) == BOTH.sample(rng(3), DEFAULTS)
    assert BOTH.sample(rng(3), DEFAULTS) != BOTH.sample(rng(4), DEFAULTS)


def test_defaults_are_left_alone() -> None:
    defaults = dict(DEFAULTS)
    BOTH.sample(rng(), defaults)
    assert defaults == DEFAULTS


@pytest.mark.parametrize("strength", [0.1, 0.5, 1.0])
def test_strength_is_the_share_of_the_way(strength: float) -> None:
    full, part = BOTH.sample(rng(), DEFAULTS), BOTH.sample(rng(), DEFAULTS, strength)
    for name, default in DEFAULTS.items():
        assert part[name] == pytest.approx(default + strength * (full[name] - default))


@pytest.mark.parametrize("strength", [0.0, -0.5, 1.001, float("nan"), float("inf")])
def test_strength_outside_is_refused(strength: float) -> None:
    with pytest.raises(BadSpecError, match=r"outside \(0, 1\]"):
        BOTH.sample(rng(), DEFAULTS, strength)


def test_whole_numbers_are_drawn_from_both_ends() -> None:
    late = Novelty("late", {"a": (1.0, 3.0)}, whole=frozenset({"a"}))
    draws = [late.sample(rng(seed), DEFAULTS)["a"] for seed in range(60)]
    assert set(draws) == {1.0, 2.0, 3.0}


def test_half_a_whole_number_is_refused() -> None:
    late = Novelty("late", {"a": (1.0, 3.0)}, whole=frozenset({"a"}))
    late.check_strength(1.0)
    with pytest.raises(BadSpecError, match=r"strength 0\.5 has no meaning for a, a whole number"):
        late.sample(rng(), DEFAULTS, 0.5)


# ---- wrappers around any environment ------------------------------------------------------------------------------


def play(novelty: str, actions: list[float], env_id: str = "toys/Echo-v0", seed: int = 0) -> list[list[float]]:
    """What is seen and paid: (step, 10 * executed action, size, area, reward) without the offset of the episode."""
    env = gymnasium.make(env_id, disable_env_checker=True)
    env = apply_novelty(env, novelty, verify=False) if novelty else env
    first, _ = env.reset(seed=seed)
    seen = [[*first.tolist(), 0.0]]
    for action in actions:
        observation, reward, *_ = env.step(np.array([action], np.float32) if "Box" in env_id else int(action))
        seen.append([*observation.tolist(), float(reward)])
    return seen


def executed(novelty: str, actions: list[float], env_id: str = "toys/Echo-v0", seed: int = 0) -> list[float]:
    return [row[-1] for row in play(novelty, actions, env_id, seed)[1:]]


def test_the_toy_shows_what_it_says() -> None:
    rows = play("", [2, 0])
    assert [row[1:] for row in rows] == [[0, 3, 9, 0], [20, 3, 9, 2], [0, 3, 9, 0]]


def test_actions_are_remapped() -> None:
    assert executed("action-remap=2,0,1", [0, 1, 2]) == [2, 0, 1]
    assert executed("action-remap[0]=1", [0, 1, 2]) == [1, 1, 2]


def test_actions_come_late() -> None:
    assert executed("action-delay=2", [2, 1, 0, 0, 1]) == [2, 2, 2, 1, 0]


def test_action_terms_act_in_their_order() -> None:
    assert executed("action-remap=1,2,0; action-delay=1", [0, 1, 2]) == [1, 1, 2]
    assert executed("action-scale=0.5; action-shift=1", [2.0], "toys/EchoBox-v0") == [2.0]
    assert executed("action-shift=1; action-scale=0.5", [2.0], "toys/EchoBox-v0") == [1.0], "cut to 2, then halved"
    assert executed("action-scale[0]=-1", [2.0], "toys/EchoBox-v0") == [-2.0]


def test_random_actions_come_as_often_as_asked_and_by_the_seed() -> None:
    first = [executed("action-noise=0.5", [1] * 19, seed=seed) for seed in range(100)]
    assert np.mean(np.array(first) == 1) == pytest.approx(0.5 + 0.5 / 3, abs=0.05)
    assert first == [executed("action-noise=0.5", [1] * 19, seed=seed) for seed in range(100)]


def test_continuous_actions_are_scaled_shifted_and_noisy_within_their_range() -> None:
    assert executed("action-scale=-1", [1.5, -0.5], "toys/EchoBox-v0") == [-1.5, 0.5]
    assert executed("action-shift=1", [0.5, 1.5], "toys/EchoBox-v0") == [1.5, 2.0]
    noisy = [x for s in range(50) for x in executed("action-noise=0.1", [0.0] * 15, "toys/EchoBox-v0", s)]
    assert np.std(noisy) == pytest.approx(0.1 * 4, rel=0.1)
    assert max(map(abs, executed("action-noise=1", [0.0] * 19, "toys/EchoBox-v0"))) <= 2.0


@pytest.mark.parametrize(
    ("novelty", "expected"),
    [
        ("obs-shift=0.5", [20.5, 3.5, 9.5]),
        ("obs-shift[2]=0.5", [20, 3.5, 9]),
        ("obs-scale[1]=-2", [-40, 3, 9]),
        ("obs-quantise[2]=2", [20, 4, 9]),
        ("obs-drop=1,3", [0, 3, 0]),
        ("obs-remap=0,2,1,3", [3, 20, 9]),
        ("obs-remap[1]=2", [3, 3, 9]),
        ("obs-shift=0,0,1,0", [20, 4, 9]),
        ("obs-shift=1; obs-shift[2]=1", [21, 5, 10]),
        ("obs-shift=1; obs-scale=2", [42, 8, 20]),
        ("obs-scale=2; obs-shift=1", [41, 7, 19]),
        ("size=5", [20, 5, 9]),
        ("size=5; area=follows", [20, 5, 25]),
        ("size=5; area=1", [20, 5, 1]),
        ("gains[1]=1", [2, 3, 9]),
        ("gains=0,2", [4, 3, 9]),
        ("is_open=0", [0, 0, 0]),
    ],
)
def test_what_is_seen(novelty: str, expected: list[float]) -> None:
    for row in (1, 2):
        assert play(novelty, [2, 2])[row][1:4] == expected


def test_sight_is_noisy_by_the_seed_and_the_world_stays() -> None:
    plain = np.array(play("", [1] * 19))
    noise = np.array([play("obs-noise=0.5", [1] * 19, seed=seed) for seed in range(20)])
    assert np.std(noise[:, :, 1:4] - plain[:, 1:4]) == pytest.approx(0.5, rel=0.1)
    assert (noise[:, :, 4] == plain[:, 4]).all()
    assert (
        play("obs-noise=0.5", [1], seed=3) == play("obs-noise=0.5", [1], seed=3) != play("obs-noise=0.5", [1], seed=4)
    )
    one = np.array(play("obs-noise[1]=0.5", [1] * 3))
    assert (one[:, 2:4] == plain[:4, 2:4]).all()
    assert (one[:, 1] != plain[:4, 1]).all()


def test_rewards_change_and_nothing_else() -> None:
    assert executed("reward-scale=3; reward-shift=-1", [2, 1]) == [5, 2]
    assert [row[:4] for row in play("reward-shift=-1", [2, 1])] == [row[:4] for row in play("", [2, 1])]


def test_a_range_is_drawn_by_the_seed() -> None:
    def size(seed: int) -> float:
        env = gymnasium.make("toys/Echo-v0")
        bare: Any = apply_novelty(env, "size=4..8", seed=seed, verify=False).unwrapped
        return float(bare.size)

    drawn = [size(seed) for seed in range(8)]
    assert drawn == [size(seed) for seed in range(8)]
    assert len(set(drawn)) == 8
    assert 4 <= min(drawn) < max(drawn) <= 8


def test_the_class_and_other_environments_stay_as_they_were() -> None:
    play("size=5; gains[0]=4; area=follows", [1])
    assert play("", [2])[1][1:] == [20, 3, 9, 2]


# ---- descriptions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("novelty", "text"),
    [
        ("sizee=5", "toys/Echo-v0 has no constant 'sizee' .* Did you mean 'size'"),
        ("SIZE=5", "Did you mean 'size'"),
        ("action-remp=2,1,0", "Did you mean 'action-remap'"),
        ("t=5", "no constant 't'"),
        ("size", "'size' in novelty 'size' is not of the form NAME=VALUE"),
        ("", "no NAME=VALUE is given"),
        ("size=big", "size=big is neither a number nor a range"),
        ("size=4..2", "first end of a range must not be greater"),
        ("size=nan", "is not finite"),
        ("size=1e400", "is not finite"),
        ("size=4, unused=5", "separate terms by ';', as in gravity=20; action-delay=1"),
        ("size=4 unused=5", "separate terms by ';'"),
        ("sizes=4", r"its numbers: size, gains\[0\] to \[1\], .*Did you mean 'size'"),
        ("gains=3", "gives 1 of 2 numbers; give one for each, as in 1,10"),
        ("size=4; size=5", "size is given twice"),
        ("gains=1", "gives 1 of 2 numbers"),
        ("action-remap=0,1", "gives 2 of 3 actions"),
        ("action-remap=0,1,3", "outside its range, 0 to 2"),
        ("action-remap=0,1,1.5", "not a whole number"),
        ("action-delay=1.5", "not a whole number"),
        ("action-noise=2", "outside its range, 0 to 1"),
        ("is_open=0.5", "not a whole number"),
        ("obs-shift[4]=1", r"allowed: obs-shift\[0\] to obs-shift\[3\]"),
        ("obs-drop=first", "does not name entries"),
        ("reward-scale[0]=1", "has no entries"),
        ("obs-remap=0,1,2", "gives 3 of 4 observations"),
        ("obs-remap=0,1,2,4", "outside its range, 0 to 3"),
        ("obs-shift=1,2", "gives 2 of 4 numbers"),
        ("action-noise[0]=0.5", "action-noise has no entries"),
        (
            "action-scale=2",
            "action-scale needs continuous actions, but those of toys/Echo-v0 are discrete; use action-remap",
        ),
        ("other-env=toys/Drifting-v0", "other-env is for trials"),
        ("size=5; other-env=toys/Drifting-v0", "attributes cannot be changed"),
    ],
)
def test_bad_descriptions_are_refused_in_one_line(novelty: str, text: str) -> None:
    with pytest.raises(NappingError, match=text) as caught:
        apply_novelty(gymnasium.make("toys/Echo-v0"), novelty)
    assert "\n" not in str(caught.value)


def test_remapping_continuous_actions_is_refused() -> None:
    with pytest.raises(BadSpecError, match=r"action-remap needs discrete actions, .* use action-scale or action-shift"):
        apply_novelty(gymnasium.make("toys/EchoBox-v0"), "action-remap=1,0")


def test_an_environment_without_a_spec_is_refused() -> None:
    with pytest.raises(BadSpecError, match=r"make it with gymnasium\.make"):
        apply_novelty(toy_envs.Echo(), "size=5")


def test_words() -> None:
    subject = read_env(gymnasium.spec("toys/Echo-v0"))
    words = read_description("size=4..8; area=follows; action-remap=2,1,0;obs-drop=1; action-delay=2", subject)
    assert words.words(subject) == (
        "size is 4 to 8 instead of 3; action 0 does what action 2 did; action 2 does what action 0 did; "
        "observation 1 reads 0; actions take effect 2 steps late; area follows"
    )
    assert words.text == "size=4..8;area=follows;action-remap=2,1,0;obs-drop=1;action-delay=2"


# ---- verification -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env_id", "novelty", "text"),
    [
        (
            "CartPole-v1",
            "masscart=5",
            r"leaves stale .*total_mass \(still 1\.1\); add total_mass=5\.1, or total_mass=f",
        ),
        ("CartPole-v1", "masspole=1", r"add total_mass=2;polemass_length=0\.5, or total_mass=follows;pole"),
        ("CartPole-v1", "masspole=0.05..1", "made: .*; add total_mass=follows;polemass_length=follows$"),
        ("CartPole-v1", "masspole=1;total_mass=2", r"polemass_length \(still 0\.05\)"),
        ("CartPole-v1", "gravity=9.8", r"'gravity=9\.8' changes nothing in CartPole-v1: that is what it is already"),
        ("CartPole-v1", "action-remap=0,1", "'action-remap=0,1' changes nothing .* already"),
        ("CartPole-v1", "screen_width=800", "no constant 'screen_width'"),
        ("Acrobot-v1", "LINK_LENGTH_2=2", "changes nothing in Acrobot-v1: its episodes never look at LINK_LENGTH_2"),
        ("Acrobot-v1", "LINK_LENGTH_2=2;LINK_LENGTH_1=2", "'LINK_LENGTH_2=2' changes nothing"),
        ("Pendulum-v1", "max_torque=4", "how far actions reach only when the environment is made"),
        ("toys/Echo-v0", "size=5", r"area \(still 9\); add area=25"),
        ("toys/Echo-v0", "unused=5", "never look at unused"),
        ("toys/Echo-v0", "obs-drop=0;obs-shift[0]=1;obs-drop[1]=0", r"'obs-drop\[1\]=0' changes nothing"),
        ("toys/Echo-v0", "obs-quantise[2]=1", "episodes with and without it are the same"),
        ("toys/Restless-v0", "gains[1]=5", "other episodes for the same seed"),
        ("toys/Echo-v0", "gains[1]=5;area=follows", "area=follows .* area does not follow from its numbers"),
        (
            "toys/Windy-v0",
            "wind_power=5",
            "changes nothing in toys/Windy-v0: wind_power has no effect unless has_wind=1",
        ),
        ("toys/Windy-v0", "wind_power=3", "that is what it is already"),
        ("nappingrl/CartPole-v0", "gravty=20", "Did you mean 'gravity'"),
        ("nappingrl/CartPole-v0", "gravity=9.8", "that is what it is already"),
        ("nappingrl/CartPole-v0", "gravity=20;force=follows", "force does not follow"),
        ("nappingrl/CartPole-v0", "length=-1", "length=-1.* must be greater than 0"),
    ],
)
def test_what_changes_nothing_or_half_is_refused(env_id: str, novelty: str, text: str) -> None:
    with pytest.raises(NappingError, match=text) as caught:
        apply_novelty(gymnasium.make(env_id), novelty)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("env_id", "novelty"),
    [
        ("CartPole-v1", "force_mag=20"),  # masscart = force_mag * masspole, by accident
        ("CartPole-v1", "masspole=1;total_mass=2;polemass_length=0.5"),
        ("CartPole-v1", "masscart=0.5..5;total_mass=follows"),
        ("CartPole-v1", "x_threshold=4"),
        ("CartPole-v1", "action-remap=1,0"),
        ("Acrobot-v1", "LINK_LENGTH_1=2.0"),
        ("Acrobot-v1", "AVAIL_TORQUE=-2,0,2"),
        ("MountainCarContinuous-v0", "power=0.003; action-scale=-1"),
        ("toys/Echo-v0", "size=5; area=follows"),
        ("toys/EchoBox-v0", "obs-noise=0.1; action-noise=0.1"),
        ("toys/Windy-v0", "has_wind=1;wind_power=5"),
        ("toys/Windy-v0", "has_wind=1"),
        ("nappingrl/CartPole-v0", "gravity=20;force=7"),
        ("nappingrl/CartPole-v0", "action-remap=1,0;obs-shift[2]=0.1"),
    ],
)
def test_what_changes_the_world_is_taken(env_id: str, novelty: str) -> None:
    apply_novelty(gymnasium.make(env_id), novelty)


def test_what_follows_is_what_the_constructor_computes() -> None:
    bare: Any = apply_novelty(gymnasium.make("CartPole-v1"), "masspole=0.7;total_mass=follows;polemass_length=follows")
    bare = bare.unwrapped
    assert (bare.masspole, bare.total_mass, bare.polemass_length) == (0.7, 0.7 + 1.0, 0.7 * 0.5)
    other: Any = gymnasium.make("CartPole-v1").unwrapped
    assert (other.masspole, other.total_mass) == (0.1, 1.1)


def test_an_effect_that_random_play_does_not_reach_is_doubted() -> None:
    spec = gymnasium.spec("CartPole-v1")
    make, subject = partial(make_env, spec), read_env(spec)
    doubts = verify(make, read_description("x_threshold=4", subject), subject)
    assert doubts == ["x_threshold=4 made no difference in 24 episodes of random play in CartPole-v1"]
    assert verify(make, read_description("force_mag=20", subject), subject) == []


@pytest.mark.parametrize(
    ("env_id", "novelty", "doubts"),
    [
        ("toys/Windy-v0", "has_wind=1;wind_power=3", ["wind_power=3 is what it is already"]),
        ("toys/Windy-v0", "has_wind=1;wind_power=5", []),
        ("toys/Echo-v0", "obs-shift[0]=1;obs-drop=0", ["obs-shift[0]=1 makes no difference beside the other terms"]),
    ],
)
def test_terms_are_judged_together(env_id: str, novelty: str, doubts: list[str]) -> None:
    spec = gymnasium.spec(env_id)
    subject = read_env(spec)
    assert verify(partial(make_env, spec), read_description(novelty, subject), subject) == doubts


def test_ragged_attributes_are_no_constants() -> None:
    constants = read_env(gymnasium.spec("toys/Windy-v0")).constants
    assert "wind_power" in constants
    assert not [name for name in constants if name.startswith("terrain")]


def test_a_domain_of_this_package_has_its_parameters() -> None:
    env: Any = apply_novelty(gymnasium.make("nappingrl/CartPole-v0"), "gravity=20; force=5..7", seed=1)
    params = env.unwrapped.params
    assert params["gravity"] == 20.0
    assert 5 <= params["force"] <= 7
    assert params["length"] == 0.5
