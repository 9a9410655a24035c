"""The paper's domains have everything that a domain can have; others keep the contract of `nappingrl.testing`."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

import nappingrl  # noqa: F401  (registers the environments)
from nappingrl.detectors import Detector
from nappingrl.domains import find_domain
from nappingrl.domains.angrybirds.oracle import AngryBirdsOracle
from nappingrl.domains.base import Domain
from nappingrl.domains.canvas import PixelCanvas
from nappingrl.errors import BadSpecError, UnknownNameError
from nappingrl.methods.napping.rules import RULES
from nappingrl.methods.napping.space import SPACES
from nappingrl.novelties.novelty import Novelty
from nappingrl.registry import detectors
from nappingrl.reproduction.evaluation import PAPER
from nappingrl.types import Decision, DomainSpec, Transition

Step = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]

NAMES = list(PAPER)
NOVELTIES = [(name, novelty) for name in NAMES for novelty in find_domain(name).novelties]
SCORES = [(name, score) for name in NAMES for score in find_domain(name).scores]


@pytest.fixture(params=NAMES)
def spec(request: pytest.FixtureRequest) -> DomainSpec:
    """Each of the paper's domains."""
    found: DomainSpec = find_domain(request.param)
    return found


def rows_of(*numbers: int) -> NDArray[np.int64]:
    return np.array(numbers, np.int64)


def uniforms(spec: DomainSpec, m: int, seed: int = 0) -> NDArray[np.float64]:
    return np.random.default_rng(seed).random((m, spec.n_reset_draws))


def sampled(spec: DomainSpec, novelty: str, seed: int, strength: float = 1.0) -> dict[str, float]:
    return spec.novelties[novelty].sample(np.random.default_rng(seed), spec.parameters, strength)


def rollout(spec: DomainSpec, m: int, steps: int, seed: int = 0, novel: bool = False) -> list[Step]:
    """(obs, action, next_obs, reward, terminated) of m worlds under random actions; ended worlds begin anew."""
    rng = np.random.default_rng(seed)
    if spec.name == "angrybirds":  # a step of this world is some seconds of physics
        m, steps = min(m, 6), min(steps, 6)
    world, rows = spec.make(m), np.arange(m)
    if novel:
        for row in rows:
            world.apply(rows_of(row), sampled(spec, spec.defaults.novelty, seed=int(row)))
    world.reset(rows, rng.random((m, spec.n_reset_draws)))
    seen = []
    for _ in range(steps):
        observations, actions = world.observe(rows), rng.integers(len(spec.action_names), size=m)
        if spec.name == "angrybirds":  # at the pig, or where it is right to aim after the default novelty
            actions = rng.choice([0, 42], size=m)
        rewards, terminated = world.step(rows, actions)
        seen.append((observations, actions, world.observe(rows), rewards, terminated))
        again = rows[terminated]
        world.reset(again, rng.random((len(again), spec.n_reset_draws)))
    return seen


# ---- tables -------------------------------------------------------------------------------------------------------


def test_names_agree_with_the_registry() -> None:
    assert [find_domain(name).name for name in NAMES] == NAMES


def test_observation_tables_have_one_entry_per_number(spec: DomainSpec) -> None:
    shape = (len(spec.observation_names),)
    arrays = spec.observation_low, spec.observation_high, spec.observation_centre, spec.observation_scale
    assert [array.shape for array in arrays] == [shape] * 4
    assert spec.observation_low.dtype == spec.observation_high.dtype == np.float32
    assert (spec.observation_low < spec.observation_high).all()
    assert (spec.observation_scale > 0).all()
    assert spec.describe_state is not None or len(spec.observation_words) == len(spec.observation_names)
    assert all(low != high for low, high in spec.observation_words)


def test_defaults_exist_in_the_tables(spec: DomainSpec) -> None:
    assert spec.defaults.novelty in spec.novelties
    assert spec.defaults.score in spec.scores
    assert spec.defaults.options["rule"] in RULES
    assert spec.defaults.options["space"] in SPACES
    assert spec.solved.column in ("return", "won")


def test_tables_are_keyed_by_the_names_of_their_entries(spec: DomainSpec) -> None:
    assert [novelty.name for novelty in spec.novelties.values()] == list(spec.novelties)
    assert [score.name for score in spec.scores.values()] == list(spec.scores)
    assert all(entry.description for entry in [*spec.novelties.values(), *spec.scores.values()])
    assert not {"all", "none"} & set(spec.novelties), "these two names are reserved"


def test_registered_with_gymnasium_under_the_same_horizon(spec: DomainSpec) -> None:
    assert gymnasium.spec(spec.env_id).max_episode_steps == spec.horizon


def test_ranges_are_ordered(spec: DomainSpec) -> None:
    (least, greatest), (low, high) = spec.return_range, spec.return_limits
    assert least < greatest
    assert low < high
    if spec.solved.column == "return":
        assert least < spec.solved.level <= greatest


# ---- novelties ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "novelty"), NOVELTIES)
def test_novelty_draws_inside_its_ranges_and_leaves_the_rest(name: str, novelty: str) -> None:
    spec: DomainSpec = find_domain(name)
    entry: Novelty = spec.novelties[novelty]
    assert entry.ranges
    assert set(entry.ranges) <= set(spec.parameters)
    draws = [sampled(spec, novelty, seed) for seed in range(200)]
    for parameter, default in spec.parameters.items():
        values = np.array([draw[parameter] for draw in draws])
        if parameter in entry.ranges:
            low, high = entry.ranges[parameter]
            assert ((low <= values) & (values <= high)).all()
            assert values.min() <= low + 0.1 * (high - low), "the whole range is drawn from"
            assert values.max() >= high - 0.1 * (high - low)
        else:
            assert (values == entry.setting.get(parameter, default)).all()


@pytest.mark.parametrize(("name", "novelty"), NOVELTIES)
def test_strength_pulls_the_same_draw_towards_the_default(name: str, novelty: str) -> None:
    spec: DomainSpec = find_domain(name)
    for seed in range(20):
        full, weak = sampled(spec, novelty, seed), sampled(spec, novelty, seed, strength=0.25)
        for parameter, default in spec.parameters.items():
            if parameter in spec.novelties[novelty].setting:
                assert weak[parameter] == full[parameter], "the spec of world is no matter of strength"
                continue
            assert weak[parameter] - default == pytest.approx(0.25 * (full[parameter] - default), abs=1e-12)


@pytest.mark.parametrize(("name", "novelty"), NOVELTIES)
def test_novelty_changes_what_happens(name: str, novelty: str) -> None:
    spec: DomainSpec = find_domain(name, {"observation": "colour"} if novelty == "pig-color" else {})
    world, both, draws = spec.make(2), rows_of(0, 1), uniforms(spec, 1)
    world.apply(rows_of(0), spec.novelties[novelty].setting)
    world.apply(rows_of(1), sampled(spec, novelty, seed=1))
    world.reset(both, np.repeat(draws, 2, axis=0))
    if spec.name in ("cartpole", "mountaincar"):  # the start of an episode does not depend on the parameters
        np.testing.assert_array_equal(*world.observe(both))
    ended, differ = np.zeros(2, np.bool_), False
    actions = np.random.default_rng(2).integers(len(spec.action_names), size=spec.horizon)
    if spec.name == "angrybirds":  # a random shot seldom shows what has changed; these pass the level before
        oracle = AngryBirdsOracle(spec)
        plans = oracle.plan_episode(oracle.plan(world.parameters_of(rows_of(0))), draws)
        actions = plans[0, len(spec.parameters) :].astype(np.int64)
    for action in actions:
        _, ended = world.step(both, np.full(2, action))
        differ |= bool((world.observe(rows_of(0)) != world.observe(rows_of(1))).any() or ended[0] != ended[1])
        if differ or ended.any():
            break
    assert differ, "under the same actions the two worlds differ within an episode"


def test_apply_puts_parameters_in_place_and_none_takes_them_back(spec: DomainSpec) -> None:
    world, row = spec.make(3), rows_of(1)
    defaults = list(spec.parameters.values())
    changed = sampled(spec, spec.defaults.novelty, seed=0)
    world.apply(row, changed)
    assert world.parameters_of(row)[0].tolist() == list(changed.values())
    assert world.parameters_of(rows_of(0, 2)).tolist() == [defaults, defaults]
    last = list(spec.parameters)[-1]
    world.apply(row, {last: changed[last]})
    assert world.parameters_of(row)[0].tolist() == [*defaults[:-1], changed[last]], "what is not named is the default"
    world.apply(row, None)
    assert world.parameters_of(row)[0].tolist() == defaults


def test_unknown_parameter_is_refused_with_the_nearest_name(spec: DomainSpec) -> None:
    name = next(iter(spec.parameters))
    with pytest.raises(UnknownNameError, match=f"unknown parameter of {spec.name} '{name}x'.*Did you mean '{name}'"):
        spec.make(1).apply(rows_of(0), {f"{name}x": 1.0})


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_parameter_that_is_not_finite_is_refused(spec: DomainSpec, value: float) -> None:
    with pytest.raises(BadSpecError, match="not a finite number"):
        spec.make(1).apply(rows_of(0), {next(iter(spec.parameters)): value})


# ---- stepping -----------------------------------------------------------------------------------------------------


def test_shapes_and_dtypes(spec: DomainSpec) -> None:
    for observations, _, following, rewards, terminated in rollout(spec, m=5, steps=30):
        assert observations.shape == following.shape == (5, *spec.observation_low.shape)
        assert observations.dtype == following.dtype == np.float32
        assert (rewards.shape, rewards.dtype) == ((5,), np.float64)
        assert (terminated.shape, terminated.dtype) == ((5,), np.bool_)


def test_observations_stay_inside_their_bounds(spec: DomainSpec) -> None:
    for _, _, following, _, _ in rollout(spec, m=20, steps=200):
        assert ((spec.observation_low <= following) & (following <= spec.observation_high)).all()


def test_observe_gives_a_copy(spec: DomainSpec) -> None:
    world, row = spec.make(1), rows_of(0)
    world.reset(row, uniforms(spec, 1))
    before = world.observe(row)
    kept = before.copy()
    world.step(row, rows_of(0))
    np.testing.assert_array_equal(before, kept)


def test_reset_depends_on_the_uniform_numbers_alone(spec: DomainSpec) -> None:
    world, rows = spec.make(4), np.arange(4)
    world.apply(rows_of(2), sampled(spec, spec.defaults.novelty, seed=0))
    draws = uniforms(spec, 4)
    world.reset(rows, draws)
    first = world.observe(rows)
    if spec.n_reset_draws:
        assert len(np.unique(first, axis=0)) == 4
    for _ in range(5):
        world.step(rows, np.zeros(4, np.int64))
    world.reset(rows_of(2, 0), draws[[2, 0]])
    np.testing.assert_array_equal(world.observe(rows_of(2, 0)), first[[2, 0]])


def test_rows_that_are_not_named_stay_as_they_are(spec: DomainSpec) -> None:
    world, others = spec.make(4), rows_of(0, 3)
    world.reset(np.arange(4), uniforms(spec, 4))
    before = world.observe(others)
    world.step(rows_of(2, 1), rows_of(0, 0))
    world.reset(rows_of(1), uniforms(spec, 1, seed=9))
    np.testing.assert_array_equal(world.observe(others), before)


@pytest.mark.parametrize("place", [(0, 1, 2, 3, 4), (4, 2, 0, 3, 1), (6, 5, 4, 3, 2)])
def test_world_alone_equals_the_same_world_at_any_row_of_a_batch(spec: DomainSpec, place: tuple[int, ...]) -> None:
    m, steps = len(place), 60
    draws = uniforms(spec, m)
    actions = np.random.default_rng(1).integers(len(spec.action_names), size=(steps, m))
    changes = [sampled(spec, spec.defaults.novelty, seed) for seed in range(m)]

    def play(world: Domain, rows: NDArray[np.int64], trials: list[int]) -> list[NDArray[Any]]:
        for row, trial in zip(rows, trials, strict=True):
            world.apply(rows_of(row), changes[trial])
        world.reset(rows, draws[trials])
        seen: list[NDArray[Any]] = [world.observe(rows)]
        for t in range(steps):
            seen.extend(world.step(rows, actions[t, trials]))
            seen.append(world.observe(rows))
        return seen

    together = play(spec.make(7), rows_of(*place), list(range(m)))
    for trial in range(m):
        alone = play(spec.make(1), rows_of(0), [trial])
        for one, many in zip(alone, together, strict=True):
            np.testing.assert_array_equal(one[0], many[trial])


def test_won_gives_a_flag_per_episode(spec: DomainSpec) -> None:
    lengths, returns = rows_of(spec.horizon, 3), np.array(spec.return_range)
    won = spec.won(lengths, np.array([False, True]), returns)
    assert (won.shape, won.dtype) == ((2,), np.bool_)
    assert won[0] != won[1], "an episode that was cut and one that ended differ"


# ---- scores, detectors, expert, words, picture --------------------------------------------------------------------


@pytest.mark.parametrize(("name", "score"), SCORES)
@pytest.mark.parametrize("novel", [False, True])
def test_score_judges_each_transition_alone(name: str, score: str, novel: bool) -> None:
    spec: DomainSpec = find_domain(name)
    entry = spec.scores[score]
    values = []
    for step in rollout(spec, m=6, steps=60, novel=novel):
        found = entry(*step)
        assert (found.shape, found.dtype) == ((6,), np.float64)
        assert np.isfinite(found).all()
        assert (found <= entry.supremum).all()
        np.testing.assert_array_equal(entry(*(part[4:5] for part in step)), found[4:5])
        values.append(found)
    assert len(np.unique(values)) > 1, "a score that never changes judges nothing"
    assert entry.threshold <= entry.supremum


@pytest.mark.parametrize("detector", detectors.names())
def test_every_registered_detector_is_made(spec: DomainSpec, detector: str) -> None:
    made = detectors.get(detector).for_domain(3, spec)
    assert isinstance(made, Detector)
    assert made.n == 3
    rows = rows_of(2, 0)
    observations, actions, following, rewards, terminated = rollout(spec, m=2, steps=1)[0]
    decision = Decision(actions, observations, np.zeros((2, len(spec.action_names)), np.float32))
    transition = Transition(observations, decision, actions, following, rewards, terminated, terminated)
    made.start(rows, -3)
    made.step(rows, transition)
    made.end_episode(rows, np.zeros(2), rows_of(-2, -2))
    assert made.context.tolist() == [0, 0, 0]


def test_unknown_detector_is_refused(spec: DomainSpec) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'rolling-mean'"):
        detectors.get("roling-mean").for_domain(1, spec)


def test_rolling_mean_has_the_limits_of_the_domain(spec: DomainSpec) -> None:
    low, high = spec.return_limits
    inside = max(low, spec.return_range[0]) / 2 + min(high, spec.return_range[1]) / 2
    for value, expected in ((inside, False), (low - 1, np.isfinite(low)), (high + 1, np.isfinite(high))):
        detector = detectors.get("rolling-mean").for_domain(1, spec)
        for episode in range(5):
            detector.end_episode(rows_of(0), np.array([value]), rows_of(episode + 1))
        assert bool(detector.context[0]) == expected


def test_expert_solves_the_default_world(spec: DomainSpec) -> None:
    expert = spec.make_oracle()
    if expert is None:
        pytest.skip(f"{spec.name} has no expert")
    n = 20
    world, rows = spec.make(n), np.arange(n)
    draws = uniforms(spec, n, seed=5)
    plans = np.repeat(expert.plan(world.parameters_of(rows_of(0))), n, axis=0)
    if expert.plans_episodes:
        plans = expert.plan_episode(plans, draws)
    world.reset(rows, draws)
    lengths, returns, ended = np.zeros(n, np.int64), np.zeros(n), np.zeros(n, np.bool_)
    for step in range(spec.horizon):
        alive = rows[~ended]
        if len(alive) == 0:
            break
        actions = expert.act(plans[alive], world.observe(alive), np.full(len(alive), step))
        rewards, terminated = world.step(alive, actions)
        lengths[alive] += 1
        returns[alive] += rewards
        ended[alive] = terminated
    assert spec.won(lengths, ended, returns).all()


def test_describe_gives_words_for_every_situation(spec: DomainSpec) -> None:
    seen = [observation for step in rollout(spec, m=4, steps=50) for observation in step[0]]
    texts = {spec.describe(observation) for observation in [*seen, spec.observation_centre]}
    assert all(isinstance(text, str) and text and "\n" not in text for text in texts)
    assert 1 < len(texts) < len(seen) / 3, "coarse, so that neighbours read alike"


@pytest.mark.parametrize("novel", [False, True])
def test_draw_puts_the_world_on_the_canvas(spec: DomainSpec, novel: bool) -> None:
    canvas = PixelCanvas()
    blank = canvas.pixels()
    world = spec.make(2)
    world.reset(np.arange(2), uniforms(spec, 2))
    for seed in range(10 if novel else 1):
        if novel:
            world.apply(rows_of(1), sampled(spec, spec.defaults.novelty, seed))
        canvas.clear()
        world.draw(1, canvas)
        assert (canvas.pixels() != blank).any()
