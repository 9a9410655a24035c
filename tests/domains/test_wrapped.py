"""Domains behind a wrapper."""

import numpy as np
import pytest

from nappingrl.domains import find_domain
from nappingrl.domains.canvas import Sketch
from nappingrl.domains.scheduled import with_schedules
from nappingrl.domains.transformed import with_transforms
from nappingrl.novelties.schedule import read_schedule
from nappingrl.types import DomainSpec

BIRDS = find_domain("angrybirds")
SCHEDULE = read_schedule("0->1over5episodes")
assert SCHEDULE is not None
ROW = np.array([0])


@pytest.mark.parametrize(
    "wrapped",
    [with_transforms(BIRDS, {"reward-scale": 1.0}), with_schedules(BIRDS, {"storm": SCHEDULE})],
    ids=["transforms", "schedules"],
)
def test_a_shot_is_drawn_as_it_happens(wrapped: DomainSpec) -> None:
    domain = wrapped.make(1)
    domain.reset(ROW, np.full((1, wrapped.n_reset_draws), 0.5))
    domain.step(ROW, np.array([0]))
    assert domain.reel(0) == [], "drawings are kept on request only"

    domain.reel_every = 2
    domain.reset(ROW, np.full((1, wrapped.n_reset_draws), 0.5))
    domain.step(ROW, np.array([0]))
    drawings = domain.reel(0)
    assert len(drawings) > 10
    first, later = Sketch(), Sketch()
    drawings[0](first)
    drawings[len(drawings) // 2](later)
    assert first.picture is not None
    assert later.picture is not None
    assert (first.picture != later.picture).any(), "the bird flies"
