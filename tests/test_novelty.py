"""Novelties on their own; those of the domains are in tests/domains."""

import numpy as np
import pytest

from nappingrl.errors import BadSpecError
from nappingrl.novelty import Novelty

DEFAULTS = {"a": 1.0, "b": -2.0, "c": 5.0}
BOTH = Novelty("both", {"a": (10.0, 20.0), "b": (-1.0, 1.0)})


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_draws_named_parameters_and_keeps_the_others() -> None:
    draws = [BOTH.sample(rng(seed), DEFAULTS) for seed in range(100)]
    assert all(list(draw) == list(DEFAULTS) for draw in draws)
    assert {draw["c"] for draw in draws} == {5.0}
    for name, (low, high) in BOTH.ranges.items():
        values = [draw[name] for draw in draws]
        assert low <= min(values) < low + (high - low) / 10
        assert high - (high - low) / 10 < max(values) <= high
    places = np.array([((draw["a"] - 10) / 10, (draw["b"] + 1) / 2) for draw in draws])
    assert abs(np.corrcoef(places.T)[0, 1]) < 0.5, "drawn apart"


def test_the_generator_decides_everything() -> None:
    assert BOTH.sample(rng(3), DEFAULTS) == BOTH.sample(rng(3), DEFAULTS)
    assert BOTH.sample(rng(3), DEFAULTS) != BOTH.sample(rng(4), DEFAULTS)


def test_defaults_are_left_alone() -> None:
    defaults = dict(DEFAULTS)
    BOTH.sample(rng(), defaults)
    assert defaults == DEFAULTS


@pytest.mark.parametrize("strength", [0.1, 0.5, 1.0])
def test_strength_is_the_share_of_the_way(strength: float) -> None:
    full, part = BOTH.sample(rng(), DEFAULTS), BOTH.sample(rng(), DEFAULTS, strength)
    for name, default in DEFAULTS.items():
        assert part[name] == pytest.approx(default + strength * (full[name] - default))


@pytest.mark.parametrize("strength", [0.0, -0.5, 1.001, float("nan"), float("inf")])
def test_strength_outside_is_refused(strength: float) -> None:
    with pytest.raises(BadSpecError, match=r"outside \(0, 1\]"):
        BOTH.sample(rng(), DEFAULTS, strength)
