"""Every tuning constant of foresight; each is an option of the method."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nappingrl.errors import BadSpecError
from nappingrl.methods.settings import read_settings
from nappingrl.world_model.config import ModelConfig, setting

MAX_ROLLOUTS = 100_000
"""Rollouts of one plan; with the defaults there are about 2,000."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ForesightConfig(ModelConfig):
    """Settings of foresight, with those of its world model."""

    # When to plan
    first_plan: int = setting(8, "steps in the changed world before the first plan; later plans at twice as many", 1)
    n_planning_episodes: int = setting(
        12, "episodes in the changed world after each of which it plans again, if there is more to gain"
    )
    surprise: float = setting(0.05, "a return is surprising if it misses the expected one by this share of it")
    surprise_slack: float = setting(0.01, "and by this share of the rewards of a full episode")

    # What it learns from
    max_episodes_before_alarm: int = setting(10, "episodes before the alarm that may be in the changed world", 1)
    anomaly_factor: float = setting(5.0, "a step is anomalous if its error is this many times the largest usual one")
    min_baseline_transitions: int = setting(50, "transitions needed to fit a baseline model", 1)
    min_action_count: int = setting(2, "times each discrete action is executed early in the changed world")
    max_probe_transitions: int = setting(64, "transitions in the changed world after which no action is probed")
    max_starts: int = setting(64, "initial states of episodes that are remembered", 1)

    # Terminations
    max_terminations: int = setting(12, "termination regions that are modelled", 4)
    termination_margin: float = setting(
        0.25, "where the border of a bad termination lies between survived (0) and terminal (1) states", 0.0, 1.0
    )
    max_unexplained_share: float = setting(
        0.1, "share of terminations that may be unexplained; with more the rollouts are not trusted", 0.0, 1.0
    )
    min_quadric_terminations: int = setting(8, "terminations needed to fit a quadric", 1)
    n_quadric_rounds: int = setting(12, "Newton steps of the logistic regression behind a quadric")
    quadric_ridge: float = setting(1e-2, "ridge penalty of that regression")
    max_quadric_states: int = setting(3000, "survived states that a quadric is fitted to", 1)
    min_quadric_recall: float = setting(0.9, "share of the terminations that a quadric must contain", 0.0, 1.0)
    max_quadric_error: float = setting(0.005, "share of survived states that a quadric may contain", 0.0, 1.0)

    # Search
    n_rollouts: int = setting(6, "rollouts per policy", 1)
    n_coverage_rollouts: int = setting(2, "rollouts per policy when it searches for coverage", 1)
    n_initial_policies: int = setting(150, "random policies in the first search", 1)
    n_later_policies: int = setting(60, "random policies in later searches")
    n_search_rounds: int = setting(4, "rounds of mutations")
    n_mutants: int = setting(30, "mutations per round")
    n_parents: int = setting(8, "best policies that are mutated", 1)
    mutation_size: float = setting(0.5, "size of the first mutations, relative to the parent's weights")
    mutation_decay: float = setting(0.6, "factor of the mutation size from round to round")
    initial_bias: float = setting(0.3, "standard deviation of random biases and products; that of slopes is 1")
    max_quadratic_dim: int = setting(8, "observations up to which quadratic policies are searched")
    max_failed_quadratic_searches: int = setting(6, "failed searches after which quadratic policies are given up")
    residual_gains: tuple[float, ...] = setting(
        (-1.0, 0.5, 1.5, 2.0), "gains on the agent's continuous action that are tried"
    )
    n_residuals: int = setting(20, "random residual policies on a continuous action")
    residual_sizes: tuple[float, ...] = setting((0.3, 0.1, 0.03), "standard deviations of their weights")

    # Choice
    max_policies: int = setting(6, "policies that are remembered", 1)
    max_returns: int = setting(1000, "latest returns by which a policy is judged", 1)
    min_relative_gain: float = setting(0.02, "expected gain, as a share, needed to replace the policy in force")
    hopeless_loss: float = setting(
        2.0, "stop the rollouts of a known policy that loses this many times the best new policy's return"
    )
    n_recent_errors: int = setting(5, "latest prediction errors that correct the return of a new policy", 1)

    def __post_init__(self) -> None:
        """Refuse a search that would take minutes."""
        n_policies = self.n_initial_policies + self.n_later_policies + self.n_search_rounds * self.n_mutants
        n_rollouts = self.n_rollouts * (n_policies + self.n_residuals + len(self.residual_gains))
        if n_rollouts > MAX_ROLLOUTS:
            raise BadSpecError(
                f"foresight's options ask for {n_rollouts:,} rollouts per plan; at most {MAX_ROLLOUTS:,} are allowed; "
                "lower n_rollouts, n_initial_policies, n_later_policies, n_search_rounds, n_mutants or n_residuals"
            )


def read_config(options: Mapping[str, Any]) -> ForesightConfig:
    """The config with the values of these options in place of the defaults."""
    return read_settings(ForesightConfig, options)
