"""Online and FineTune as methods: what a trial gives depends on the trial alone, and learning helps."""

from typing import Any

import gymnasium
import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from polars.testing import assert_frame_equal
from threadpoolctl import threadpool_limits

from learners.support import N_ACTIONS, N_INPUTS, make, make_model, make_steps, transition
from nappingrl import agents
from nappingrl.agents.base import Agent
from nappingrl.errors import BadAgentError, NappingError
from nappingrl.learners import Learner
from nappingrl.methods.base import Method
from nappingrl.methods.finetune import FineTune
from nappingrl.methods.online import Online
from nappingrl.trials.engine import Engine
from nappingrl.trials.spec import RunSpec
from nappingrl.types import Decision, Transition

KINDS = ("dqn", "ppo")
FAST: dict[str, Any] = {
    "dqn": {"train_freq": 4, "gradient_steps": 2, "target_update_interval": 20, "batch_size": 16},
    "ppo": {"n_steps": 32, "batch_size": 16, "n_epochs": 2},
}


def make_agent(kind: str, **options: Any) -> Agent:
    """A small untrained CartPole agent that learns often."""
    env = gymnasium.make("CartPole-v1")
    return agents.load(make_model(kind, env, arch=(16, 16), **(FAST[kind] | options)))


def spec_of(method: str, trials: int = 5, protocol: str = "2+4", detector: str = "given", **options: Any) -> RunSpec:
    return RunSpec(
        "cartpole", "test", method, trials=trials, protocol=protocol, detector=detector, options=options
    ).complete()


def build_method(method_class: type[Method], agent: Agent, n: int, **options: Any) -> Any:
    spec = spec_of(method_class.__name__.lower(), **options)
    return spec.adaptation.build(agent, spec.domain_spec, n).method


def make_method(method_class: type[Method], agent: Agent, n: int, **options: Any) -> Any:
    method = build_method(method_class, agent, n, **options)
    method.start(np.arange(n), np.arange(n).astype(np.uint64))
    return method


def step(method: Method, rows: NDArray[np.int64], detected: Any, seed: int) -> Transition:
    """One step in a world of random observations."""
    rng, m = np.random.default_rng(seed), len(rows)
    observations, following = rng.normal(size=(2, m, 4)).astype(np.float32)
    decision = method.forward(rows, observations)
    actions = method.act(rows, observations, decision)
    ended = np.zeros(m, np.bool_)
    seen = Transition(observations, decision, actions, following, rng.normal(size=m), ended, ended)
    method.learn(rows, seen, np.broadcast_to(np.asarray(detected), m))
    return seen


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["online", "finetune"])
def test_a_trial_alone_equals_the_same_trial_among_others(kind: str, method: str) -> None:
    agent, spec = make_agent(kind), spec_of(method, exploration=0.2) if kind == "dqn" else spec_of(method)
    trials = spec.trial_specs()
    together = Engine(spec, agent, 8).run_trials(trials)
    assert together["return"].n_unique() > 5
    alone = pl.concat(Engine(spec, agent, 1).run_trials([trial]) for trial in trials)
    assert_frame_equal(together, alone)
    assert_frame_equal(together, Engine(spec, agent, 3).run_trials(trials))


@pytest.mark.parametrize("kind", KINDS)
def test_weights_do_not_depend_on_the_slot(kind: str) -> None:
    """Bit for bit, also with a network whose products use another kernel at each shape."""
    model = make_model(kind, arch=(50, 33), **FAST[kind])
    few, many, steps = make(model, n=1), make(model, n=7), make_steps(130)
    rows = np.array([6, 2, 4])
    many.start(rows, np.array([1, 99, 5], np.uint64))
    few.start(np.array([0]), np.array([99], np.uint64))
    before = few.state.parameters[0].copy()
    for t in range(130):
        few.learn(np.array([0]), transition(steps, t))
        many.learn(rows, transition(steps, t, copies=3))
    assert (few.state.parameters[0] != before).any()
    np.testing.assert_array_equal(few.state.parameters[0], many.state.parameters[2])
    np.testing.assert_array_equal(few.state.second_moments[0], many.state.second_moments[2])
    assert (many.state.parameters[2] != many.state.parameters[6]).any()


@pytest.mark.parametrize("kind", KINDS)
def test_a_slot_starts_as_the_agent_again(kind: str) -> None:
    learner, steps = make(make_model(kind, arch=(8,), **FAST[kind])), make_steps(64)
    row, key = np.array([2]), np.array([99], np.uint64)
    results = []
    for _ in range(2):
        learner.start(row, key)
        for t in range(64):
            learner.learn(row, transition(steps, t))
        results.append(learner.state.parameters[2].copy())
    np.testing.assert_array_equal(*results)
    np.testing.assert_array_equal(learner.state.parameters[1], learner._initial_parameters)


@pytest.mark.parametrize("kind", KINDS)
def test_forward_is_the_network(kind: str) -> None:
    """Before any update a learner's own forward pass gives what the agent gives; afterwards each row its own."""
    agent = make_agent(kind)
    method = make_method(Online, agent, 3)
    rows = np.arange(3)
    observations = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    own, frozen = method.forward(rows, observations), agent.forward(observations)
    for name in ("actions", "model_states", "preferences"):
        np.testing.assert_allclose(getattr(own, name), getattr(frozen, name), rtol=1e-5, atol=1e-6)
    for t in range(64):
        step(method, rows, False, t)
    trained = method.forward(rows, np.repeat(observations[:1], 3, axis=0))
    assert len(np.unique(trained.preferences, axis=0)) == 3
    assert trained.model_states.shape == (3, 16)


@pytest.mark.parametrize("kind", KINDS)
def test_finetune_is_the_frozen_agent_until_detection(kind: str) -> None:
    agent = make_agent(kind)
    never = Engine(spec_of("finetune", detector="never"), agent).run_trials(spec_of("finetune").trial_specs())
    frozen = Engine(spec_of("frozen"), agent).run_trials(spec_of("frozen").trial_specs())
    columns = ["return", "length"]
    assert_frame_equal(never[columns], frozen[columns])
    given = Engine(spec_of("finetune"), agent).run_trials(spec_of("finetune").trial_specs())
    before = pl.col("episode") < 0
    assert_frame_equal(given.filter(before)[columns], frozen.filter(before)[columns])
    assert not given.filter(~before)[columns].equals(frozen.filter(~before)[columns])


@pytest.mark.parametrize("kind", KINDS)
def test_rows_begin_to_learn_one_by_one(kind: str) -> None:
    """Rows that have not begun give the agent's bits; the step that tells of the detection is not yet learned from."""
    agent = make_agent(kind)
    method = make_method(FineTune, agent, 4)
    rows, detected = np.array([3, 0, 2]), np.array([False, True, False])
    for t in range(40):
        seen = step(method, rows, detected, t)
        frozen = agent.forward(seen.observations)
        for name in ("actions", "model_states", "preferences"):
            np.testing.assert_array_equal(getattr(seen.decision, name)[~detected], getattr(frozen, name)[~detected])
        np.testing.assert_array_equal(seen.actions[~detected], frozen.actions[~detected])
        assert method.learner.replay.n_added[0] == t
    assert method.learner.replay.n_added.tolist() == [39, 0, 0, 0]
    assert (method.learner.state.parameters[0] != method.learner.state.parameters[3]).any()


def test_the_replay_buffer_at_detection() -> None:
    agent, rows = make_agent("dqn"), np.arange(2)
    for option, kept in (("empty", 0), ("kept", 10)):
        method = make_method(FineTune, agent, 2, buffer=option)
        for t in range(10):
            step(method, rows, t == 9, t)
        assert method.learner.replay.n_added.tolist() == [kept, kept]
        assert method.learner.state.adam_steps.tolist() == [0, 0]
        for t in range(4):
            step(method, rows, True, t)
        assert method.learner.replay.n_added.tolist() == [kept + 4, kept + 4]
        assert method.learner.state.adam_steps.tolist() == [2, 2]
        assert any("replay buffer" in note for note in method.notes()) == (option == "empty")


@pytest.mark.parametrize("kind", KINDS)
def test_divergence_marks_the_trial_and_leaves_the_others(kind: str) -> None:
    model, steps = make_model(kind, arch=(16, 16), **FAST[kind]), make_steps(200)
    spoiled, sound = make(model, n=3), make(model, n=3)
    rows = np.arange(3)
    for learner in (spoiled, sound):
        learner.start(rows, rows.astype(np.uint64))
    spoiled.state.parameters[1] = 1e30
    for t in range(100):
        for learner in (spoiled, sound):
            learner.forward(rows, steps["observations"][:3])
            learner.learn(rows, transition(steps, t, copies=3))
    assert spoiled.state.is_diverged.tolist() == [False, True, False]
    assert not sound.state.is_diverged.any()
    assert (spoiled.state.parameters[1] == np.float32(1e30)).all(), "the update must not be applied"
    assert spoiled.state.adam_steps[1] == 0
    for row in (0, 2):
        np.testing.assert_array_equal(spoiled.state.parameters[row], sound.state.parameters[row])
    spoiled.start(np.array([1]), np.array([1], np.uint64))
    for t in range(100):
        spoiled.learn(np.array([1]), transition(steps, t))
    assert not spoiled.state.is_diverged.any()
    np.testing.assert_array_equal(spoiled.state.parameters[1], sound.state.parameters[1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_an_absurd_learning_rate_is_told_and_nothing_else_happens(kind: str, activation: str) -> None:
    """No warning either: they are errors here."""
    agent = make_agent(kind, activation=activation)
    spec = spec_of("online", learning_rate=1e30, protocol="1+3", trials=3)
    rows = Engine(spec, agent).run_trials(spec.trial_specs())
    assert len(rows) == 12
    assert set(rows["status"]) <= {"ok", "diverged"}
    if activation == "relu":
        assert "diverged" in set(rows.group_by("trial").last()["status"])


class Guess:
    """Observations of two kinds; the action that fits earns 1. Whatever is done, the next one is drawn anew."""

    def __init__(self, n: int) -> None:
        self.rng, self.n = np.random.default_rng(0), n
        self.observations = self.draw()

    def draw(self) -> NDArray[np.float32]:
        return self.rng.normal(size=(self.n, N_INPUTS)).astype(np.float32)

    def step(self, learner: Learner, is_greedy: bool = False) -> float:
        """One step of all rows; returns the mean reward."""
        rows, x = np.arange(self.n), self.observations
        decision = learner.forward(rows, x)
        actions = decision.actions
        if not is_greedy:
            actions = learner.explore(rows, decision.actions, decision.preferences)
        rewards = (actions == np.where(x[:, 0] > 0, 1, N_ACTIONS - 1)).astype(np.float64)
        self.observations = self.draw()
        if not is_greedy:
            none = np.zeros(self.n, np.bool_)
            learner.learn(rows, Transition(x, decision, actions, self.observations, rewards, ~none, none))
        return float(rewards.mean())


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("dqn", {"train_freq": 4, "gradient_steps": 4, "batch_size": 32, "exploration_final_eps": 0.3}),
        ("ppo", {"n_steps": 64, "batch_size": 32, "n_epochs": 10, "ent_coef": 0.01}),
    ],
)
def test_it_learns(kind: str, options: dict[str, Any]) -> None:
    learner = make(make_model(kind, arch=(32,), learning_rate=3e-3, gamma=0.5, **options), n=8)
    learner.start(np.arange(8), np.arange(8).astype(np.uint64))
    problem = Guess(8)
    before = np.mean([problem.step(learner, is_greedy=True) for _ in range(100)])
    for _ in range(1000):
        problem.step(learner)
    after = np.mean([problem.step(learner, is_greedy=True) for _ in range(100)])
    assert before < 0.6
    assert after > 0.9


def test_options_reach_the_learner() -> None:
    dqn = make_method(Online, make_agent("dqn"), 1, learning_rate=0.5, exploration=0.25, layers="last").learner
    options = dqn.hyperparameters
    assert (options.learning_rate, options.exploration_final_eps, dqn.is_last_only) == (0.5, 0.25, True)
    assert options.train_freq == 4
    own = make_method(Online, make_agent("dqn", learning_rate=0.125), 1).learner
    options = own.hyperparameters
    assert (options.learning_rate, options.exploration_final_eps, own.is_last_only) == (0.125, 0.05, False)
    ppo = make_method(Online, make_agent("ppo"), 1, learning_rate=0.5).learner
    options = ppo.hyperparameters
    assert (options.learning_rate, options.clip_range, options.n_epochs) == (0.5, 0.2, 2)


@pytest.mark.parametrize(
    ("method", "kind", "options", "text"),
    [
        (Online, "ppo", {"exploration": 0.1}, "option exploration is for DQN agents"),
        (Online, "dqn", {"exploration": 1.5}, "outside its range, 0 to 1"),
        (FineTune, "ppo", {"buffer": "kept"}, "PPO has no replay buffer"),
        (Online, "dqn", {"buffer": "kept"}, "method 'online' takes no buffer"),
        (Online, "dqn", {"learning_rate": -1}, "outside its range"),
    ],
)
def test_options_that_do_not_fit(method: type[Method], kind: str, options: dict[str, Any], text: str) -> None:
    with pytest.raises(NappingError, match=text) as caught:
        make_method(method, make_agent(kind), 1, **options)
    assert "\n" not in str(caught.value)


def test_notes() -> None:
    fresh = "finetune starts fresh: Adam's moments (not in the agent's file), replay buffer"
    assert make_method(FineTune, make_agent("dqn"), 1).notes() == [fresh]
    notes = make_method(Online, agents.load("ppo", "cartpole"), 1).notes()
    assert notes == [
        "online starts fresh: Adam's moments (not in the agent's file)",
        "online uses the first value of the schedules of learning_rate, clip_range",
    ]
    notes = make_method(Online, agents.load("ppo", "cartpole"), 1, learning_rate=0.001).notes()
    assert notes[1] == "online uses the first value of the schedules of clip_range"


def test_agents_of_the_zoo_can_be_trained() -> None:
    for domain, name in (("cartpole", "dqn"), ("cartpole", "ppo"), ("mountaincar", "dqn"), ("mountaincar", "ppo-weak")):
        spec = RunSpec(domain, name, "online", trials=2, protocol="0+1", options={"layers": "last"}).complete()
        rows = Engine(spec, agents.load(name, domain)).run_trials(spec.trial_specs())
        assert set(rows["status"]) == {"ok"}
    strong = agents.load("ppo-strong", "mountaincar").trainable()
    assert strong.hyperparameters["normalise"] is True
    assert strong.normalise is not None


def test_agents_that_cannot_be_trained(agent: Agent, agent_zip: Any) -> None:
    with pytest.raises(BadAgentError, match=r"not a plain perceptron of SB3's DQN or PPO"):
        build_method(Online, agent, 1)
    with pytest.raises(BadAgentError, match=r"its file has no value network"):
        build_method(Online, agents.load(agent_zip), 1)


def test_bad_observations_are_refused_while_learning() -> None:
    method = make_method(Online, make_agent("dqn"), 1)
    with pytest.raises(NappingError, match="only finite numbers are allowed"):
        method.forward(np.array([0]), np.full((1, 4), np.nan, np.float32))


def test_decision_of_an_empty_batch() -> None:
    decision = make_method(Online, make_agent("ppo"), 1).forward(np.empty(0, np.int64), np.empty((0, 4), np.float32))
    assert isinstance(decision, Decision)
    assert decision.preferences.shape == (0, 2)


def test_weights_do_not_depend_on_the_threads_of_blas() -> None:
    model, steps = make_model("dqn", arch=(256, 256), train_freq=8, gradient_steps=4, batch_size=64), make_steps(32)
    results = []
    for threads in (1, 2):
        learner = make(model)
        with threadpool_limits(threads):
            for t in range(32):
                learner.learn(np.array([2]), transition(steps, t))
        results.append(learner.state.parameters[2].copy())
    np.testing.assert_array_equal(*results)
