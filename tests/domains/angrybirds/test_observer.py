"""What an agent observes, by label, by colour or as a picture: nothing that it cannot see."""

import gymnasium
import numpy as np
import pytest

import nappingrl  # noqa: F401  registers the environments
from domains.angrybirds.birds_range import mixed
from nappingrl.domains import find_domain
from nappingrl.domains.angrybirds.domain import AngryBirds
from nappingrl.domains.angrybirds.ground_truth.raster import CHANNELS
from nappingrl.domains.angrybirds.layout import N_OBSERVATIONS, count_pigs, decode
from nappingrl.domains.angrybirds.levels.templates import TEMPLATES
from nappingrl.domains.angrybirds.novelties import make_change
from nappingrl.domains.angrybirds.observer import Observer
from nappingrl.domains.angrybirds.physics.world import World
from nappingrl.errors import UnknownNameError
from nappingrl.trials.spec import RunSpec

ROW = np.zeros(1, np.int64)


def observed(observation: str, novelty: str) -> np.ndarray:
    return Observer(observation).look(World(mixed(), change=make_change({novelty: 1.0})).scene())


def test_labels_are_the_default_and_pig_colours_do_not_fool_them() -> None:
    assert count_pigs(observed("label", "pig-color")[None])[0] == 2
    assert count_pigs(observed("colour", "pig-color")[None])[0] == 8
    env = gymnasium.make("nappingrl/AngryBirds-v0")
    template = {"template": 1.0 + list(TEMPLATES).index("pig-color")}
    seen = [env.reset(seed=3, options={"params": template | {"pig_color": on}})[0] for on in (0.0, 1.0)]
    np.testing.assert_array_equal(seen[0], seen[1])
    env = gymnasium.make("nappingrl/AngryBirds-v0", observation="colour")
    seen = [env.reset(seed=3, options={"params": template | {"pig_color": on}})[0] for on in (0.0, 1.0)]
    assert count_pigs(seen[0][None]) < count_pigs(seen[1][None])


def test_a_bone_is_an_unknown_object_and_no_number_says_that_it_must_be_destroyed() -> None:
    level = decode(observed("label", "bone"))
    assert len(level.of_kind("other")) == 1
    assert len(level.of_kind("pig")) == 2
    spec = AngryBirds.spec
    assert not [name for name in spec.observation_names if "goal" in name or "left" in name]


def test_the_raster_has_a_channel_for_each_class_by_label() -> None:
    picture = observed("raster", "pig-color")[N_OBSERVATIONS:].reshape(len(CHANNELS), 30, 40)
    filled = {name for name, channel in zip(CHANNELS, picture, strict=True) if channel.any()}
    assert filled == {"sling", "yellow", "red", "pig", "wood", "ice", "stone", "tnt", "platform"}
    assert set(np.unique(picture)) == {0.0, 1.0}


def test_the_raster_follows_what_masks_and_scores_need() -> None:
    env = gymnasium.make("nappingrl/AngryBirds-v0", observation="raster")
    plain = gymnasium.make("nappingrl/AngryBirds-v0")
    (seen, info), (objects, plain_info) = env.reset(seed=5), plain.reset(seed=5)
    assert env.observation_space.contains(seen)
    assert seen.shape == (N_OBSERVATIONS + 12 * 30 * 40,)
    np.testing.assert_array_equal(seen[:N_OBSERVATIONS], objects)
    np.testing.assert_array_equal(info["action_mask"], plain_info["action_mask"])
    spec = find_domain("angrybirds", {"observation": "raster"})
    score = spec.scores["paper"]
    assert score.suprema(seen[None]) == count_pigs(objects[None])
    assert spec.describe(seen) == spec.describe(objects)


def test_the_observation_is_an_option_of_the_domain() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'colour'"):
        find_domain("angrybirds", {"observation": "color"})
    ids = {
        observation: RunSpec("angrybirds", "naive", "frozen", domain_options={"observation": observation})
        .complete()
        .trial_specs()[0]
        .id
        for observation in ("label", "colour", "raster")
    }
    assert len(set(ids.values())) == 3
    assert ids["label"] == RunSpec("angrybirds", "naive", "frozen").complete().trial_specs()[0].id


def test_datalab_reads_colours() -> None:
    assert RunSpec("angrybirds", "datalab", "frozen").complete().domain_options == {"observation": "colour"}


def test_a_masked_action_wastes_the_bird() -> None:
    env = gymnasium.make("nappingrl/AngryBirds-v0", reward="win")
    seen, info = env.reset(seed=1)
    following, reward, terminated, _, info = env.step(np.int64(np.flatnonzero(~info["action_mask"])[0]))
    before, after = decode(seen), decode(following)
    assert (after.birds, after.targets) == (before.birds - 1, before.targets)
    assert (reward, terminated) == (0.0, after.birds == 0)
