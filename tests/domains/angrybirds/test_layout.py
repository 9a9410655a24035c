"""The layout of observations: every number by hand, and decoding as the inverse of encoding."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domains.angrybirds.birds_range import Log, level, mixed, release, targets_of
from nappingrl.domains.angrybirds.actions import N_SLOTS, OFFSETS, PER_OBJECT, join
from nappingrl.domains.angrybirds.layout import (
    BIRD_COLOURS,
    CLASSES,
    N_OBSERVATIONS,
    OBSERVATION_NAMES,
    ObservedLevel,
    Target,
    count_pigs,
    decode,
    encode,
    possible_actions,
)
from nappingrl.domains.angrybirds.physics.scene import Box, Item, Scene
from nappingrl.domains.angrybirds.physics.world import World


def test_there_are_322_numbers_with_different_names() -> None:
    assert len(set(OBSERVATION_NAMES)) == N_OBSERVATIONS == 322


def named(scene: Scene) -> dict[str, float]:
    observation = targets_of(scene).observe()
    assert observation.dtype == np.float32
    return dict(zip(OBSERVATION_NAMES, observation.tolist(), strict=True))


def test_observation_by_hand() -> None:
    values = named(World(mixed()).scene())
    assert values["object 1 is there"] == 1
    assert values["object 1 pig"] == 1
    assert values["object 1 wood"] == 0
    # The small pig stands on the ground at x = 6.5: pixel (320 + 6.5 * 18.29, 282), 8.6 x 8.2 pixels.
    assert values["object 1 x"] == pytest.approx((320 + 6.5 * 640 / 35) / 640, abs=0.002)
    assert values["object 1 y"] == pytest.approx((285.7 - 4.1) / 480, abs=0.003)
    assert values["object 1 width"] == pytest.approx(0.086, abs=0.011)
    assert values["object 1 height"] == pytest.approx(0.082, abs=0.011)
    assert values["object 3 tnt"] == 1
    assert values["object 6 ice"] == 1
    assert values["object 8 platform"] == 1
    assert values["object 9 is there"] == values["object 9 x"] == 0
    assert (values["sling x"], values["sling y"]) == pytest.approx((98 / 640, 267 / 480))
    assert (values["sling width"], values["sling height"]) == pytest.approx((0.12, 0.38))
    assert (values["yellow bird"], values["red bird"]) == (1, 0)
    assert values["birds"] == pytest.approx(3 / 5)
    assert values["object 1 low +0 is possible"] == values["object 8 high -35 is possible"] == 1
    assert values["object 9 low +0 is possible"] == 0


def test_one_class_per_object() -> None:
    observation = targets_of(World(mixed()).scene()).observe()
    slots = observation[: N_SLOTS * 12].reshape(N_SLOTS, 12)
    assert slots[:, 0].tolist() == [1] * 8 + [0] * 4
    assert slots[:, 1:8].sum(axis=1).tolist() == slots[:, 0].tolist()
    assert not slots[8:].any()
    assert np.all((observation >= 0) & (observation <= 1.1))


def test_a_moved_object_is_observed_at_its_new_place() -> None:
    log = Log(level(Item("block", "Circle", -5, -3.12, material="wood"), has_far_pig=True))
    before = named(log.now)
    log.world.shoot(release(0))
    after = named(log.world.scene())
    assert after["object 2 wood"] == before["object 2 wood"] == 1
    assert after["object 2 x"] > before["object 2 x"]


# Encoding and decoding -----------------------------------------------------------------------------------------------

BOXES = st.builds(
    lambda left, top, width, height: Box(left, top, left + width, top + height),
    st.integers(-50, 700), st.integers(-50, 500), st.integers(1, 300), st.integers(1, 300),
)  # fmt: skip


@given(
    kinds=st.lists(st.sampled_from((None, *CLASSES)), max_size=N_SLOTS), sling=BOXES, data=st.data(),
    birds=st.integers(0, 5), bird=st.sampled_from(("", *BIRD_COLOURS)),
)  # fmt: skip
def test_decoding_inverts_encoding(
    kinds: list[str | None], sling: Box, data: st.DataObject, birds: int, bird: str
) -> None:
    targets = [
        Target(i, kind, data.draw(BOXES), data.draw(st.tuples(*[st.booleans()] * PER_OBJECT)))
        for i, kind in enumerate(kinds)
        if kind is not None
    ]
    observation = encode(ObservedLevel(tuple(targets), sling, birds, bird))
    level = decode(observation)
    assert [(t.slot, t.kind, t.shots) for t in level.targets] == [(t.slot, t.kind, t.shots) for t in targets]
    for before, after in zip(targets, level.targets, strict=True):
        assert after.box == pytest.approx(before.box, abs=1e-3)
    assert level.sling == pytest.approx(sling, abs=1e-3)
    assert (level.birds, level.bird) == (birds, bird)
    batch = observation[None]
    possible = [
        join(target.slot, way, offset)
        for target in targets
        for way in (0, 1)
        for offset in OFFSETS
        if target.is_possible(way, offset)
    ]
    assert np.flatnonzero(possible_actions(batch)[0]).tolist() == possible
    assert count_pigs(batch)[0] == kinds.count("pig")


def test_more_than_five_birds_count_as_five() -> None:
    assert decode(encode(ObservedLevel((), Box(0, 0, 1, 1), 8, "red"))).birds == 5
