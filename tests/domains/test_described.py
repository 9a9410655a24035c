"""Descriptions of novelties in built-in domains, as with --env."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import polars as pl
import pytest

import nappingrl
from nappingrl.agents import load
from nappingrl.domains import find_domain
from nappingrl.errors import BadSpecError, NappingError
from nappingrl.trials.engine import Engine
from nappingrl.trials.runner import replay, run_into
from nappingrl.trials.spec import RunSpec
from nappingrl.types import DomainSpec


def rows_of(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


def test_exact_values_reach_the_trials() -> None:
    run = nappingrl.run("cartpole", "ppo", "frozen", novelty=" gravity = 20; force=7 ", trials=2, protocol="1+1")
    assert run.rows["novelty"].unique().to_list() == ["gravity=20;force=7"]
    assert run.rows["param_gravity"].to_list() == [9.8, 20.0] * 2
    assert run.rows["param_force"].to_list() == [10.0, 7.0] * 2
    assert run.rows["trial"][0].startswith("cartpole/ppo/frozen/gravity=20;force=7/0/0-")


def test_ranges_are_drawn_for_each_trial() -> None:
    rows = nappingrl.run("mountaincar", "dqn", "frozen", novelty="force=0.0005..0.002", trials=3, protocol="1+1").rows
    drawn = rows.filter(pl.col("phase") == "novel")["param_force"]
    assert drawn.n_unique() == 3
    assert 0.0005 <= drawn.min() < drawn.max() <= 0.002  # type: ignore[operator]


@pytest.mark.parametrize("novelty", ["action-remap=1,0", "obs-scale[2]=-1", "obs-shift[2]=0.5", "obs-remap=2,1,0,3"])
def test_a_change_around_the_domain_harms_the_agent(novelty: str) -> None:
    rows = nappingrl.run("cartpole", "ppo", "frozen", novelty=novelty, trials=3, protocol="2+2").rows
    means = dict(rows.group_by("phase").agg(pl.col("return").mean()).iter_rows())
    assert means["pre"] == 200.0
    assert means["novel"] < 150.0


def test_a_domain_is_changed_as_its_environment() -> None:
    """The same change by array operations and around gymnasium's environment of the domain."""
    text = "force=7;action-delay=1;obs-noise[1]=0.1;action-noise=0.2"
    domain = find_domain("cartpole").for_novelties([text])
    copies, uniforms = domain.make(3), np.random.default_rng(0).random((1, domain.n_reset_draws))
    drawn = domain.novelty(text).sample(np.random.default_rng(0), domain.parameters)
    copies.apply(rows_of(1), drawn)
    copies.reset(rows_of(1), uniforms)
    env: Any = nappingrl.apply_novelty(gymnasium.make("nappingrl/CartPole-v0"), text)
    env.reset(seed=int(uniforms[0, 0] * 2**31))
    env.unwrapped.domain.reset(rows_of(0), uniforms)
    for step in range(12):
        observation, reward, terminated, *_ = env.step(np.int64(step % 2))
        rewards, ended = copies.step(rows_of(1), rows_of(step % 2))
        if step == 0:
            continue  # the environment drew the noise of its own reset
        assert observation[[0, 2, 3]].tolist() == copies.observe(rows_of(1))[0, [0, 2, 3]].tolist()
        assert (reward, terminated) == (rewards[0], ended[0])


def test_observations_do_not_change_when_asked_for_again() -> None:
    copies = find_domain("crossroad").for_novelties(["obs-noise=0.1"]).make(2)
    copies.apply(rows_of(0, 1), {"obs-noise": 0.1})
    copies.reset(rows_of(0, 1), np.array([[0.1], [0.2]]))
    first = copies.observe(rows_of(0, 1))
    np.testing.assert_array_equal(first, copies.observe(rows_of(0, 1)))
    assert (first[0] != first[1]).any()


def test_a_trial_alone_is_the_trial_in_a_batch() -> None:
    text = "gravity=5..20;action-delay=1;obs-noise=0.05;action-noise=0.1"
    run = RunSpec("cartpole", "ppo", novelty=text, trials=4, protocol="1+2").complete()
    agent, trials = load("ppo", "cartpole"), run.trial_specs()
    together = Engine(run, agent, slots=2).run_trials(trials)
    for i in (0, 3):
        assert Engine(run, agent, slots=1).run_trials([trials[i]]).equals(together.filter(pl.col("number") == i))
    assert together.filter(pl.col("phase") == "pre")["param_obs-noise"].unique().to_list() == [0.0]


def test_a_run_is_replayed(tmp_path: Path) -> None:
    spec = RunSpec("cartpole", "ppo", "napping", "force=-7;obs-noise=0.01", trials=2, protocol="1+2").complete()
    folder = run_into(tmp_path, spec, load("ppo", "cartpole"))
    assert folder.manifest.spec["novelty"] == "force=-7;obs-noise=0.01"
    assert folder.manifest.parameters["obs-noise"] == 0.0
    assert replay(folder, "1").is_same


def test_named_novelties_leave_the_domain_as_it_is() -> None:
    domain = find_domain("cartpole")
    assert domain.for_novelties(["physics"]).parameters == domain.parameters
    assert domain.for_novelties(["physics"]).oracle
    assert domain.for_novelties(["gravity=20"]).oracle, "an oracle knows the domain's own parameters"
    assert not domain.for_novelties(["action-delay=1"]).oracle


def test_strength_pulls_values() -> None:
    rows = nappingrl.run("cartpole", "ppo", "frozen", novelty="force=20", strength=0.5, trials=1, protocol="1+1").rows
    assert rows["param_force"].to_list() == [10.0, 15.0]


@pytest.mark.parametrize(
    ("domain", "novelty", "text"),
    [
        ("cartpole", "gravty=20", "cartpole has no constant 'gravty'.* Did you mean 'gravity'"),
        ("cartpole", "gravity=9.8", "that is what it is already"),
        ("cartpole", "action-remap=0,1", "that is what it is already"),
        ("cartpole", "length=-1", "length=-1 must be greater than 0 in cartpole"),
        ("cartpole", "length=follows; force=2", "length does not follow"),
        (
            "cartpole",
            "action-scale=2",
            "needs continuous actions, but those of cartpole are discrete; use action-remap",
        ),
        ("cartpole", "other-env=CartPole-v1", "other-env replaces a gymnasium environment, not the domain cartpole"),
        ("angrybirds", "obs-shift=1", "obs-shift cannot be changed in angrybirds"),
        ("cartpole", "obs-shift[4]=1", r"allowed: obs-shift\[0\] to obs-shift\[3\]"),
    ],
)
def test_bad_descriptions_are_refused_in_one_line(domain: str, novelty: str, text: str) -> None:
    with pytest.raises(NappingError, match=text) as caught:
        RunSpec(domain, novelty=novelty).complete()
    assert "\n" not in str(caught.value)


def test_whole_numbers_have_no_strength() -> None:
    with pytest.raises(BadSpecError, match="has no meaning for action-delay"):
        RunSpec("cartpole", novelty="action-delay=1", strength=0.5).complete()


class Lane(nappingrl.Domain):
    """A domain from outside."""

    spec = DomainSpec(
        observation_low=np.array([-3.0], np.float32),
        observation_high=np.array([3.0], np.float32),
        n_actions=2,
        horizon=20,
        parameters={"steering": 0.4},
        n_reset_draws=1,
    )

    def __init__(self, n: int, spec: DomainSpec | None = None) -> None:
        super().__init__(n, spec)
        self._x = np.zeros(n)

    def reset(self, rows: Any, uniforms: Any) -> None:
        self._x[rows] = uniforms[:, 0] - 0.5

    def observe(self, rows: Any) -> Any:
        return self._x[rows, None].astype(np.float32)

    def step(self, rows: Any, actions: Any) -> Any:
        self._x[rows] += np.where(actions == 1, 1, -1) * self._parameters[rows, 0]
        return np.ones(len(rows)), np.abs(self._x[rows]) > 1.5


def test_domains_from_outside_take_descriptions() -> None:
    nappingrl.register("domain", "described-lane", Lane, horizon=20)
    try:
        full = RunSpec("described-lane", "x.zip", "frozen", "steering=-0.5..-0.3;action-delay=1", protocol="1+1")
        assert list(full.domain_spec.parameters) == ["steering", "action-delay"]
    finally:
        from nappingrl.registry import domains

        domains.remove("described-lane")
