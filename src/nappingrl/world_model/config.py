"""Settings of the world model, and the helper that declares a setting with its meaning."""

from dataclasses import dataclass, field
from typing import Any, TypeVar

from nappingrl.errors import BadSpecError
from nappingrl.types import DomainSpec

Value = TypeVar("Value")


MAX_WHOLE, MAX_REAL = 1000, 1e12
"""The largest values of settings that state none: of whole numbers (or 100 times the default), and of others."""


def setting(default: Value, description: str, low: float = 0.0, high: float | None = None) -> Value:
    """A dataclass field that carries its meaning and its allowed range."""
    if high is None:
        high = max(MAX_WHOLE, 100 * default) if isinstance(default, int) else MAX_REAL
    value: Any = field(default=default, metadata={"description": description, "low": low, "high": high})
    return value  # type: ignore[no-any-return]


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """Settings of the one-step model that foresight and the residual detector fit."""

    max_observations: int = setting(64, "observations that a model can be fitted to; with more it is refused", 1)
    ridge_affine: float = setting(1e-3, "ridge penalty on the affine weights")
    ridge_shared: float = setting(1e-2, "ridge penalty on the weights of curves and products")
    max_baseline_transitions: int = setting(1000, "transitions before the novelty that the baseline is fitted to", 1)
    min_held_out: int = setting(50, "held-out transitions needed to decide whether to use products", 1)
    max_product_error: float = setting(
        0.5, "use products of two observations if they reduce the held-out error to this share", 0.0, 1.0
    )
    min_unclipped_share: float = setting(
        0.05, "an observation that is off its bounds in fewer transitions than this share is a flag", 0.0, 1.0
    )
    min_unclipped_rows: float = setting(
        0.3, "ignore clipping if no more than this share of the transitions is off the bounds", 0.0, 1.0
    )
    max_integrated_error: float = setting(
        0.1, "an observation integrates another's next value if that reduces its error to this share", 0.0, 1.0
    )
    integration_window: int = setting(400, "latest transitions in which integrated observations are looked for", 1)
    min_transitions_per_weight: int = setting(2, "transitions per weight needed to find integrated observations", 1)
    min_relative_noise: float = setting(0.02, "least noise of a predicted step, as a share of a typical step")
    max_extrapolation: float = setting(
        1000.0, "farthest predicted observation, in multiples of the largest deviation from the centre", 1.0
    )

    def check_size(self, what: str, domain: DomainSpec, instead: str) -> int:
        """The number of observations of a domain; raise if `what` cannot model them."""
        shape = domain.observation_low.shape
        if len(shape) != 1:
            raise BadSpecError(f"{what} needs observations that are one row of numbers; {instead}")
        if shape[0] > self.max_observations:
            raise BadSpecError(
                f"{what} models at most {self.max_observations} observations, and this domain has {shape[0]}; {instead}"
            )
        return int(shape[0])
