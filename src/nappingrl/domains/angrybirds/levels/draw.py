"""Random choices of levels."""

import numpy as np

from nappingrl.domains.angrybirds.levels.templates import LEVELS, TEMPLATES, make_level
from nappingrl.domains.angrybirds.physics.scene import Level
from nappingrl.errors import BadSpecError


def templates_for(novelty: str) -> list[str]:
    """The template made for a novelty, or all templates if it has none."""
    return [novelty] if novelty in TEMPLATES else list(TEMPLATES)


def draw_levels(n: int, novelty: str, seed: int) -> list[Level]:
    """Draw n different levels from the templates for a novelty."""
    templates = templates_for(novelty)
    n_all = LEVELS * len(templates)
    if n > n_all:
        raise BadSpecError(f"{n} levels asked for; of {', '.join(templates)} there are {n_all}")
    chosen = np.random.default_rng(seed).choice(n_all, n, replace=False).tolist()
    return [make_level(templates[i // LEVELS], i % LEVELS) for i in chosen]
