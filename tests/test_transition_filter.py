"""Steps with bad numbers are dropped: the agent goes on as if it had never observed them."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

from nappingrl import NappingAgent
from nappingrl.domains.cartpole import CartPole
from nappingrl.errors import BadSpecError
from nappingrl.registry import detectors, methods
from nappingrl.transition_filter import MIN_STEPS, TransitionFilter
from nappingrl.trials.engine import Engine
from nappingrl.trials.notes import notes_of
from nappingrl.trials.spec import RunSpec

BAD = [np.nan, np.inf, -np.inf, 1e30, -2e12]
ONE = np.array([0])
drops = pytest.mark.filterwarnings(
    "ignore:.*(observed steps were left out|observation holds bad numbers):nappingrl.AdaptationWarning"
)


def accepts(judge: TransitionFilter, value: float = 1.0, reward: float = 1.0, action: Any = 0) -> bool:
    observations = np.array([[0.5, 1.0]], np.float32)
    after = np.array([[0.5, value]])
    return judge.accept(ONE, observations, np.array([action]), after, np.array([reward])) is None


@pytest.mark.parametrize("bad", BAD)
def test_bad_numbers_are_dropped_and_counted(bad: float) -> None:
    judge = TransitionFilter(2)
    assert not accepts(judge, value=bad)
    assert not accepts(judge, reward=bad)
    assert not accepts(judge, action=[bad])
    assert judge.accept(ONE, np.array([[bad]]), ONE, np.zeros((1, 1)), np.ones(1)) is not None
    assert (judge.n_dropped.tolist(), judge.n_accepted.tolist()) == ([4, 0], [0, 0])
    assert accepts(judge)


@pytest.mark.parametrize("name", ["value", "reward"])
def test_growth_is_judged_after_some_steps(name: str) -> None:
    judge = TransitionFilter(1)
    for _ in range(MIN_STEPS - 1):
        assert accepts(judge)
    assert accepts(judge, **{name: 3e7})  # too early to tell
    assert accepts(judge, **{name: 2.9e12 / 3})
    for other in {"value", "reward"} - {name}:
        assert accepts(judge, **{other: 1e6})
        assert not accepts(judge, **{other: 1.1e12})
    judge.start(ONE)
    for _ in range(MIN_STEPS):
        assert accepts(judge, **{name: 1e-9})
    assert accepts(judge, **{name: 9e5})  # a history of zeros says nothing about 1
    assert not accepts(judge, **{name: 9.1e11})
    assert accepts(judge, **{name: 8e11})


def test_rows_are_judged_apart() -> None:
    judge, rows = TransitionFilter(3), np.array([2, 0])
    before, after = np.zeros((2, 1), np.float32), np.array([[np.nan], [1.0]], np.float32)
    accepted = judge.accept(rows, before, rows, after, np.ones(2))
    assert accepted is not None
    assert accepted.tolist() == [False, True]
    assert judge.n_dropped.tolist() == [0, 0, 1]


def test_observations_of_every_kind_are_judged() -> None:
    judge = TransitionFilter(1)
    image = np.full((1, 2, 2, 3), 255, np.uint8)
    good = {"image": image, "speed": np.zeros((1, 2), np.float32)}
    bad = good | {"speed": np.array([[0.0, np.nan]], np.float32)}
    assert judge.accept(ONE, good, ONE, good, np.ones(1)) is None  # type: ignore[arg-type]
    assert judge.accept(ONE, good, ONE, bad, np.ones(1)) is not None  # type: ignore[arg-type]
    assert judge.are_usable(ONE, good) is None  # type: ignore[arg-type]
    assert judge.are_usable(ONE, bad) is not None  # type: ignore[arg-type]
    assert judge.repair(ONE, bad)["speed"].tolist() == [[0.0, 0.0]]
    number = np.array([3])  # Discrete
    assert judge.accept(ONE, number, ONE, number, np.ones(1)) is None  # type: ignore[arg-type]
    assert judge.accept(ONE, number, ONE, np.array([10**15]), np.ones(1)) is not None  # type: ignore[arg-type]


# ---- as if it had never been observed -----------------------------------------------------------------------------

Step = tuple[NDArray[np.float32], int, NDArray[np.float32], float, bool]
IN_AGENTS = [name for name in methods.names() if not methods.get(name).is_privileged]


def episodes(count: int, length: int = 3) -> list[Step]:
    """Random steps; the returns and steps of later episodes differ, so that detectors may alarm."""
    random, steps = np.random.default_rng(5), []
    for episode in range(count):
        observation = random.normal(0, 0.05, 4).astype(np.float32)
        for k in range(length):
            following = (observation + random.normal(0.01, 0.02 + 0.1 * (episode > 41), 4)).astype(np.float32)
            reward = 1.0 - 5.0 * (episode > 41)
            steps.append((observation, int(random.integers(2)), following, reward, k == length - 1))
            observation = following
    return steps


def poison(step: Step, number: int) -> Step:
    """The step with one bad number somewhere."""
    observation, action, following, reward, is_last = step
    bad = BAD[number % len(BAD)]
    if number % 3 == 0:
        return observation, action, following, bad, is_last
    arrays = [observation.copy(), following.copy()]
    arrays[number % 2][number % 4] = bad
    return arrays[0], action, arrays[1], reward, is_last


def run(made: NappingAgent, steps: list[Step], is_poisoned: bool) -> list[int]:
    """The actions; where poisoned, bad steps are observed and predicted in between."""
    actions = []
    for number, (observation, action, following, reward, is_last) in enumerate(steps):
        actions.append(int(made.predict(observation)[0]))
        if number % 4 == 1:  # in the middle of the step, and as the last one of an episode
            bad = poison((observation, action, following, reward, number % 16 == 1), number)
            if is_poisoned:
                made.observe(*bad)
                made.predict(np.where(np.arange(4) == number % 4, np.nan, observation).astype(np.float32))
            if bad[-1]:
                if not is_poisoned:
                    made.begin_episode()
                continue
        made.observe(observation, action, following, reward, is_last)
    return actions


@pytest.mark.filterwarnings("ignore:.*(waits for an alarm|acts as the frozen agent):nappingrl.AdaptationWarning")
@drops
@pytest.mark.parametrize("detector", detectors.names())
@pytest.mark.parametrize("method", IN_AGENTS)
def test_a_dropped_step_leaves_no_trace(method: str, detector: str) -> None:
    steps = episodes(46 if method != "foresight" else 43)
    clean, poisoned = (
        NappingAgent("dqn", domain="cartpole", method=method, detector=detector, guard=detector == "cusum")
        for _ in range(2)
    )
    assert run(clean, steps, False) == run(poisoned, steps, True)
    assert clean.dropped.tolist() == [0]
    assert poisoned.dropped.tolist() == [sum(number % 4 == 1 for number in range(len(steps)))]
    ours, theirs = clean.adaptation.state(), poisoned.adaptation.state()
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        np.testing.assert_array_equal(array, theirs[name], name)
    np.testing.assert_array_equal(clean.adaptation.returns, poisoned.adaptation.returns)
    assert run(clean, steps[:9], False) == run(poisoned, steps[:9], False)


# ---- adaptation goes on -------------------------------------------------------------------------------------------


class Faulty(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Reports one bad number, in the reward or the observation of its 25th step."""

    def __init__(self, env: gymnasium.Env[Any, Any], bad: float, where: str) -> None:
        super().__init__(env)
        self._bad, self._where, self._steps = bad, where, 0

    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._steps += 1
        if self._steps == 25 and self._where == "reward":
            reward = self._bad
        elif self._steps == 25:
            observation = np.where(np.arange(4) == 2, self._bad, observation)
        return observation.astype(np.float32), reward, terminated, truncated, info


def play(agent: NappingAgent, env: gymnasium.Env[Any, Any], count: int, **params: float) -> list[int]:
    """Lengths of episodes."""
    lengths = []
    for seed in range(count):
        observation, _ = env.reset(seed=seed, options={"params": params})
        length, is_over = 0, False
        while not is_over:
            observation, _, terminated, truncated, _ = env.step(agent.predict(observation)[0])
            length, is_over = length + 1, terminated or truncated
        lengths.append(length)
    return lengths


@drops
@pytest.mark.parametrize("where", ["reward", "observation"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30])
def test_foresight_survives_one_bad_number(bad: float, where: str) -> None:
    agent = NappingAgent("ppo", domain="cartpole", method="foresight", detector="given")
    env = agent.wrap(Faulty(gymnasium.make("nappingrl/CartPole-v0"), bad, where))
    lengths = play(agent, env, 12, force=-10.0)
    assert max(lengths[:2]) < 20
    assert np.mean(lengths[-4:]) >= 190
    assert agent.dropped[0] == (1 if where == "reward" else 2)  # as next observation, and as observation


@drops
def test_dropped_steps_are_saved(tmp_path: Any) -> None:
    agent = NappingAgent("ppo", domain="cartpole", detector="given")
    zeros = np.zeros(4, np.float32)
    for reward in [1.0] * MIN_STEPS + [np.nan]:
        agent.observe(zeros, 0, zeros, reward, False)
    again = NappingAgent.load(agent.save(tmp_path / "agent"))
    assert again.dropped.tolist() == [1]
    again.observe(zeros, 0, zeros, 1e7, False)  # judged by the steps before saving
    assert again.dropped.tolist() == [2]
    assert again.notes()[-1].startswith("2 observed steps were left out")


@drops
def test_continuous_actions_are_judged() -> None:
    agent = NappingAgent("sac", domain="Pendulum-v1", detector="given")
    agent.observe(np.zeros(3), [np.nan], np.zeros(3), 0.0, False)
    assert agent.dropped.tolist() == [1]


@drops
@pytest.mark.parametrize("bad", BAD[:4])
def test_a_discrete_action_that_is_no_number_is_dropped(bad: float) -> None:
    agent = NappingAgent("ppo", domain="cartpole", detector="given", n_envs=2)
    zeros = np.zeros((2, 4), np.float32)
    agent.observe(zeros[0], bad, zeros[0], 1.0, True)
    assert agent.dropped.tolist() == [1, 0]
    agent.observe(zeros, [bad, 1.0], zeros, [1.0, 1.0], [False, False], [False, False])
    assert agent.dropped.tolist() == [2, 0]
    assert agent.adaptation.returns.tolist() == [0.0, 1.0]
    with pytest.raises(BadSpecError, match=r"action .* given; the agent's are 0 to 1"):
        agent.observe(zeros, [bad, 2.0], zeros, [1.0, 1.0], [False, False], [False, False])


# ---- trials -------------------------------------------------------------------------------------------------------


class FaultyCartPole(CartPole):
    """Every 50th step of the first copy has a bad reward, every 70th a bad observation."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._count = 0

    def step(self, rows: Any, actions: Any) -> Any:
        rewards, terminated = super().step(rows, actions)
        self._count += 1
        if self._count % 50 == 0:
            rewards[rows == 0] = np.nan
        return rewards, terminated

    def observe(self, rows: Any) -> Any:
        observations = super().observe(rows)
        if self._count % 70 == 69:
            observations[rows == 0] = np.inf
        return observations


@pytest.mark.parametrize("method", ["frozen", "napping", "foresight"])
def test_a_run_goes_on_and_reports_dropped_steps(method: str, agent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = RunSpec("cartpole", "ppo", method, trials=2, seed=3, protocol="2+3").complete()
    trials = spec.trial_specs()
    expected = Engine(spec, agent).run_trials(trials)
    assert set(expected["status"]) == {"ok"}
    assert notes_of({"method": method, "novelty": "none"}, expected) == []
    monkeypatch.setattr(Engine, "domain", property(lambda self: self._domain, _make_faulty), raising=False)
    rows = Engine(spec, agent).run_trials(trials)
    other = rows["number"] == 1
    assert rows.filter(other).equals(expected.filter(expected["number"] == 1))
    assert rows["return"].is_finite().all()
    counts = rows["status"].str.extract(r"^dropped (\d+)$").cast(int)
    assert counts.filter(~other).sum() >= 4
    assert (rows["return"] + counts.fill_null(0) == rows["length"]).all()  # a step in cartpole earns 1
    note, *_ = notes_of({"method": method, "novelty": "none"}, rows)
    assert note.startswith(f"{counts.sum()} steps in {counts.count()} episodes were left out")


def _make_faulty(engine: Any, domain: Any) -> None:
    engine._domain = FaultyCartPole(domain.n, domain.spec)
