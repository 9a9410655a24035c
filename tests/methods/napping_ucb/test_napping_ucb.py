"""napping-ucb in whole trials."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from gymnasium.wrappers import TimeLimit
from polars.testing import assert_frame_equal

from nappingrl import NappingAgent
from nappingrl.agents.base import Agent
from nappingrl.domains.as_env import DomainEnv
from nappingrl.errors import BadSpecError
from nappingrl.methods import napping_ucb
from nappingrl.methods.napping_ucb import NappingUcb
from nappingrl.registry import domains
from nappingrl.trials.engine import Engine
from nappingrl.trials.spec import RunSpec
from nappingrl.types import Flags, Rows, Transition


def run(domain: str, agent: Agent, method: str = "napping-ucb", **options: object) -> pl.DataFrame:
    spec = RunSpec(domain, "a", method, **({"trials": 4, "protocol": "12+12"} | options)).complete()
    return Engine(spec, agent).run_trials(spec.trial_specs())


@pytest.mark.parametrize("domain", ["cartpole", "mountaincar", "crossroad", "angrybirds"])
def test_equals_frozen_before_detection(domain: str, agent_for: Callable[[str], Agent]) -> None:
    options = {"trials": 2, "protocol": "3+3", "detector": "given"}
    frozen, mine = (run(domain, agent_for(domain), method, **options) for method in ("frozen", "napping-ucb"))
    before = pl.col("episode") < 0
    assert mine.filter(before)["return"].to_list() == frozen.filter(before)["return"].to_list()
    assert mine.filter(before)["regions"].sum() == 0
    assert mine.filter(~before)["regions"].min() > 0
    never = run(domain, agent_for(domain), trials=2, protocol="3+3", detector="never")
    assert never["return"].to_list() == frozen["return"].to_list()


@pytest.mark.parametrize("domain", ["cartpole", "crossroad"])
def test_trials_are_independent(domain: str, agent_for: Callable[[str], Agent]) -> None:
    options = {"trials": 3, "protocol": "7+4", "detector": "given"}
    together = run(domain, agent_for(domain), **options)
    spec = RunSpec(domain, "a", "napping-ucb", **options).complete()
    alone = [Engine(spec, agent_for(domain), slots=1).run_trials([trial]) for trial in spec.trial_specs()]
    assert_frame_equal(together, pl.concat(alone))


def test_learns_to_balance_after_a_novelty(agent: Agent) -> None:
    options = {"trials": 8, "detector": "given", "seed": 2}
    frozen, mine = (run("cartpole", agent, method, **options) for method in ("frozen", "napping-ucb"))
    late = pl.col("episode") >= 6
    assert mine.filter(late)["return"].mean() > 1.5 * frozen.filter(late)["return"].mean()


class Counting(NappingUcb):
    """Counts detected steps, and those with another action than the wanted one."""

    n_steps = n_others = 0

    def learn(self, rows: Rows, transition: Transition, detected: Flags) -> None:
        self.n_steps += int(detected.sum())
        self.n_others += int((detected & (transition.actions != transition.decision.actions)).sum())
        super().learn(rows, transition, detected)


def test_false_alarm_changes_few_actions(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(napping_ucb, "NappingUcb", Counting)
    spec = RunSpec("cartpole", "a", "napping-ucb", "none", trials=6, protocol="12+6", detector="given").complete()
    engine = Engine(spec, agent)
    rows = engine.run_trials(spec.trial_specs())
    method = engine.method
    assert isinstance(method, Counting)
    assert method.n_steps > 5000
    assert 0 < method.n_others / method.n_steps < 0.1
    assert rows.filter(pl.col("episode") >= 0)["return"].mean() > 190


class Walk:
    """Two trials of the method without a domain: random observations, rewards of one."""

    def __init__(self, agent: Agent) -> None:
        spec = RunSpec("cartpole", "a", "napping-ucb").complete()
        method = Engine(spec, agent, slots=2).method
        assert isinstance(method, NappingUcb)
        self.method, self.rng, self.rows = method, np.random.default_rng(0), np.arange(2)
        method.start(self.rows, np.array([1, 2], np.uint64))

    def step(self) -> tuple[list[int], list[int]]:
        observations = self.rng.normal(0, 0.2, (2, 4)).astype(np.float32)
        decision = self.method.forward(self.rows, observations)
        actions = self.method.act(self.rows, observations, decision)
        following = self.rng.normal(0, 0.2, (2, 4)).astype(np.float32)
        no = np.zeros(2, np.bool_)
        transition = Transition(observations, decision, actions, following, np.ones(2), no, no)
        self.method.learn(self.rows, transition, self.method.contexts.current > 0)
        return decision.actions.tolist(), actions.tolist()

    def enter(self, row: int, context: int) -> None:
        self.method.on_context_change(np.array([row]), np.array([context]))


def test_cells_belong_to_contexts(agent: Agent) -> None:
    walk = Walk(agent)
    for _ in range(20):
        walk.step()
    walk.enter(0, 1)
    for _ in range(60):
        walk.step()
    first = walk.method.table(0)
    assert walk.method.context_sizes(0) == {1: len(first["wanted"])}
    walk.enter(0, 0)
    assert all(wanted == done for wanted, done in (walk.step() for _ in range(20))), "as trained"
    walk.enter(0, 2)
    for _ in range(30):
        walk.step()
    second = len(walk.method.table(0)["wanted"])
    walk.enter(0, 1)
    assert walk.method.context_sizes(0) == {1: len(first["wanted"]), 2: second}
    assert all((walk.method.table(0)[name] == first[name]).all() for name in ("site", "wanted", "counts", "means"))
    assert walk.method.regions(walk.rows)[0].tolist() == [len(first["wanted"]), 0]


def test_state_and_restore(agent: Agent) -> None:
    walk, other = Walk(agent), Walk(agent)
    for _ in range(80):
        walk.step()
    walk.method.end_episode(walk.rows)
    walk.enter(0, 1)
    walk.enter(1, 2)
    for _ in range(60):
        walk.step()
    walk.enter(1, 0)
    other.method.restore({name: array.copy() for name, array in walk.method.state().items()})
    other.rng.bit_generator.state = walk.rng.bit_generator.state
    assert other.method.context_sizes(1) == walk.method.context_sizes(1)
    assert [walk.step() for _ in range(60)] == [other.step() for _ in range(60)]


def test_principles_are_readable_and_saved(agent: Agent, tmp_path: Path) -> None:
    mine = NappingAgent(agent, domain="cartpole", method="napping-ucb", detector="given")
    env = DomainEnv("cartpole")
    env.set_params(length=3.0, force=40.0)
    attached = mine.wrap(TimeLimit(env, 200))
    observation, _ = attached.reset(seed=1)
    mine.detector.context[:] = 1
    for _ in range(150):
        observation, _, terminated, truncated, _ = attached.step(int(mine.predict(observation)[0]))
        if terminated or truncated:
            observation, _ = attached.reset()
    rules = mine.explain()
    assert sum(rule.visits for rule in rules) == mine.method.table(0)["visits"].sum() > 50
    assert any(rule.now != (rule.wanted,) for rule in rules)
    again = NappingAgent.load(mine.save(tmp_path / "mine"), agent)
    assert again.explain() == rules


@pytest.mark.parametrize("options", [{"false_rate": 0.7}, {"min_visits": 0}, {"min_visits": 1.5}, {"explore": -1}])
def test_options_are_checked(options: dict[str, float]) -> None:
    with pytest.raises(BadSpecError):
        RunSpec("cartpole", "a", "napping-ucb", options=options).complete()


def test_every_domain(agent_for: Callable[[str], Agent]) -> None:
    for domain in domains.names():
        spec = RunSpec(domain, "a", "napping-ucb").complete()
        assert Engine(spec, agent_for(domain), slots=2).method.regions(np.arange(2))[0].tolist() == [0, 0]
