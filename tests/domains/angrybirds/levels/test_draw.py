"""Random choices of levels."""

from nappingrl.domains.angrybirds.levels.draw import draw_levels
from nappingrl.domains.angrybirds.levels.templates import LEVELS, TEMPLATES


def test_levels_are_drawn_without_repeats_and_by_seed() -> None:
    everything = draw_levels(LEVELS, "pig-color", seed=0)
    assert {level.name for level in everything} == {f"pig-color-{i:05d}" for i in range(350)}
    assert {level.name.rsplit("-", 1)[0] for level in draw_levels(60, "storm", seed=1)} == set(TEMPLATES)
    assert draw_levels(5, "", seed=1) == draw_levels(5, "", seed=1) != draw_levels(5, "", seed=2)
