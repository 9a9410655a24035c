"""Every tuning constant of the residual detector."""

from dataclasses import dataclass

from nappingrl.world_model.config import setting


@dataclass(frozen=True, kw_only=True, slots=True)
class ResidualConfig:
    """Settings of the residual detector."""

    # Calibration
    false_alarms: float = setting(1e-4, "probability of an alarm in an episode of the unchanged world, for each test")
    n_calibration_episodes: int = setting(40, "episodes to calibrate on outside of trials", 1)
    max_observations: int = setting(512, "observations that are watched; with more it is refused", 1)

    # Surprise
    n_alarm_steps: int = setting(4, "most steps of a window beyond the limit that raise an alarm", 1, 10)
    steps_per_alarm_step: float = setting(12.0, "steps of a usual episode per step that raises an alarm", 1.0)
    window: int = setting(40, "latest steps of an episode that are judged together", 10)
    min_calm_steps: int = setting(20, "calm steps of an episode after which the world may have changed amid it", 1)
    min_limit: float = setting(5.0, "least limit, in usual residuals")
    max_limit_factor: float = setting(7.0, "greatest limit, in multiples of the largest calibrated surprise", 1.0)

    # Drift
    min_episodes: int = setting(5, "calibrated episodes below which drift is not judged", 2)
    max_residual: float = setting(3.0, "larger residuals count as this much", 0.1)
    least_deviation: float = setting(0.5, "least deviation of drift between calibrated episodes", 0.01)
    min_drift: float = setting(9.0, "least limit of drift within an episode, in deviations between episodes")
    max_drift_factor: float = setting(3.0, "greatest limit of drift, in multiples of the largest calibrated one", 1.0)
    clear_drift: float = setting(
        1.25, "multiple of that limit that is an alarm at once; less must be exceeded in two successive episodes", 1.0
    )
    max_score: float = setting(4.0, "most deviations that one episode counts", 1.0)
    allowance: float = setting(1.0, "deviations of an episode that are no drift")
    drift_limit: float = setting(8.0, "deviations beyond the allowance, summed over episodes, that raise an alarm")

    # Exchange
    min_exchange: float = setting(24.0, "least limit of the evidence for exchanged actions, in nats")

    # Starts
    min_starts: int = setting(5, "calibrated episodes below which initial observations are not judged", 1)
    max_start_score: float = setting(1.5, "most that one episode counts, in ranges outside the calibrated one")
    start_limit: float = setting(2.0, "ranges outside, summed over successive episodes, that raise an alarm")
    min_starts_at_once: int = setting(20, "calibrated episodes from which one far outside is an alarm", 1)
    far_start: float = setting(3.0, "ranges outside that are far")

    # Recognition
    max_contexts: int = setting(24, "contexts that are remembered", 1)
    n_recognition_steps: int = setting(8, "latest steps by which a known context is recognised", 1)
    max_relative_surprise: float = setting(
        0.1, "a known context explains these steps with this share of the original world's surprise"
    )
    max_own_surprise: float = setting(5.0, "or with this many times the surprise of its own steps")
    context_ridge: float = setting(1e-2, "ridge penalty of the correction that models a context")
    max_calm_probability: float = setting(
        1e-6, "back in the original world if the changed one stays calm for so long with at most this probability"
    )
    max_calm_surprise: float = setting(
        2.0, "and if the median of its calm steps is at most this many times the usual surprise, or nearer to it than "
        "to the changed world's", 1.0
    )  # fmt: skip
    rate_window: float = setting(20.0, "steps with an action over which its rate of surprises is averaged", 1.0)
