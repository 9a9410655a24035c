"""The arbiter of `auto`: who plays the next episode."""

from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nappingrl.agents.mlp import MlpAgent
from nappingrl.methods.auto.arbiter import AGENT, Arbiter, Offer, Player
from nappingrl.methods.auto.usual import NOTHING, Usual, expected_returns, usual_returns
from nappingrl.methods.base import Forecast
from nappingrl.types import Floats, Observations
from nappingrl.world_model.transitions import Transitions

USUAL = Usual(40, 200.0, 10.0, 0.0, 200.0)
ONE, TWO = 1, 2


def arbiter(agent_returns: list[float], usual: Usual = USUAL, n_players: int = 3) -> Arbiter:
    made = Arbiter.of(usual, n_players)
    for total in agent_returns:
        made.judge(AGENT, total, 0.0, [])
    return made


def offer(number: int = ONE, *, is_certain: bool = False, forecast: Forecast | None = None) -> Offer:
    return Offer(number, is_certain, forecast)


def test_the_agent_plays_first() -> None:
    assert arbiter([]).choose([offer(forecast=Forecast(10.0, 200.0))]) == AGENT


def test_the_agent_plays_on_where_the_change_does_not_hurt() -> None:
    made = arbiter([190.0, 195.0])
    assert made.choose([offer(), offer(TWO, forecast=Forecast(190.0, 195.0))]) == AGENT
    assert made.why == "the change does not hurt it"


def test_a_trusted_forecast_may_improve_on_an_agent_that_the_change_does_not_hurt() -> None:
    assert arbiter([190.0, 195.0]).choose([offer(forecast=Forecast(190.0, 400.0))]) == ONE


def test_a_candidate_with_a_trusted_forecast_plays_where_the_change_hurts() -> None:
    assert arbiter([150.0]).choose([offer(forecast=Forecast(145.0, 200.0))]) == ONE


def test_a_forecast_that_misses_what_the_agent_earned_is_not_trusted() -> None:
    made = arbiter([150.0])
    assert made.choose([offer(forecast=Forecast(50.0, 200.0))]) == AGENT
    assert made.why == "no candidate can be trusted to earn more"


def test_an_untrusted_candidate_plays_where_little_is_left_to_lose() -> None:
    assert arbiter([9.0, 10.0, 9.0]).choose([offer()]) == ONE
    assert arbiter([9.0, 10.0, 150.0]).choose([offer()]) == AGENT
    assert arbiter([9.0]).choose([offer()]) == AGENT


def test_a_certain_candidate_plays_at_once() -> None:
    assert arbiter([]).choose([offer(is_certain=True)]) == ONE


def test_a_certain_candidate_that_earns_less_than_the_agent_gives_way() -> None:
    made, offers = arbiter([150.0]), [offer(is_certain=True)]
    assert made.choose(offers) == ONE
    made.judge(ONE, 20.0, 0.0, offers)
    assert made.choose(offers) == AGENT


def test_the_agent_shows_what_it_earns_if_a_certain_candidate_loses_much() -> None:
    made, offers = arbiter([]), [offer(is_certain=True)]
    made.judge(ONE, 180.0, 0.0, offers)
    assert made.choose(offers) == ONE
    made, offers = arbiter([]), [offer(is_certain=True)]
    for _ in range(3):
        made.judge(ONE, 50.0, 0.0, offers)
    assert made.choose(offers) == AGENT
    made.judge(AGENT, 9.0, 0.0, offers)
    assert made.choose(offers) == ONE


def test_a_promise_does_not_displace_a_certain_candidate_that_earns_what_was_usual() -> None:
    made, offers = arbiter([20.0]), [offer(is_certain=True), offer(TWO, forecast=Forecast(20.0, 400.0))]
    made.judge(ONE, 198.0, 0.0, offers)
    assert made.choose(offers) == ONE
    made, offers = arbiter([20.0]), [offer(is_certain=True), offer(TWO, forecast=Forecast(20.0, 400.0))]
    made.judge(ONE, 150.0, 0.0, offers)
    assert made.choose(offers) == TWO, "it has recovered only in part"


def test_a_promise_does_not_displace_a_candidate_that_has_earned_what_was_usual() -> None:
    made, offers = arbiter([20.0] * 3), [offer(), offer(TWO, forecast=Forecast(20.0, 400.0))]
    made.judge(ONE, 200.0, 0.0, offers)
    assert made.choose(offers) == TWO, "one episode shows little"
    for _ in range(2):
        made.judge(ONE, 200.0, 0.0, offers)
    assert made.choose(offers) == ONE


def test_the_candidate_that_earned_more_plays_on() -> None:
    made, offers = arbiter([9.0, 9.0, 9.0]), [offer(ONE), offer(TWO)]
    made.judge(ONE, 12.0, 0.0, offers)
    made.judge(TWO, 190.0, 0.0, offers)
    assert made.choose(offers) == TWO


def test_a_candidate_sits_out_longer_each_time() -> None:
    """Its good episodes of old have it tried again and again."""
    made, offers = arbiter([100.0]), [offer(forecast=Forecast(100.0, 200.0))]
    for _ in range(8):
        made.judge(ONE, 300.0, 0.0, offers)
    played = []
    for _ in range(19):
        number = made.choose(offers)
        played.append(number)
        made.judge(number, -200.0 if number else 100.0, 0.0, offers)
    runs = [(number, len(list(run))) for number, run in groupby(played)]
    pauses = [length for number, length in runs[:-1] if number == AGENT]
    assert pauses == [1, 2, 4]
    assert made.players[ONE].n_stopped == sum(number == ONE for number, _ in runs) == 4


@given(st.lists(st.floats(-500, 500), min_size=1, max_size=60))
def test_what_a_candidate_costs_is_bounded(losses: list[float]) -> None:
    """As in `methods.guard`: each try ends with the first episode that takes the deficit over the loss."""
    made, offers = arbiter([50.0, 50.0, 50.0]), [offer()]
    short = tries = 0.0
    worst = max(0.0, *(50.0 - total for total in losses))
    was_playing = False
    for total in losses:
        number = made.choose(offers)
        tries += number == ONE and not was_playing
        was_playing = number == ONE
        short += 50.0 - total if number == ONE else 0.0
        made.judge(number, total if number == ONE else 50.0, 0.0, offers)
        if made.players[ONE].wait:
            was_playing = False
    allowance = made.loss(AGENT)
    assert short <= (allowance + worst) * (1 + np.log2(len(losses) + 1)) + 1e-6


def test_without_a_usual_return_candidates_are_tried() -> None:
    for total in (9.0, -9.0, 0.0):  # 0: a sparse reward
        made = arbiter([total] * 3, NOTHING)
        assert made.choose([offer()]) == ONE


def test_a_player_that_does_something_else_is_judged_anew() -> None:
    player = Player()
    player.follow("a <-> b")
    player.add(10.0)
    player.follow("a <-> b")
    assert player.returns == [10.0]
    player.follow("a <-> c")
    assert player.returns == []


def test_a_candidate_that_broke_its_promise_is_not_trusted_again() -> None:
    """It plays again only where little is left to lose, or after it has earned more."""
    made, offers = arbiter([150.0]), [offer(forecast=Forecast(150.0, 200.0))]
    assert made.choose(offers) == ONE
    made.judge(ONE, 20.0, 0.0, offers)
    assert made.players[ONE].n_stopped == 1
    for _ in range(20):
        assert made.choose(offers) == AGENT
        made.judge(AGENT, 150.0, 0.0, offers)
    assert made.why == "what was tried earns less"


def test_one_bad_episode_among_good_ones_does_not_end_a_candidate() -> None:
    """Its mean is below the agent's, but most of its episodes are better; it sits out one episode."""
    made, offers = arbiter([150.0]), [offer(forecast=Forecast(150.0, 200.0))]
    for total in (200.0, 198.0, 0.0):
        assert made.choose(offers) == ONE
        made.judge(ONE, total, 0.0, offers)
    assert made.players[ONE].n_stopped == 1
    assert made.players[ONE].mean < 150
    assert made.choose(offers) == AGENT
    made.judge(AGENT, 150.0, 0.0, offers)
    assert made.choose(offers) == ONE


def test_a_loss_is_severe_by_what_can_be_lost() -> None:
    """Each step costs 1: the usual episode of 20 steps could have been one of 500."""
    usual = Usual(40, -20.0, 2.0, -25.0, 480.0)
    assert arbiter([-60.0, -60.0, -55.0], usual).choose([offer()]) == AGENT
    assert arbiter([-500.0, -500.0, -300.0], usual).choose([offer()]) == ONE
    assert arbiter([-500.0, -500.0, -250.0], usual).choose([offer()]) == AGENT


def test_a_rewarded_step_makes_no_episode_too_long() -> None:
    assert arbiter([90.0] * 3, USUAL).choose([offer()]) == ONE
    assert arbiter([110.0] * 3, USUAL).choose([offer()]) == AGENT


def episodes(rewards: list[float], numbers: list[int]) -> Transitions:
    n = len(rewards)
    return Transitions(
        np.zeros((n, 2)), np.zeros((n, 1)), np.zeros((n, 2)), np.array(rewards), np.zeros(n, np.bool_),
        np.array(numbers),
    )  # fmt: skip


def test_usual_returns_are_those_of_episodes() -> None:
    transitions = episodes([1.0, -3.0, 1.0, 2.0, 2.0], [0, 0, 0, 1, 1])
    usual = usual_returns(transitions, 100)
    assert usual == Usual(2, pytest.approx(1.5), pytest.approx(2.5), -2.0, pytest.approx(1.5))
    assert usual_returns(transitions.at(slice(0, 0)), 100) == NOTHING


@pytest.mark.parametrize(("horizon", "size"), [(0, 2.5), (2, 2.5), (100, 97.5)])
def test_where_steps_cost_an_episode_of_full_length_can_be_lost(horizon: int, size: float) -> None:
    transitions = episodes([-1.0, -1.0, -1.0, -1.0, -1.0], [0, 0, 0, 1, 1])
    assert usual_returns(transitions, horizon).range == pytest.approx(size)


class Critic(MlpAgent):
    """Expects a return of -10 everywhere."""

    gamma = 1.0

    def values(self, observations: Observations) -> Floats:
        return np.full(len(observations), -10.0)


def test_what_a_critic_expects_is_lost_by_an_episode_of_full_length() -> None:
    agent = Critic("critic", [(np.eye(2, dtype=np.float32), np.zeros(2, np.float32))] * 2, "relu")
    usual = expected_returns(episodes([-1.0] * 60, [0] * 30 + [1] * 30), agent, 100)
    assert usual == Usual(2, pytest.approx(-10.0), 0.0, -30.0, pytest.approx(90.0))
    assert expected_returns(episodes([], []), agent, 100) == NOTHING


def test_experiments_wait_for_a_large_loss_of_several_episodes() -> None:
    assert arbiter([100.0, 190.0, 60.0]).may_try_out([])
    assert not arbiter([180.0, 190.0, 170.0]).may_try_out([])
    assert not arbiter([9.0, 10.0]).may_try_out([])


def test_no_experiment_where_another_player_helps_or_may_be_trusted() -> None:
    made = arbiter([9.0, 10.0, 9.0])
    assert not made.may_try_out([offer(forecast=Forecast(9.0, 190.0))])
    assert not made.may_try_out([offer(is_certain=True)])
    made.judge(ONE, 150.0, 0.0, [offer()])
    assert not made.may_try_out([offer()])


def test_one_bad_episode_does_not_stop_a_certain_candidate_that_recovers_a_large_loss() -> None:
    """An agent that sometimes falls in the original world falls sometimes when translated, too."""
    made = arbiter([20.0, 0.0, 10.0])
    for total in (200.0, -50.0):
        made.judge(ONE, total, 0.0, [offer(is_certain=True)])
    assert made.choose([offer(is_certain=True)]) == ONE
    for _ in range(5):
        made.judge(ONE, -150.0, -150.0, [offer(is_certain=True)])
    assert made.choose([offer(is_certain=True)]) == AGENT


PASSES = Usual(40, 0.95, 0.2, 0.0, 0.95)
"""Episodes return 0 or 1, as in Angry Birds."""


def play(made: Arbiter, totals: list[float], offers: list[Offer]) -> None:
    for total in totals:
        made.judge(ONE, total, 0.0, offers)


def test_chance_does_not_end_a_certain_candidate_where_episodes_return_0_or_1() -> None:
    made, offers = arbiter([0.0, 1.0, 0.0], PASSES), [offer(is_certain=True)]
    play(made, [0.0, 1.0, 0.0, 0.0, 0.0], offers)
    assert made.choose(offers) == ONE


def test_a_certain_candidate_that_keeps_failing_gives_way_where_episodes_return_0_or_1() -> None:
    made, offers = arbiter([0.0, 1.0, 0.0, 1.0, 1.0], PASSES), [offer(is_certain=True)]
    play(made, [0.0] * 6, offers)
    assert made.choose(offers) == AGENT


def test_a_rival_must_promise_more_than_a_trusted_base() -> None:
    made, agent_earns = arbiter([0.0, 1.0, 0.0], PASSES), 1 / 3
    rival, base = offer(TWO), offer(is_certain=True, forecast=Forecast(agent_earns, 0.8))
    play(made, [0.0] * 3, [base, rival])
    assert made.choose([base, rival]) == ONE
    assert made.choose([offer(is_certain=True), rival]) == TWO


def test_a_broken_promise_is_forgiven_after_a_pause_where_little_is_left_to_lose() -> None:
    """A plan that has explored at a high price knows better afterwards."""
    made, planner = arbiter([9.0, 10.0, 9.0]), offer(forecast=Forecast(9.0, 190.0))
    assert made.choose([planner]) == ONE
    made.judge(ONE, -900.0, -900.0, [planner])
    assert made.choose([planner]) == AGENT, "it sits out"
    made.judge(AGENT, 9.0, 0.0, [planner])
    assert made.choose([planner]) == ONE


def test_a_broken_promise_ends_the_trust_where_much_is_left_to_lose() -> None:
    made, planner = arbiter([140.0, 150.0, 145.0]), offer(forecast=Forecast(145.0, 195.0))
    assert made.choose([planner]) == ONE
    made.judge(ONE, -900.0, -900.0, [planner])
    made.judge(AGENT, 145.0, 0.0, [planner])
    assert made.choose([planner]) == AGENT
