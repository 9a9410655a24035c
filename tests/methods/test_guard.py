"""The guard: who plays, and what it may cost."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nappingrl
from nappingrl.adaptation import AdaptationSpec
from nappingrl.domains import find_domain
from nappingrl.methods.base import Method
from nappingrl.methods.guard import Guard, GuardedMethod
from nappingrl.registry import methods

ROW = np.array([0])


def play(
    frozen: list[float], adapted: list[float], n: int, budget: float = 0.5
) -> tuple[Guard, list[tuple[str, float]]]:
    """N whole episodes after an alarm; who would play takes the next number of its list."""
    guard = Guard(1, budget)
    guard.start(ROW)
    guard.on_context_change(ROW, np.array([1]))
    played = []
    for i in range(n):
        is_frozen = bool(guard.plays_frozen(ROW)[0])
        value = (frozen if is_frozen else adapted)[i % len(frozen if is_frozen else adapted)]
        guard.returns[0] = value
        guard.end_episode(ROW)
        played.append(("frozen" if is_frozen else "adapted", value))
    return guard, played


def who(played: list[tuple[str, float]]) -> str:
    return "".join(name[0] for name, _ in played)


def test_the_first_episode_is_the_reference_and_a_better_method_then_plays_on():
    assert who(play([30.0], [200.0], 12)[1]) == "f" + "a" * 11


def test_a_method_that_loses_more_than_the_budget_is_stopped_and_tried_again_ever_later():
    guard, played = play([100.0], [20.0], 24)
    assert who(played) == "fafaffaffffaffffffffafff"
    assert guard.n_stopped[0] == 5


def test_small_losses_add_up_and_gains_do_not_buy_a_later_loss():
    assert who(play([100.0], [80.0], 5)[1]) == "faaaf", "20 + 20 + 20 is more than 50"
    assert who(play([100.0], [0.0, 500.0, 500.0, 500.0, 0.0], 6)[1]) == "faaaaf"


def test_before_an_alarm_and_after_the_way_back_the_method_is_free():
    guard = Guard(2)
    guard.start(np.array([0, 1]))
    assert not guard.plays_frozen(np.array([0, 1])).any()
    guard.on_context_change(np.array([1]), np.array([1]))
    assert guard.plays_frozen(np.array([0, 1])).tolist() == [False, True]
    guard.on_context_change(np.array([1]), np.array([0]))
    assert not guard.plays_frozen(np.array([0, 1])).any()


def test_the_frozen_agent_takes_over_where_too_much_is_lost_already():
    guard = Guard(1)
    guard.start(ROW)
    guard.on_context_change(ROW, np.array([1]))
    guard.returns[0] = -100.0
    guard.end_episode(ROW)
    for step in range(1, 200):
        assert guard.plays_frozen(ROW)[0] == (step > 151), "f - b = -100 - 50"
        guard.step(ROW, np.array([-1.0]))


returns = st.lists(st.floats(-100, 100), min_size=1, max_size=30)


@settings(max_examples=300, deadline=None)
@given(returns, returns, st.integers(2, 200), st.floats(0.1, 2))
def test_the_bound_that_it_states_holds_whatever_the_method_does(frozen, adapted, n, budget):
    guard = Guard(1, budget)
    guard.start(ROW)
    guard.on_context_change(ROW, np.array([1]))
    short, worst, most = 0.0, 0.0, 0.0
    for i in range(n):
        is_frozen = bool(guard.plays_frozen(ROW)[0])
        value = (frozen if is_frozen else adapted)[i % len(frozen if is_frozen else adapted)]
        if not is_frozen:
            loss = float(guard.reference(ROW)[0]) - value
            short, worst = short + loss, max(worst, loss)
            most = max(most, float(guard.allowance(ROW)[0]))
        guard.returns[0] = value
        guard.end_episode(ROW)
    assert short <= (most + worst) * (1 + math.log2(n + 1)) + 1e-9


@pytest.mark.parametrize("method", ["napping", "foresight"])
def test_a_guarded_method_is_the_frozen_agent_in_the_episode_of_the_alarm(method):
    options = {"trials": 3, "seed": 5, "protocol": "6+2", "detector": "given"}
    frozen, mine = (
        nappingrl.run("cartpole", "ppo", m, guard=g, **options).rows for m, g in (("frozen", False), (method, True))
    )
    early = mine["episode"] <= 0
    assert mine.filter(early)["return"].to_list() == frozen.filter(early)["return"].to_list()
    assert mine["return"].to_list() != frozen["return"].to_list()


@pytest.mark.parametrize("name", methods.names())
def test_every_method_can_be_guarded(name):
    domain = find_domain("cartpole")
    spec = AdaptationSpec(name, guard=True).resolve(domain)
    guarded = spec.build(nappingrl.load_agent("ppo", "cartpole"), domain, 2).method
    assert isinstance(guarded, GuardedMethod)
    assert type(guarded.method) is methods.get(name)
    assert guarded.can_be_saved == methods.get(name).can_be_saved


def test_the_guard_passes_every_call_of_the_contract_on():
    contract = {name for name, member in vars(Method).items() if callable(member) or isinstance(member, property)}
    own = {"__init__", "score", "scores_of", "mask", "option", "never_failed"}  # they read what both share
    assert contract - own <= set(vars(GuardedMethod))
