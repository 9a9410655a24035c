"""One resolution of method, score, detector and options, and one loop."""

from typing import Any

import numpy as np
import pytest

from nappingrl.adaptation import AdaptationSpec
from nappingrl.agents.base import Agent
from nappingrl.domains import find_domain
from nappingrl.errors import BadSpecError
from nappingrl.play.match import Match, MatchSpec
from nappingrl.registry import methods
from nappingrl.trials.spec import RunSpec, TrialSpec
from nappingrl.trials.spec_record import options_hash
from nappingrl.types import Transition

TAKES = {
    "napping": {"rule", "space", "score"},
    "napping-no-memory": {"rule", "space", "score"},
    "napping-ucb": {"space", "score"},
    "switch-on-failure": {"score"},
    "controller": {"score"},
}
VALUES: dict[str, Any] = {"rule": "printed", "space": "raw", "score": "terminal"}


def taken_by(method: str) -> set[str]:
    method_class = methods.get(method)
    return set(method_class.options) & {"rule", "space"} | ({"score"} if method_class.takes_score else set())


@pytest.mark.parametrize("method", methods.names())
def test_every_method_declares_what_it_takes(method: str) -> None:
    assert taken_by(method) == TAKES.get(method, set())


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("method", methods.names())
def test_what_a_method_does_not_take_is_refused_in_one_line(method: str, name: str) -> None:
    given = {"score": VALUES[name]} if name == "score" else {"options": {name: VALUES[name]}}
    run = RunSpec("cartpole", "ppo", method, **given)
    if name in taken_by(method):
        run.complete()
        return
    with pytest.raises(BadSpecError, match=f"method '{method}' takes no {name}; methods that do: ") as caught:
        run.complete()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("method", methods.names())
def test_defaults_that_a_method_does_not_take_are_in_neither_spec_nor_id(method: str) -> None:
    run = RunSpec("cartpole", "ppo", method).complete()
    assert set(run.options) == taken_by(method) & {"rule", "space"}
    assert bool(run.score) == ("score" in taken_by(method))


def test_the_detector_is_no_option_of_the_method() -> None:
    run = RunSpec("cartpole", "ppo", "frozen", detector="residual").complete()
    assert run.detector == "residual"
    assert options_hash(run) != options_hash(RunSpec("cartpole", "ppo", "frozen").complete())
    assert TrialSpec(run, "physics", 0).id.startswith("cartpole/ppo/frozen/physics/0/0-")


def test_resolving_twice_changes_nothing() -> None:
    domain = find_domain("cartpole")
    once = AdaptationSpec("napping", options={"choice": "preference"}).resolve(domain)
    assert once.resolve(domain) == once


def test_an_alarm_reaches_the_method_before_it_learns(agent: Agent) -> None:
    domain = find_domain("cartpole")
    adaptation = AdaptationSpec("napping", detector="given").resolve(domain).build(agent, domain, 2)
    rows = np.arange(2)
    adaptation.start(rows, rows.astype(np.uint64), -1)
    assert adaptation.begin_episode(rows).tolist() == []
    adaptation.begin_phase(rows[1:], is_novel=True)
    assert adaptation.begin_episode(rows).tolist() == [1]
    assert adaptation.detected(rows).tolist() == [False, True]
    observations = np.full((2, 4), 0.1, np.float32)
    actions, decision = adaptation.act(rows, observations)
    fell = np.ones(2, np.bool_)
    worse = observations + np.array([0, 0, 0.1, 1.0], np.float32)
    adaptation.observe(rows, Transition(observations, decision, actions, worse, np.ones(2), fell, ~fell))
    assert adaptation.method.regions(rows)[0].tolist() == [0, 1], "only the alarmed trial learns"


@pytest.mark.parametrize("n_steps", [66, 120])
def test_a_change_amid_an_episode_is_told_apart_from_what_came_before(n_steps: int) -> None:
    """The calm steps of the episode are of the original world: with them, the old world would seem to go on."""
    match = Match(MatchSpec("cartpole", method="auto", n_before=10))
    for _ in range(n_steps):
        match.step()
    match.change_world({"action-remap[0]": 1.0, "action-remap[1]": 0.0})
    while match.adapting.episode < 3:
        match.step()
    assert [episode.total for episode in match.adapting.episodes[-2:]] == [200.0, 200.0]
