"""Novelty: a change of a domain, drawn once per trial."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from nappingrl.errors import BadSpecError


@dataclass(frozen=True, slots=True)
class Novelty:
    """A change of a domain's parameters: each named parameter is drawn uniformly from its range."""

    name: str
    ranges: Mapping[str, tuple[float, float]]
    description: str = ""
    setting: Mapping[str, float] = field(default_factory=dict)
    """Parameters of the whole trial, before the novelty too: such as the levels that suit it."""
    whole: frozenset[str] = frozenset()
    """Parameters that are whole numbers: both ends of their range can be drawn."""

    def check_strength(self, strength: float) -> None:
        """Raise in one line if the strength is not allowed for this novelty."""
        if not isinstance(strength, int | float) or not 0.0 < strength <= 1.0:
            raise BadSpecError(f"strength {strength!s:.40} is outside (0, 1]; 1 is the full range of the novelty")
        if strength < 1.0 and self.whole:
            name = min(self.whole)
            raise BadSpecError(
                f"strength {strength:g} has no meaning for {name}, a whole number; leave it at 1 and give other values"
            )

    def sample(
        self, rng: np.random.Generator, defaults: Mapping[str, float], strength: float = 1.0
    ) -> dict[str, float]:
        """Parameters after the novelty; `strength` in (0, 1] pulls the draw towards the default."""
        self.check_strength(strength)
        changed = dict(defaults) | dict(self.setting)
        for name, (low, high) in self.ranges.items():
            if name in self.whole:
                changed[name] = float(rng.integers(int(low), int(high) + 1))
            else:
                changed[name] = defaults[name] + strength * (rng.uniform(low, high) - defaults[name])
        return changed
