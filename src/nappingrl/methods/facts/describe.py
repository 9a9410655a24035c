"""What is remembered, in words."""

from nappingrl.methods.facts.ends import stakes
from nappingrl.methods.facts.timed import TimedWorld
from nappingrl.methods.facts.trial import FactsTrial


def describe(trial: FactsTrial) -> str:
    """The plan of a trial."""
    if trial.world is None:
        return ""
    facts, spec = trial.now.facts(), trial.domain
    is_good = stakes(trial.original.facts(), facts, trial.horizon).is_good(facts.rewards)
    n_good, n_bad = int((facts.terminated & is_good).sum()), int((facts.terminated & ~is_good).sum())
    about = "observations"
    if isinstance(trial.world, TimedWorld):
        about = ", ".join([*(spec.observation_labels[i] for i in trial.world.varying), "the step of the episode"])
    known = f"plans over {facts.n} facts about {about}: {n_good} good ending{'s' * (n_good != 1)}, {n_bad} bad"
    names = spec.action_labels
    changed = [f"{names[a]} acts as {names[b]}" for a, b in enumerate(trial.world.meanings.acts_as) if b not in (-1, a)]
    return "; ".join([known, *changed])
