"""HYDRA: the search for repairs, the models of CartPole and of shots, and both agents in their domains."""

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nappingrl.agents import load
from nappingrl.domains.angrybirds.actions import split
from nappingrl.domains.angrybirds.domain import AngryBirds
from nappingrl.domains.angrybirds.layout import ObservedLevel, Target, decode
from nappingrl.domains.angrybirds.levels.templates import TEMPLATES
from nappingrl.domains.angrybirds.physics.scene import Box
from nappingrl.domains.cartpole import CartPole
from nappingrl.scripted import hydra_angrybirds as hydra_birds
from nappingrl.scripted import hydra_angrybirds_model as hydra_birds_model
from nappingrl.scripted import hydra_cartpole
from nappingrl.scripted.hydra import Beliefs, Constant, discounted, search

ROW = np.array([0])


# The search ----------------------------------------------------------------------------------------------------------


def test_later_errors_count_less_and_small_ones_not_at_all():
    assert discounted(np.array([0.005, 0.02, 1.0])) == pytest.approx(0.81)
    assert discounted(np.array([0.01, 0.002])) == 0.0
    assert discounted(np.concatenate([np.zeros(100), [1e9]])) == 0.0


@given(st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.integers(-3, 3)))
@settings(max_examples=50, deadline=None)
def test_a_smooth_inconsistency_is_followed_down_to_its_least(target):
    found = search(lambda m: 10.0 * sum(abs(a - b) for a, b in zip(m, target, strict=True)), 3, 0.01, 30)
    assert found.multiples == target
    assert found.inconsistency == 0
    assert found.is_better == any(target)


def test_a_search_on_a_plateau_stops_at_its_bound_and_changes_nothing():
    tried = []
    found = search(lambda m: tried.append(m) or 50.0, 3, 50.0, 30)
    assert (found.multiples, found.n_expanded, found.is_better) == ((0, 0, 0), 30, False)
    assert len(tried) == len(set(tried))


def test_beliefs_add_up_and_stay_above_their_bounds():
    beliefs = Beliefs([Constant("mass", 1.0, 1.0, above=0.0), Constant("force", 10.0, 2.0)])
    beliefs.repair(lambda values: abs(values[1] - 14.0) + abs(values[0] - 0.0), 0.01, 100)
    assert beliefs.changes() == {"force": 4.0}
    beliefs.repair(lambda values: abs(values[1] - 12.0), 0.01, 100)
    assert beliefs.changes() == {"force": 2.0}
    assert beliefs.values().tolist() == [1.0, 12.0]


def test_a_child_that_is_impossible_is_never_expanded():
    expanded = []

    def inconsistency(m):
        expanded.append(m)
        return inf if m[0] else 5.0

    search(inconsistency, 1, 0.01, 100)
    assert expanded == [(0,), (1,), (-1,)]


# Cart and pole -------------------------------------------------------------------------------------------------------


def cartpole(**changes):
    world = CartPole(1)
    world.apply(ROW, changes)
    return world


def roll(world, actions, start=(0.5, 0.4, 0.6, 0.5)):
    """States from a reset on, up to the end of the episode."""
    world.reset(ROW, np.array([start]))
    states = [world.observe(ROW)[0]]
    for action in actions:
        _, terminated = world.step(ROW, np.array([action]))
        states.append(world.observe(ROW)[0])
        if terminated[0]:
            break
    return np.array(states, np.float64)


def play_cartpole(policy, world, n_episodes):
    rng, lengths = np.random.default_rng(1), []
    for _ in range(n_episodes):
        world.reset(ROW, rng.random((1, 4)))
        seen, ended, length = world.observe(ROW)[0], False, 0
        while not ended:
            action = policy.act(seen)
            _, terminated = world.step(ROW, np.array([action]))
            following, length = world.observe(ROW)[0], length + 1
            ended = bool(terminated[0]) or length == CartPole.spec.horizon
            policy.learn(seen, action, following, 1.0, ended, True)
            seen = following
        lengths.append(length)
    return lengths


@pytest.mark.parametrize("changes", [{}, {"length": 1.0}, {"gravity": 19.8, "force": 7.0}])
def test_the_model_with_the_true_constants_is_the_world(changes):
    actions = np.random.default_rng(0).integers(2, size=60)
    observed = roll(cartpole(**changes), actions)
    names = [constant.name for constant in hydra_cartpole.CONSTANTS]
    constants = Beliefs(hydra_cartpole.CONSTANTS).values()
    constants[[names.index(name) for name in changes]] = list(changes.values())
    simulated = hydra_cartpole.simulate(observed[0], constants, actions)
    assert simulated.shape == observed.shape
    np.testing.assert_allclose(simulated, observed, atol=1e-4)
    assert hydra_cartpole.inconsistency(constants, observed, actions[: len(observed) - 1]) == 0


def test_a_model_that_fails_too_soon_is_inconsistent_by_the_steps_that_are_missing():
    constants = Beliefs(hydra_cartpole.CONSTANTS).values()
    observed = np.zeros((6, 4))
    observed[0] = [0, 0, 0.2, 3.0]
    assert hydra_cartpole.inconsistency(constants, observed, np.zeros(5, np.int64)) == 4


@pytest.mark.parametrize(
    ("name", "value", "change"), [("masscart", 3.0, 2.0), ("length", 0.8, 0.3), ("force", 7.0, -3)]
)
def test_repair_finds_the_one_constant_that_changed(name, value, change):
    actions = np.random.default_rng(3).integers(2, size=25)
    observed = roll(cartpole(**{name: value}), actions)
    taken = actions[: len(observed) - 1]
    beliefs = Beliefs(hydra_cartpole.CONSTANTS)
    assert hydra_cartpole.inconsistency(beliefs.values(), observed, taken) > 0.01
    found = beliefs.repair(lambda c: hydra_cartpole.inconsistency(c, observed, taken), 0.01, 100)
    assert found.inconsistency < 0.01
    assert beliefs.changes() == {name: pytest.approx(change)}


def test_it_balances_in_the_world_it_knows_and_believes_nothing_else():
    policy = hydra_cartpole.HydraCartPolePolicy(np.random.default_rng(0))
    assert play_cartpole(policy, cartpole(), 5) == [200] * 5
    assert policy.beliefs.changes() == {}


def test_it_fails_once_with_a_heavy_cart_and_then_knows_its_mass():
    policy = hydra_cartpole.HydraCartPolePolicy(np.random.default_rng(0))
    first, *others = play_cartpole(policy, cartpole(masscart=3.0), 4)
    assert first < 195
    assert others == [200] * 3
    assert policy.beliefs.changes() == {"masscart": 2.0}


def test_no_plan_where_nothing_helps():
    constants = Beliefs(hydra_cartpole.CONSTANTS).values()
    leaning = np.array([0.0, 0.0, 0.2, 3.0])
    assert len(hydra_cartpole.plan(leaning, constants, 200, 1000)) == 0
    assert len(hydra_cartpole.plan(np.zeros(4), constants, 7, 1000)) == 7


# Shots ---------------------------------------------------------------------------------------------------------------

CONSTANTS = Beliefs(hydra_birds_model.CONSTANTS).values()


def angry(template, novelty=None):
    world = AngryBirds(1)
    change = {novelty.replace("-", "_"): 1.0} if novelty else {}
    world.apply(ROW, {"template": 1.0 + list(TEMPLATES).index(template)} | change)
    return world


def play_birds(policy, world, n_levels, detected=False):
    """Per level: whether it was passed, and (observation, action) of each shot."""
    rng, levels = np.random.default_rng(2), []
    for _ in range(n_levels):
        world.reset(ROW, rng.random((1, 2)))
        seen, ended, shots = world.observe(ROW)[0].copy(), False, []
        while not ended:
            action = policy.act(seen)
            rewards, terminated = world.step(ROW, np.array([action]))
            following, ended = world.observe(ROW)[0].copy(), bool(terminated[0])
            policy.learn(seen, action, following, float(rewards[0]), ended, detected)
            shots.append((seen, action, following))
            seen = following
        levels.append((rewards[0] > 0, shots))
    return levels


def hydra():
    return hydra_birds.HydraAngryBirdsPolicy(np.random.default_rng(0))


def make_view(*targets):
    things = tuple(Target(i, kind, Box(*box)) for i, (kind, box) in enumerate(targets))
    return ObservedLevel(things, Box(92, 248, 104, 286), 1, "red")


@pytest.mark.parametrize("trajectory", [0, 1])
def test_the_flight_of_the_model_is_that_of_the_world(trajectory):
    world = angry("green-egg")
    world.reset(ROW, np.array([[0.0, 0.3]]))
    setting = hydra_birds_model.Setting(decode(world.observe(ROW)[0]))
    option = next(o for o in setting.options() if o.target.kind == "pig" and o.trajectory == trajectory)
    path = setting.shoot(setting.launch(option), CONSTANTS).path
    world.step(ROW, np.array([option.action]))
    camera = world.world(0).level.camera
    for x, y in [camera.to_pixels(*dot) for dot in world.world(0).dots[:10]]:
        assert y == pytest.approx(np.interp(x, path[:, 0], path[:, 1]), abs=2)


def test_what_the_bird_meets_in_the_model():
    far_pig = "pig", (300, 250, 314, 264)
    free, walled, iced = make_view(far_pig), make_view(far_pig, ("platform", (250, 0, 260, 300))), make_view(
        far_pig, ("ice", (250, 0, 260, 300))
    )  # fmt: skip
    destroyed = []
    for view in (free, walled, iced):
        setting = hydra_birds_model.Setting(view)
        option = next(o for o in setting.options() if (o.target.slot, o.trajectory, o.offset) == (0, 0, 0))
        destroyed.append(setting.shoot(setting.launch(option), CONSTANTS).destroyed.tolist())
    assert destroyed == [[True], [False, False], [False, True]]  # behind the ice the slowed bird falls short


def test_inconsistency_of_a_shot_by_hand():
    before = make_view(("pig", (300, 250, 314, 264)), ("ice", (350, 250, 360, 260)), ("wood", (400, 250, 410, 260)))
    setting = hydra_birds_model.Setting(before)
    path = np.array([[100.0, 250.0], [290.0, 250.0]])
    killed = hydra_birds_model.Outcome(np.array([True, False, False]), path)
    missed = hydra_birds_model.Outcome(np.array([False, False, False]), path)
    broken = hydra_birds_model.Outcome(np.array([False, True, True]), path)
    no_pig = ObservedLevel(before.targets[1:], before.sling, 0, "")
    wood_rolled = make_view(*[(t.kind, (t.box.left + 9 * (t.kind == "wood"), *_rest(t))) for t in before.targets])
    assert hydra_birds.inconsistency(setting, missed, before) == 0
    assert hydra_birds.inconsistency(setting, killed, no_pig) == 10  # pixels from the path's end to the pig
    assert hydra_birds.inconsistency(setting, killed, before) == 50
    assert hydra_birds.inconsistency(setting, missed, no_pig) == 50
    assert hydra_birds.inconsistency(setting, broken, before) == 50
    assert hydra_birds.inconsistency(setting, missed, wood_rolled) == 110  # the bird must have been there


def _rest(target):
    moved = 9 * (target.kind == "wood")
    return target.box.top, target.box.right + moved, target.box.bottom


@pytest.mark.parametrize("template", list(TEMPLATES))
def test_it_passes_the_levels_it_knows_and_foresees_them(template):
    policy = hydra()
    levels = play_birds(policy, angry(template), 4)
    assert sum(is_passed for is_passed, _ in levels) >= 2
    assert not policy.believes_in_novelty
    assert policy.beliefs.changes() == {}


def test_three_novel_levels_are_a_novelty_and_repairs_are_few():
    policy, world = hydra(), angry("bird-likes-pig", "bird-likes-pig")
    believed = []
    for _ in range(9):
        play_birds(policy, world, 1)
        believed.append((policy.believes_in_novelty, policy.n_repairs))
    assert believed[:3] == [(False, 0), (False, 0), (True, 1)]
    assert believed[-1] == (True, 5)


def test_a_novelty_that_is_told_is_believed_at_once():
    policy = hydra()
    play_birds(policy, angry("bird-likes-pig", "bird-likes-pig"), 1, detected=True)
    assert (policy.believes_in_novelty, policy.n_repairs) == (True, 1)


def test_a_pig_too_tough_for_birds_is_blown_up():
    policy = hydra()
    policy.beliefs.multiples = (0, 4, 0)
    levels = play_birds(policy, angry("bird-likes-pig", "bird-likes-pig"), 8)
    passed = [shots for is_passed, shots in levels if is_passed]
    n_tnt = [[len(decode(seen).of_kind("tnt")) for seen in (shots[0][0], shots[-1][2])] for shots in passed]
    assert sum(last < first for first, last in n_tnt) >= 2


def test_with_no_pig_left_it_shoots_at_what_it_does_not_know():
    levels = play_birds(hydra(), angry("bone", "bone"), 3)
    for is_passed, shots in levels:
        seen, action, _ = shots[-1]
        target = next(one for one in decode(seen).targets if one.slot == split(action)[0])
        assert is_passed
        assert target.kind == "other"


def test_wood_in_the_way_is_seen_and_shot_over():
    levels = play_birds(hydra(), angry("floating-wood", "floating-wood"), 6)
    passed = [shots for is_passed, shots in levels if is_passed]
    assert len(passed) >= 4
    assert {split(action)[1] for shots in passed for _, action, _ in shots} == {1}


def test_with_nothing_to_see_it_still_shoots_and_learns():
    policy, nothing = hydra(), np.zeros(AngryBirds.spec.observation_low.shape, np.float32)
    assert policy.act(nothing) in range(len(AngryBirds.spec.action_names))
    policy.learn(nothing, 0, nothing, 0.0, True, True)
    assert policy.beliefs.changes() == {}


@pytest.mark.parametrize("domain", ["cartpole", "angrybirds"])
def test_it_is_known_by_its_name(domain):
    agent = load("hydra", domain)
    assert agent.name == "hydra"
    assert agent.is_stateful
