"""Options of a domain: declared once, checked, and part of a trial's id where they are not at their defaults."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import nappingrl
from command_line import Napping
from nappingrl.agents.base import Agent
from nappingrl.domains import find_domain
from nappingrl.errors import BadSpecError, UnknownNameError
from nappingrl.options import Option
from nappingrl.registry import unregister
from nappingrl.testing.toys import Corridor, make_walker
from nappingrl.trials.spec import RunSpec
from nappingrl.types import DomainSpec, Observations, Rows


def with_bounds(domain: DomainSpec) -> DomainSpec:
    """Positions in other units have other bounds."""
    scale = np.array([domain.chosen.get("scale", 1.0), 1.0], np.float32)
    return replace(
        domain, observation_low=domain.observation_low * scale, observation_high=domain.observation_high * scale
    )


class Scaled(Corridor):
    """A corridor whose positions can be given in other units, and from the other end."""

    spec = replace(
        Corridor.spec,
        options={
            "scale": Option(1.0, "units of a position per step", low=0.1, high=10.0),
            "end": Option("left", "end from which positions count", ("left", "right")),
        },
        configure=with_bounds,
        oracle="",
    )

    def observe(self, rows: Rows) -> Observations:
        chosen = self.spec.chosen
        sign = -1.0 if chosen.get("end") == "right" else 1.0
        return super().observe(rows) * np.array([sign * chosen.get("scale", 1.0), 1.0], np.float32)


class Rightist:
    """A scripted agent that plays with positions from the right."""

    domain_options = {"end": "right"}  # noqa: RUF012

    def __new__(cls) -> Agent:  # type: ignore[misc]
        return make_walker()


@pytest.fixture(autouse=True)
def scaled() -> Iterator[None]:
    nappingrl.register("domain", "scaled", Scaled)
    nappingrl.register("agent", "scaled-walker", make_walker)
    nappingrl.register("agent", "scaled-rightist", Rightist)
    yield
    unregister("agent", "scaled-rightist")
    unregister("agent", "scaled-walker")
    unregister("domain", "scaled")


def run(agent: str = "walker", **options: object) -> RunSpec:
    return RunSpec("scaled", agent, "frozen", trials=2, protocol="2+2", domain_options=options).complete()


def test_an_option_changes_the_domain() -> None:
    assert find_domain("scaled").observation_high[0] == 3
    domain = find_domain("scaled", {"scale": "2.5"})
    assert domain.chosen == {"scale": 2.5}
    assert domain.observation_high[0] == 7.5
    draws, rows = np.array([[0.9]]), np.zeros(1, np.int64)
    plain, scaled = find_domain("scaled").make(1), domain.make(1)
    plain.reset(rows, draws)
    scaled.reset(rows, draws)
    assert scaled.observe(rows)[0, 0] == pytest.approx(2.5 * plain.observe(rows)[0, 0])


def test_a_described_novelty_keeps_the_options() -> None:
    spec = replace(run(scale=2.0), novelty="obs-noise=0.1")
    assert spec.domain_spec.observation_high[0] == 6.0
    assert spec.domain_spec.make(1).spec.chosen == {"scale": 2.0}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scle": 2}, "unknown option of domain scaled 'scle'.*Did you mean 'scale'"),
        ({"end": "lft"}, "unknown end 'lft'.*Did you mean 'left'"),
        ({"scale": 99}, "scale=99 is outside its range"),
        ({"scale": "wide"}, "scale=wide is not a number"),
    ],
)
def test_mistakes_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises((BadSpecError, UnknownNameError), match=f"(?s){message}"):
        run(**options)


def test_a_domain_without_options_takes_none() -> None:
    for name in ("crossroad", "CartPole-v1"):
        with pytest.raises(BadSpecError, match="has no options"):
            find_domain(name, {"scale": 2})


def test_only_options_that_are_no_defaults_are_part_of_the_id() -> None:
    usual, stated, other = run(), run(scale=1.0, end="left"), run(scale=2.0)
    ids = [spec.trial_specs()[0].id for spec in (usual, stated, other)]
    assert ids[0] == ids[1] != ids[2]
    assert [spec.domain_options for spec in (usual, stated, other)] == [{}, {}, {"scale": 2.0}]


def test_an_agent_brings_its_options_and_a_run_may_give_others() -> None:
    assert run("rightist").domain_options == {"end": "right"}
    assert run("rightist", scale=2.0).domain_options == {"end": "right", "scale": 2.0}
    other = run("rightist", end="left")
    assert other.domain_options == {"end": "left"}
    assert other.complete() == other


def test_the_environments_take_them_as_arguments() -> None:
    env = gymnasium.make("nappingrl/scaled-v0", scale=2.0)
    assert isinstance(env.observation_space, gymnasium.spaces.Box)
    assert env.observation_space.high[0] == 6.0
    envs = gymnasium.make_vec("nappingrl/scaled-v0", num_envs=2, scale=2.0)
    assert isinstance(envs.single_observation_space, gymnasium.spaces.Box)
    assert envs.single_observation_space.high[0] == 6.0
    with pytest.raises(UnknownNameError, match="Did you mean 'scale'"):
        gymnasium.make("nappingrl/scaled-v0", scal=2.0)


def test_on_the_command_line(napping: Napping, tmp_path: Path) -> None:
    assert "options: --domain-option NAME=VALUE" in napping("list", "scaled").out
    assert "scale units of a position per step" in " ".join(napping("list", "scaled").out.split())
    words = ("run", "scaled", "--agent", "walker", "--method", "frozen", "--trials", "2", "--protocol", "2+2")
    napping(*words, "--domain-option", "scale=2", "end=right", "--out", tmp_path / "run")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["spec"]["domain_options"] == {"scale": 2.0, "end": "right"}
    assert "--domain-option scale=2 end=right" in manifest["command"]
    assert napping("replay", tmp_path / "run", "0").status == 0
    done = napping(*words, "--domain-option", "scale", "--out", tmp_path / "other")
    assert "not of the form NAME=VALUE" in done.err
