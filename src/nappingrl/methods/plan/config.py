"""Every tuning constant of the method `plan`; each is an option of the method."""

from dataclasses import dataclass

from nappingrl.errors import BadSpecError
from nappingrl.world_model.config import ModelConfig, setting

MAX_PREDICTED_STEPS = 1_000_000
"""Steps that one search may predict; with the defaults there are about 1,000."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanConfig(ModelConfig):
    """Settings of planning, with those of its world model."""

    max_observations: int = setting(16, "observations that a model can be fitted to; with more it is refused", 1)
    max_extrapolation: float = setting(
        2.0, "farthest predicted observation, in multiples of the largest deviation from the centre", 1.0
    )
    min_transitions: int = setting(50, "transitions in the changed world needed for the first fit", 1)
    growth: float = setting(1.5, "fit again when there are this many times more transitions", 1.01)
    max_relative_error: float = setting(
        0.1, "plan if the error of a predicted step is at most this share of a typical step"
    )
    n_judged_episodes: int = setting(3, "latest episodes by which the model is judged", 1)
    max_distance: float = setting(
        1.5,
        "the agent acts where an observation is farther from the centre, in multiples of the largest deviation",
        1.0,
    )
    outside_penalty: float = setting(
        1.0, "what a predicted step beyond the largest deviation costs, in multiples of the range of rewards"
    )
    horizon: int = setting(16, "steps of a sequence of actions", 1)
    n_sequences: int = setting(32, "sequences per round of the search", 2)
    n_rounds: int = setting(2, "rounds of the search at every step", 1)
    hold: int = setting(4, "steps for which a random change of a sequence holds", 1)
    change_size: float = setting(
        0.8, "size of the first changes: of a continuous action in [-1, 1], or the chance of another discrete one"
    )
    change_decay: float = setting(0.5, "factor of that size from round to round")
    usual_discount: float = setting(0.99, "discount factor for an agent that tells none", 0.0, 1.0)

    def __post_init__(self) -> None:
        """Refuse a search that would take minutes."""
        n_steps = self.n_rounds * self.n_sequences * self.horizon
        if n_steps > MAX_PREDICTED_STEPS:
            raise BadSpecError(
                f"plan's options ask for {n_steps:,} predicted steps per action; at most {MAX_PREDICTED_STEPS:,} are "
                "allowed; lower n_rounds, n_sequences or horizon"
            )
