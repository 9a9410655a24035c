"""The controls: what each does before and after the detection, step by step, and in whole trials."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from gymnasium.wrappers import TimeLimit
from numpy.typing import NDArray
from polars.testing import assert_frame_equal

from nappingrl import NappingAgent
from nappingrl.agents.base import Agent
from nappingrl.agents.mlp import MlpAgent
from nappingrl.domains import find_domain
from nappingrl.domains.as_env import DomainEnv
from nappingrl.errors import BadSpecError
from nappingrl.methods.base import Method, MethodInfo
from nappingrl.registry import domains, methods
from nappingrl.reproduction.evaluation import PAPER
from nappingrl.score import Score
from nappingrl.trials.engine import Engine
from nappingrl.trials.spec import RunSpec
from nappingrl.types import Decision, DomainSpec, Observations, Transition

N_ACTIONS, UP = 5, 2
Ints = NDArray[np.int64]


class Wants(Agent):
    """Wants the action that it is shown."""

    name, n_actions, embedding_dim, observation_shape, sha256 = "wants", N_ACTIONS, 1, (1,), "0"

    def forward(self, observations: Observations) -> Decision:
        actions = observations[:, 0].astype(np.int64)
        return Decision(actions, observations, np.zeros((len(actions), N_ACTIONS), np.float32))


class Trials:
    """n trials of a method, in lock step. Scores are the rewards, an episode with a return above 0 is won."""

    def __init__(
        self, method: str, n: int = 1, threshold: float = 0.0, controller: Any = None, key: int = 0, **options: Any
    ) -> None:
        score = Score("reward", lambda o, a, o2, r, end: r, threshold)
        one = np.ones(1)
        controllers = {} if controller is None else {score.name: controller}
        domain = DomainSpec(
            -one, one, N_ACTIONS, 0, won=lambda lengths, end, returns: returns > 0, controllers=controllers
        )
        info = MethodInfo(domain, score, options)
        method_class: type[Method] = methods.get(method)
        self.agent, self.rows = Wants(), np.arange(n)
        self.method = method_class(self.agent, info, n)
        self.method.start(self.rows, (self.rows + key * n).astype(np.uint64))
        self.detected = np.zeros(n, np.bool_)

    def step(self, wanted: int | Ints, score: Any = 0.0, end: bool = False) -> Ints:
        """One step: the actions that were executed."""
        n = len(self.rows)
        observations = np.full((n, 1), np.reshape(wanted, (-1, 1)), np.float32)
        decision = self.method.forward(self.rows, observations)
        actions = self.method.act(self.rows, observations, decision).copy()
        ended = np.full(n, end)
        scores = np.full(n, score, np.float64)
        transition = Transition(observations, decision, actions, observations, scores, ended, ~ended & False)
        self.method.learn(self.rows, transition, self.detected)
        if end:
            self.method.end_episode(self.rows)
        return actions

    def detect(self, wanted: int = 0, score: float = 0.0) -> Ints:
        """The novelty is detected; the method hears it with the first step after it."""
        self.detected[:] = True
        return self.step(wanted, score)


def assert_uniform(actions: Ints, among: list[int]) -> None:
    counts = np.bincount(actions, minlength=N_ACTIONS)
    expected = len(actions) / len(among)
    assert [a for a in range(N_ACTIONS) if counts[a]] == among
    assert sum((counts[a] - expected) ** 2 / expected for a in among) < 30, counts


OPTIONS: dict[str, dict[str, Any]] = {
    "random": {},
    "switch-on-failure": {},
    "replay-success": {"epsilon": 1.0},
    "controller": {"controller": lambda observations: np.full(len(observations), 3)},
}


@pytest.mark.parametrize("method", list(OPTIONS))
def test_the_agent_acts_until_the_first_step_after_detection(method: str) -> None:
    trials = Trials(method, 400, **OPTIONS[method])
    for wanted in (1, 4, 0, 2):
        assert (trials.step(wanted, score=-1.0) == wanted).all()
    assert (trials.detect(1, score=-1.0) == 1).all(), "that step is still the agent's"
    assert (trials.step(1) != 1).any()


@pytest.mark.parametrize("method", list(OPTIONS))
def test_only_trials_with_a_detection_are_changed_and_a_new_trial_has_none(method: str) -> None:
    trials = Trials(method, 400, **OPTIONS[method])
    trials.detected[200:] = True
    trials.step(1, score=-1.0)
    actions = trials.step(1, score=-1.0)
    assert (actions[:200] == 1).all()
    assert (actions[200:] != 1).any()
    trials.detected[:] = False
    trials.method.start(trials.rows, trials.rows.astype(np.uint64))
    assert (trials.step(1) == 1).all()


# ---- random -------------------------------------------------------------------------------------------------------


def test_random_is_uniform_whatever_is_wanted() -> None:
    trials = Trials("random", 4000)
    trials.detect()
    drawn = [trials.step(wanted, score=1.0) for wanted in (0, 0, 4)]
    for actions in drawn:
        assert_uniform(actions, [0, 1, 2, 3, 4])
    pairs = np.bincount(drawn[0] * 5 + drawn[1], minlength=25)
    assert ((pairs - 160) ** 2 / 160).sum() < 60, "one draw says nothing of the next"


# ---- flip ---------------------------------------------------------------------------------------------------------


def test_flip_takes_any_other_action_after_a_bad_score() -> None:
    trials = Trials("switch-on-failure", 2000)
    trials.detect()
    trials.step(1, score=-0.1)
    assert_uniform(trials.step(1, score=0.0), [0, 2, 3, 4])
    assert (trials.step(3, score=-1.0) == 3).all(), "a score at the threshold is not bad"
    assert_uniform(trials.step(4, score=5.0), [0, 1, 2, 3])
    assert (trials.step(4) == 4).all()


def test_flip_looks_at_each_trial_s_own_score_and_threshold() -> None:
    trials = Trials("switch-on-failure", 6, threshold=1.0)
    trials.detect(0, score=1.0)
    trials.step(2, score=np.array([0.9, 1.0, -3.0, 2.0, 0.0, 1.1]))
    assert ((trials.step(2) == 2) == [False, True, False, True, False, True]).all()


def test_flip_hears_the_score_of_the_detecting_step() -> None:
    trials = Trials("switch-on-failure", 50)
    trials.step(2, score=-1.0)
    assert (trials.detect(2, score=-1.0) == 2).all()
    assert (trials.step(2) != 2).all()


def test_flip_forgets_the_score_at_the_end_of_the_episode() -> None:
    trials = Trials("switch-on-failure", 50)
    trials.detect()
    trials.step(2, score=-1.0, end=True)
    assert (trials.step(2, score=-1.0) == 2).all()
    assert (trials.step(2) != 2).all()


# ---- replay-success -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "share"), [({}, 0.25), ({"epsilon": 0.6}, 0.6), ({"epsilon": 0.0}, 0.0)])
def test_replay_success_tries_random_actions_now_and_then(options: dict[str, float], share: float) -> None:
    trials = Trials("replay-success", 4000, **options)
    trials.detect()
    drawn = np.concatenate([trials.step(1) for _ in range(3)])
    others = drawn[drawn != 1]
    assert len(others) / len(drawn) == pytest.approx(share * 4 / 5, abs=0.015)
    if share:
        assert_uniform(others, [0, 2, 3, 4])


def test_replay_success_replays_the_first_won_episode_for_ever() -> None:
    trials = Trials("replay-success", 100, epsilon=0.5)
    trials.detected[:] = True
    lost = [trials.step(1, score=-1.0, end=t == 3) for t in range(4)]
    won = [trials.step(w, score=float(t == 5), end=t == 5) for t, w in enumerate((0, 1, 2, 3, 4, 0))]
    assert (np.array(won[:4]) != np.array(lost)).any()
    for score in (1.0, -1.0, 1.0, 2.0):  # lost or won, whatever is wanted
        again = [trials.step(4 - t % 5, score=score if t == 5 else 0.0, end=t == 5) for t in range(6)]
        np.testing.assert_array_equal(again, won)


def test_replay_success_does_not_repeat_a_success_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nappingrl.methods.controls.MAX_REPLAYED", 6)
    trials = Trials("replay-success", 100, epsilon=0.5)
    trials.detected[:] = True
    long, short = ([trials.step(1, float(t == n - 1), end=t == n - 1) for t in range(n)] for n in (1000, 6))
    again = [trials.step(1, end=t == 5) for t in range(6)]
    np.testing.assert_array_equal(again, short)
    assert (np.array(again) != np.array(long[:6])).any()
    assert trials.method._actions.shape[1] < 20  # type: ignore[attr-defined]


def test_replay_success_keeps_one_list_per_trial() -> None:
    trials = Trials("replay-success", 2, epsilon=1.0)
    trials.detected[:] = True
    steps = [trials.step(1, score=np.array([float(t == 19), -1.0]), end=t == 19) for t in range(20)]
    again = np.array([trials.step(1, score=np.array([-1.0, float(t == 19)]), end=t == 19) for t in range(20)])
    np.testing.assert_array_equal(again[:, 0], np.array(steps)[:, 0])
    assert (again[:, 1] != np.array(steps)[:, 1]).any()
    last = np.array([trials.step(1, score=-1.0, end=t == 19) for t in range(20)])
    np.testing.assert_array_equal(last, np.column_stack([np.array(steps)[:, 0], again[:, 1]]))


def test_replay_success_wants_a_success_after_detection() -> None:
    trials = Trials("replay-success", 300, epsilon=0.5)
    for t in range(4):
        trials.step(1, score=1.0, end=t == 3)
    trials.detect(1)
    again = [trials.step(1, end=t == 2) for t in range(3)]
    assert all((actions != 1).any() for actions in again), "the episode before the detection is not replayed"


def test_replay_success_forgets_at_the_start_of_a_trial() -> None:
    trials = Trials("replay-success", 300, epsilon=0.0)
    trials.detected[:] = True
    trials.step(3, score=1.0, end=True)
    assert (trials.step(1) == 3).all()
    trials.method.start(trials.rows, trials.rows.astype(np.uint64))
    assert (trials.step(1) == 1).all()


def always_up() -> MlpAgent:
    """Walks on, whatever comes."""
    last = np.zeros(5, np.float32)
    last[UP] = 1
    zeros = np.zeros((18, 4), np.float32), np.zeros(4, np.float32)
    return MlpAgent("up", [zeros, (np.zeros((4, 5), np.float32), last)], "tanh")


@pytest.mark.parametrize("detector", ["given", "rolling-mean"])
def test_replay_success_wins_every_episode_after_the_first_in_crossroad(detector: str) -> None:
    options: dict[str, Any] = {"trials": 12, "protocol": "1+40", "detector": detector, "options": {"epsilon": 0.4}}
    spec = RunSpec("crossroad", "up", "replay-success", "all", **options).complete()
    rows = Engine(spec, always_up()).run_trials(spec.trial_specs())
    n_late = 0
    for trial in rows.filter("detected").partition_by("trial"):
        won = trial["won"].to_list()
        if True not in won:
            continue
        first = won.index(True)
        assert all(won[first:])
        assert len(set(trial["length"].to_list()[first:])) == 1, "the same list of actions"
        n_late += first > 0
    assert n_late >= 4, "some had to try"


# ---- controller ---------------------------------------------------------------------------------------------------


def test_controller_is_the_score_s(agent_for: Callable[[str], Agent]) -> None:
    trials = Trials("controller", 5, controller=lambda observations: (observations[:, 0].astype(np.int64) + 1) % 5)
    trials.detect()
    assert trials.step(np.arange(5)).tolist() == [1, 2, 3, 4, 0]


@pytest.mark.parametrize("domain", list(PAPER))
def test_controllers_of_the_scores_give_actions_of_the_world(domain: str) -> None:
    spec = find_domain(domain)
    assert spec.defaults.score in spec.controllers
    world, rng = spec.make(50), np.random.default_rng(0)
    rows = np.arange(50)
    world.reset(rows, rng.random((50, spec.n_reset_draws)))
    for score in spec.scores.values():
        if score.name in spec.controllers:
            actions = spec.controllers[score.name](world.observe(rows))
            assert (actions.shape, actions.dtype) == ((50,), np.int64)
            assert set(actions.tolist()) <= set(range(len(spec.action_names)))


@pytest.mark.parametrize(("domain", "score"), [("crossroad", "reward"), ("cartpole", "terminal")])
def test_a_score_without_a_controller_is_refused(domain: str, score: str, agent_for: Callable[[str], Agent]) -> None:
    assert score not in find_domain(domain).controllers
    spec = RunSpec(domain, "a", "controller", score=score).complete()
    with pytest.raises(BadSpecError, match=f"score '{score}' has no controller") as caught:
        Engine(spec, agent_for(domain))
    assert "\n" not in str(caught.value)


# ---- napping-no-memory --------------------------------------------------------------------------------------------


def test_napping_wiped_learns_each_episode_anew(agent: Agent) -> None:
    """With two actions nothing is drawn: each episode must be that of a NAPPING agent that was just made."""
    trial = RunSpec("cartpole", "a", "napping-no-memory", detector="given", protocol="0+8", trials=3).complete()
    for spec in trial.trial_specs():
        rows = Engine(trial, agent).run_trials([spec])
        env = DomainEnv("cartpole")
        env.np_random = spec.stream("reset")
        env.set_params(**spec.parameters() or {})
        returns, regions = [], []
        for _ in range(8):
            fresh = NappingAgent(agent, domain="cartpole", detector="given", method="napping")
            attached, total, done = fresh.wrap(TimeLimit(env, 200)), 0.0, False
            observation, _ = attached.reset()
            while not done:
                observation, reward, terminated, truncated, _ = attached.step(int(fresh.predict(observation)[0]))
                total, done = total + float(reward), terminated or truncated
            returns.append(total)
            regions.append(int(fresh.method.regions(np.zeros(1, np.int64))[0][0]))
        assert rows["return"].to_list() == returns
        assert rows["regions"].to_list() == regions
        assert min(regions) > 0


@pytest.mark.parametrize("domain", domains.names())
def test_napping_wiped_counts_the_episode_s_own_regions(domain: str, agent_for: Callable[[str], Agent]) -> None:
    spec = RunSpec(domain, "a", "napping-no-memory", detector="given", protocol="0+6", trials=6).complete()
    wiped = Engine(spec, agent_for(domain)).run_trials(spec.trial_specs())
    kept_spec = RunSpec(domain, "a", "napping", detector="given", protocol="0+6", trials=6).complete()
    kept = Engine(kept_spec, agent_for(domain)).run_trials(kept_spec.trial_specs())
    assert (wiped["regions"] <= wiped["length"]).all()
    first = pl.col("episode") == 0
    assert_frame_equal(wiped.filter(first).drop("trial", "acted"), kept.filter(first).drop("trial", "acted"))
    if domain == "angrybirds":
        return  # a step is an episode there, and one region may do for all of them
    last = pl.col("episode") == 5
    assert wiped.filter(last)["regions"].sum() < kept.filter(last)["regions"].sum()


def test_random_aims_only_at_what_is_there(agent_for: Callable[[str], Agent]) -> None:
    spec = find_domain("angrybirds")
    world, rows = spec.make(6), np.arange(6)
    world.reset(rows, np.random.default_rng(0).random((6, spec.n_reset_draws)))
    run = RunSpec("angrybirds", "a", "random", detector="given").complete()
    method = Engine(run, agent_for("angrybirds"), slots=6).method
    method.start(rows, np.arange(6, dtype=np.uint64))
    observations = world.observe(rows)
    seen = [method.instead(rows, observations, np.zeros(6, np.int64)) for _ in range(200)]
    mask = spec.action_mask(observations)
    assert all(mask[rows, actions].all() for actions in seen)
    assert all(len({int(actions[row]) for actions in seen}) > mask[row].sum() / 2 for row in rows), "and at all of it"
