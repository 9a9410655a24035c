"""Novelty: a transformation of the world, drawn once per trial."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from nappingrl.errors import BadSpecError


@dataclass(frozen=True, slots=True)
class Novelty:
    """A change of a world's parameters: each named parameter is drawn uniformly from its range."""

    name: str
    ranges: Mapping[str, tuple[float, float]]
    description: str = ""
    setting: Mapping[str, float] = field(default_factory=dict)
    """Parameters that hold in the whole trial, before the change too: the kind of levels that suits it."""

    def sample(
        self, rng: np.random.Generator, defaults: Mapping[str, float], strength: float = 1.0
    ) -> dict[str, float]:
        """Parameters of the changed world; `strength` in (0, 1] pulls the draw towards the default."""
        if not 0.0 < strength <= 1.0:
            raise BadSpecError(f"strength {strength:g} is outside (0, 1]; 1 is the full range of the novelty")
        changed = dict(defaults) | dict(self.setting)
        for name, (low, high) in self.ranges.items():
            changed[name] = defaults[name] + strength * (rng.uniform(low, high) - defaults[name])
        return changed
