"""The imagined rollout: the states that foresight's model predicts, drawn over the real ones."""

import numpy as np
import pytest

from nappingrl.domains import find_domain
from nappingrl.domains.base import Domain
from nappingrl.domains.canvas import Sketch
from nappingrl.play.imagined import N_STEPS, POSE_EVERY, imagined
from nappingrl.play.match import Match, MatchSpec

HARD = {"gravity": 50.0}


def following_a_rule(method: str) -> Match:
    """A match in a changed world, in the fourth episode or later, while a rule of foresight is in force."""
    match = Match(MatchSpec("cartpole", method=method, changes=HARD, n_before=10))
    pane = match.adapting
    for _ in range(4000):
        match.step()
        if pane.episode >= 3 and 5 < pane.step_number < 100 and pane.imagine(1) is not None:
            return match
    raise AssertionError(f"foresight has no rule: {pane.status}")


@pytest.fixture(scope="module")
def match() -> Match:
    return following_a_rule("foresight")


def test_the_imagined_states_are_those_that_follow(match: Match) -> None:
    pane = match.adapting
    path = pane.imagine(8)
    assert path is not None
    for expected in path:
        match.step()
        np.testing.assert_allclose(pane.observations[0], expected, atol=0.02)


def test_auto_imagines_while_it_follows_foresight() -> None:
    pane = following_a_rule("auto").adapting
    assert pane.status.acting == "foresight"
    assert imagined(pane)["poses"]


def test_poses_are_drawn_like_the_domain_itself(match: Match) -> None:
    shown = imagined(match.adapting)
    assert shown["said"] == f"Faint outlines: its model of this world predicts {N_STEPS} steps."
    assert len(shown["poses"]) == N_STEPS // POSE_EVERY
    drawn = [shape[:2] for shape in match.adapting.sketch().shapes]
    assert all([shape[:2] for shape in pose] == drawn[1:] for pose in shown["poses"])  # all but the ground


def test_a_domain_that_cannot_draw_an_observation_says_so(match: Match, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(match.adapting.domain), "draw_predicted", Domain.draw_predicted)
    shown = imagined(match.adapting)
    assert shown["poses"] == []
    assert shown["said"].endswith("CartPole cannot draw an observation.")


def test_the_frozen_agent_imagines_nothing(match: Match) -> None:
    assert imagined(match.frozen) == {"poses": [], "said": ""}


@pytest.mark.parametrize("name", ["cartpole", "mountaincar", "crossroad"])
def test_what_is_drawn_at_the_present_observation_is_part_of_the_drawing(name: str) -> None:
    domain = find_domain(name).make(1)
    rows = np.zeros(1, np.int64)
    domain.reset(rows, np.full((1, domain.spec.n_reset_draws), 0.3))
    whole, part = Sketch(), Sketch()
    domain.draw(0, whole)
    assert domain.draw_predicted(0, domain.observe(rows)[0].astype(np.float64), part)
    assert part.shapes
    assert all(shape in whole.shapes for shape in part.shapes)
