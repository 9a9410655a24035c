"""The oracle of Angry Birds: a search that is told the novelty, within a bound of shots."""

from functools import partial

import pytest
import torch

from domains.angrybirds.birds_range import level, mixed
from nappingrl.agents import zoo
from nappingrl.agents.object_networks import NetworkAgent, make_network
from nappingrl.agents.torch_agent import to_numpy
from nappingrl.domains.angrybirds.actions import N_ACTIONS
from nappingrl.domains.angrybirds.novelties import make_change
from nappingrl.domains.angrybirds.oracle import Search
from nappingrl.domains.angrybirds.physics.scene import Item
from nappingrl.domains.angrybirds.physics.world import World
from nappingrl.report.runs import run

PIGS = Item("pig", "BasicMedium", 0, -3.12), Item("pig", "BasicMedium", 5, -3.12)


def test_it_finds_a_shot_for_each_of_two_pigs() -> None:
    make = partial(World, level(*PIGS, birds=("BirdRed",) * 2, has_far_pig=False))
    search = Search(make)
    best = search.solve()
    assert best.status == "won"
    assert len(best.actions) <= 2
    again = Search(make).play(best.actions)
    assert (again.status, again.goals_left) == ("won", 0)


def test_it_stops_at_the_bound_with_the_best_that_it_found() -> None:
    """One of two pigs is out of reach."""
    search = Search(partial(World, level(PIGS[0])), most_shots=9)
    best = search.solve()
    assert search.n_shots <= 9
    assert (best.status, best.goals_left) == ("lost", 1)


def test_replayed_shots_count() -> None:
    """Three birds that cannot win: the pig is out of reach."""
    search = Search(partial(World, level(birds=("BirdRed",) * 3)), most_shots=60)
    assert search.solve().status != "won"
    assert search.n_shots <= 60


def test_first_shots_are_those_that_win_in_the_level_itself() -> None:
    make = partial(World, mixed(), change=make_change({"bird-likes-pig": 1.0}))
    wins = Search(make).first_shots()
    assert wins.shape == (N_ACTIONS,)
    for action in (int(wins.argmax()), int(wins.argmin())):
        assert (Search(make).play([action]).status == "won") == wins[action]


@pytest.mark.parametrize("observation", ["label", "colour"])
def test_it_passes_levels_after_a_novelty(observation: str) -> None:
    torch.manual_seed(0)
    network = zoo.recipes()["angrybirds-dqn"]["network"]
    agent = NetworkAgent("untrained", network, to_numpy(make_network(network).state_dict()))
    done = run(
        "angrybirds", agent, "oracle", novelty="pig-color", trials=1, protocol="1+3",
        domain_options={"observation": observation},
    )  # fmt: skip
    assert done.rows.filter(done.rows["phase"] == "post")["won"].all()
