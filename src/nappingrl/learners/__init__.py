"""Batched learners: hundreds of trials, each with weights of its own, that train as SB3's DQN and PPO do."""

from nappingrl.agents.base import Trainable
from nappingrl.errors import BadSpecError
from nappingrl.learners.base import Learner
from nappingrl.learners.dqn import Dqn
from nappingrl.learners.hyperparameters import DqnSettings, PpoSettings, read_settings
from nappingrl.learners.ppo import Ppo

__all__ = ["Dqn", "DqnSettings", "Learner", "Ppo", "PpoSettings", "make_learner", "read_settings"]


def make_learner(
    agent: Trainable,
    n: int,
    learning_rate: float | None = None,
    exploration: float | None = None,
    is_last_only: bool = False,
) -> Learner:
    """The learner of n trials for an agent; None leaves a hyper-parameter as the agent has it."""
    learner: Learner
    if agent.kind == "q":
        dqn, schedules = read_settings(DqnSettings, agent.hyperparameters)
        dqn = dqn if learning_rate is None else dqn._replace(learning_rate=learning_rate)
        dqn = dqn if exploration is None else dqn._replace(exploration_final_eps=exploration)
        learner = Dqn(agent, n, dqn, is_last_only)
    else:
        if exploration is not None:
            raise BadSpecError("option exploration is for DQN agents; PPO explores by its own probabilities")
        ppo, schedules = read_settings(PpoSettings, agent.hyperparameters)
        ppo = ppo if learning_rate is None else ppo._replace(learning_rate=learning_rate)
        learner = Ppo(agent, n, ppo, is_last_only)
    learner.notes = _notes(agent, [name for name in schedules if name != "learning_rate" or learning_rate is None])
    return learner


def _notes(agent: Trainable, schedules: list[str]) -> list[str]:
    """What differs from the training that made the agent."""
    known, notes = agent.hyperparameters, []
    if schedules:
        notes.append(f"takes the first value of the schedules of {', '.join(schedules)}")
    if known.get("unreadable"):
        notes.append(f"takes SB3's defaults for what the agent's file does not tell: {', '.join(known['unreadable'])}")
    if agent.kind == "actor-critic" and known.get("algorithm") != "PPO" and "n_epochs" not in known:
        notes.append("trains the agent as PPO, which did not make it, with SB3's defaults for what is not known")
    if agent.kind == "q" and known.get("n_steps", 1) != 1:
        notes.append(f"learns from single steps, not from {known['n_steps']} as the agent was trained")
    return notes
