"""Estimates of time follow the measured costs."""

import pytest

from nappingrl.methods.frozen import Frozen
from nappingrl.registry import domains, methods, register, unregister
from nappingrl.trials.estimates import episode_microseconds, expected_seconds
from nappingrl.trials.spec import RunSpec


def test_costs_of_domain_and_method_add_up() -> None:
    frozen, online = (RunSpec("mountaincar", "dqn", name, trials=10).complete() for name in ("frozen", "online"))
    domain, method = domains.entry("mountaincar"), methods.entry("online")
    assert episode_microseconds(frozen) == pytest.approx(domain.usual_length * domain.cost)
    step = domain.cost + method.cost_in["mountaincar"]
    assert episode_microseconds(online) == pytest.approx(domain.usual_length * step)
    assert expected_seconds(online, 2) == pytest.approx(1e-6 * 800 * (episode_microseconds(online) or 0.0) / 2)


def test_a_method_of_yours_has_the_cost_it_states() -> None:
    cartpole = domains.entry("cartpole")
    register("method", "thinker", Frozen, cost=50.0)
    try:
        spec = RunSpec("cartpole", "ppo", "thinker").complete()
        assert episode_microseconds(spec) == pytest.approx(cartpole.usual_length * (cartpole.cost + 50.0))
    finally:
        unregister("method", "thinker")


def test_an_environment_that_is_no_domain_has_no_estimate() -> None:
    assert expected_seconds(RunSpec("Acrobot-v1", "x", "auto")) is None
