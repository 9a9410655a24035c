"""The search among simple policies."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from methods.foresight.scenes import KIND, SEEDS, TERMINATIONS, Array, D, rollouts_of
from nappingrl.methods.foresight.policies import LINEAR, n_terms
from nappingrl.methods.foresight.rollout import COVERAGE, RETURN, Rollouts, evaluate
from nappingrl.methods.foresight.search import Effort, search

EFFORT = Effort(20, 2, 10, n_parents=8, mutation_size=0.5, mutation_decay=0.6, initial_bias=0.3)
NOTHING = np.zeros((0, 2, D + 1))


def find(
    rollouts: Rollouts, known: Array, key: int, kind: int = LINEAR, effort: Effort = EFFORT
) -> tuple[float, Array]:
    """The value and the weights of the best policy."""
    best = np.full((2, n_terms(kind, D)), np.nan)
    return search(rollouts, kind, known, effort, np.uint64(key), best), best


@given(SEEDS, st.sampled_from([RETURN, COVERAGE]), st.sampled_from(["none", "bad", "wanted", "both"]), KIND)
@settings(max_examples=25, deadline=None)
def test_the_value_is_that_of_the_policy_found(seed: int, goal: int, name: str, kind: int) -> None:
    rollouts = rollouts_of(seed, TERMINATIONS[name], goal=goal)
    value, best = find(rollouts, np.zeros((0, 2, n_terms(kind, D))), seed, kind)
    assert np.isfinite(best).all()
    assert value == evaluate(rollouts, kind, best, -np.inf)


@given(SEEDS, st.integers(0, 2**64 - 1))
@settings(max_examples=10, deadline=None)
def test_the_search_is_decided_by_its_key(seed: int, key: int) -> None:
    rollouts = rollouts_of(seed, TERMINATIONS["both"])
    (value, best), (again, same) = (find(rollouts, NOTHING, key) for _ in range(2))
    assert value == again
    np.testing.assert_array_equal(best, same)
    assert not np.array_equal(best, find(rollouts, NOTHING, key ^ 1)[1])


@given(SEEDS, st.integers(1, 12), st.sampled_from(list(TERMINATIONS)))
@settings(max_examples=30, deadline=None)
def test_the_search_is_never_worse_than_the_known_policies(seed: int, n_known: int, name: str) -> None:
    """Also with more of them than parents; without any effort the best of them is the result."""
    known = np.random.default_rng(seed).normal(size=(n_known, 2, D + 1))
    rollouts = rollouts_of(seed, TERMINATIONS[name])
    values = [evaluate(rollouts, LINEAR, weights, -np.inf) for weights in known]
    assert find(rollouts, known, seed)[0] >= max(values)
    alone, best = find(rollouts, known, seed, effort=EFFORT._replace(n_initial=0, n_rounds=0, n_mutants=0))
    assert alone == max(values)
    assert any(np.array_equal(best, weights) for weights, value in zip(known, values, strict=True) if value == alone)


def test_more_effort_finds_more() -> None:
    scenes = [rollouts_of(seed, TERMINATIONS["both"]) for seed in range(20)]
    little, much = EFFORT._replace(n_initial=3, n_rounds=0), EFFORT._replace(n_initial=30, n_rounds=3, n_mutants=20)
    few = [find(rollouts, NOTHING, 1, effort=little)[0] for rollouts in scenes]
    many = [find(rollouts, NOTHING, 1, effort=much)[0] for rollouts in scenes]
    assert all(a <= b for a, b in zip(few, many, strict=True))  # the same first policies
    assert np.mean(many) > np.mean(few) + 0.1
