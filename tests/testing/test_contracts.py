"""Every registered domain, method and detector keeps its contract, and the checks find what breaks it."""

from dataclasses import replace

import numpy as np
import pytest

from nappingrl.agents.zoo import agent_names
from nappingrl.detectors.base import Detector
from nappingrl.domains.base import Domain
from nappingrl.methods.base import Method
from nappingrl.novelties.novelty import Novelty
from nappingrl.registry import detectors, domains, methods, register, unregister
from nappingrl.score import Score
from nappingrl.testing import check_agent, check_detector, check_domain, check_method
from nappingrl.testing.toys import Corridor


@pytest.mark.parametrize("name", domains.names())
def test_domain(name: str) -> None:
    hidden = ("pig-color",) if name == "angrybirds" else ()  # its agents read labels
    check_domain(name, steps=6 if domains.entry(name).horizon <= 10 else 40, hidden=hidden)


@pytest.mark.parametrize("name", methods.names())
def test_method(name: str) -> None:
    check_method(name)


@pytest.mark.parametrize("name", detectors.names())
def test_detector(name: str) -> None:
    if name == "adwin":
        pytest.importorskip("river")
    check_detector(name)


@pytest.mark.parametrize(("domain", "name"), [(domain, name) for domain in domains for name in agent_names(domain)])
def test_agent(domain: str, name: str) -> None:
    check_agent(name, domain)


def test_the_toy_domain_keeps_the_contract() -> None:
    check_domain(Corridor)


class Sticky(Corridor):
    """Starts where it stopped."""

    def reset(self, rows, uniforms):
        pass


class Shared(Corridor):
    """Moves all copies at once."""

    def step(self, rows, actions):
        rewards, terminated = super().step(rows, actions)
        self._state[:, 0] += 0.001 * len(rows)
        return rewards, terminated


class Lax(Corridor):
    """Takes any parameter."""

    def apply(self, rows, changes):
        self._parameters[rows] = [{**self.spec.parameters, **(changes or {})}["step"]]


def corridor_with(**changes):
    return replace(Corridor.spec, **changes)


NOTHING = Novelty("reversed", {"step": (0.5, 0.5)}, "as it was")
TYPO = Novelty("reversed", {"stepp": (1.0, 2.0)}, "a parameter that does not exist")
INFINITE = Score("nearer", lambda o, a, o2, r, e: np.full(len(a), np.inf), description="always infinite")
BROKEN = [
    (Sticky, "outside its bounds|same uniform numbers"),
    (Shared, "beside others|not named|same start"),
    (Lax, "refuse an unknown parameter"),
    (corridor_with(observation_high=np.ones(2, np.float32)), "outside its bounds"),
    (corridor_with(action_names=("LEFT",)), "one action name per action"),
    (corridor_with(novelties={"reversed": NOTHING}), "changes nothing"),
    (corridor_with(novelties={"reversed": TYPO}), "unknown parameters"),
    (corridor_with(scores={"nearer": INFINITE}), "gave"),
    (corridor_with(scores={"nearer": Score("nearer", lambda o, a, o2, r, e: r)}), "no description"),
]


@pytest.mark.parametrize(("domain", "text"), BROKEN)
def test_a_broken_domain_is_found(domain: type[Domain], text: str) -> None:
    with pytest.raises(AssertionError, match=text):
        check_domain(domain)


class Eager(Method):
    """Acts differently before the alarm."""

    def act(self, rows, observations, decision):
        return np.zeros_like(decision.actions)


class Nosy(Method):
    """Acts by what other trials do."""

    def act(self, rows, observations, decision):
        return decision.actions if len(rows) % 2 else 2 - decision.actions


class Forgetful(Method):
    """Counts steps, says that it can be saved, and saves nothing."""

    can_be_saved = True

    def start(self, rows, keys):
        self.steps = 0

    def act(self, rows, observations, decision):
        self.steps += 1
        return (decision.actions + self.steps) % 3 if self.n == 1 else decision.actions


@pytest.mark.parametrize(
    ("method", "text"), [(Eager, "before the alarm"), (Nosy, "depend on"), (Forgetful, "loaded agent|depend on|forget")]
)
def test_a_broken_method_is_found(method: type[Method], text: str) -> None:
    register("method", "broken", method)
    try:
        with pytest.raises(AssertionError, match=text):
            check_method("broken")
    finally:
        unregister("method", "broken")


class Carried(Detector):
    """Believes what the trial before it believed."""

    def start(self, rows, episode):
        pass

    def end_episode(self, rows, returns, next_episodes):
        self.context[rows] += 1


class Pooled(Detector):
    """Counts the trials beside it."""

    def end_episode(self, rows, returns, next_episodes):
        self.context[rows] = len(rows)


class Lossy(Detector):
    """Saves nothing."""

    def end_episode(self, rows, returns, next_episodes):
        self.context[rows] += 1

    def state(self):
        return {}

    def restore(self, state):
        pass


class Leaky(Detector):
    """Changes the belief of all trials."""

    def end_episode(self, rows, returns, next_episodes):
        self.context[:] = 1


class Counting(Detector):
    """Counts steps over the ends of trials."""

    def __init__(self, n):
        super().__init__(n)
        self._steps = np.zeros(n, np.int64)

    def step(self, rows, transition):
        self._steps[rows] += 1

    def end_episode(self, rows, returns, next_episodes):
        self.context[rows] = self._steps[rows] > 12
        self._steps[rows] = 0


@pytest.mark.parametrize(
    ("detector", "text"),
    [
        (Leaky, "not given"),
        (Counting, "does not forget"),
        (Carried, "does not forget"),
        (Pooled, "depend on"),
        (Lossy, "does not continue"),
    ],
)
def test_a_broken_detector_is_found(detector: type[Detector], text: str) -> None:
    with pytest.raises(AssertionError, match=text):
        check_detector(detector)
