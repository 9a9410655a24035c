"""Every tuning constant of the residual detector."""

from dataclasses import dataclass

from nappingrl.world_model.config import ModelConfig, setting


@dataclass(frozen=True, kw_only=True, slots=True)
class ResidualConfig(ModelConfig):
    """Settings of the residual detector, with those of its world model."""

    # Calibration
    false_alarms: float = setting(2.5e-4, "probability of an alarm in an episode of the unchanged world, for each test")
    n_calibration_episodes: int = setting(40, "episodes to calibrate on outside of trials", 1)
    min_transitions: int = setting(100, "transitions needed to calibrate; with fewer there is no alarm", 1)
    max_transitions: int = setting(20_000, "transitions that are kept; thinned episodes would lower the limits", 1)
    n_folds: int = setting(8, "folds of the cross-validation over episodes", 2)
    range_margin: float = setting(1.2, "factor by which the calibrated range is widened", 1.0)
    outside_tolerance: float = setting(100.0, "tolerance of residuals, per range that a state lies outside")
    max_outside_tolerance: float = setting(10.0, "largest tolerance of residuals outside the range", 1.0)

    # Surprise
    n_alarm_steps: int = setting(2, "steps of one episode beyond the limit that raise an alarm", 1)
    far_factor: float = setting(10.0, "a step this many times beyond the limit counts twice", 1.0)
    min_limit: float = setting(5.0, "least limit, in usual residuals")
    max_limit_factor: float = setting(10.0, "greatest limit, in multiples of the largest calibrated surprise", 1.0)

    # Drift
    drift_evidence: float = setting(30.0, "added to the sum of squares, so that a few steps are no drift")
    min_drift_limit: float = setting(4.0, "least limit of drift")

    # Recognition
    max_contexts: int = setting(4, "contexts that are remembered", 1)
    n_recognition_steps: int = setting(8, "latest steps by which a known context is recognised", 1)
    max_relative_surprise: float = setting(
        0.1, "a known context explains these steps with this share of the original world's surprise"
    )
    max_own_surprise: float = setting(5.0, "or with this many times the surprise of its own steps")
    context_ridge: float = setting(1e-2, "ridge penalty of the correction that models a context")
    max_calm_probability: float = setting(
        1e-6, "back in the original world if the changed one stays calm for so long with at most this probability"
    )
    rate_window: float = setting(100.0, "steps over which the rate of surprises in the changed world is averaged", 1.0)
