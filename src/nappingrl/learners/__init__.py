"""Batched learners: hundreds of trials, each with its own weights, train like SB3's DQN and PPO."""

from nappingrl.agents.base import Trainable
from nappingrl.errors import BadSpecError, import_extra
from nappingrl.learners.base import Learner
from nappingrl.learners.dqn import Dqn
from nappingrl.learners.hyperparameters import DqnHyperparameters, PpoHyperparameters, read_hyperparameters
from nappingrl.learners.ppo import Ppo

__all__ = ["Dqn", "DqnHyperparameters", "Learner", "Ppo", "PpoHyperparameters", "make_learner", "read_hyperparameters"]


def make_learner(
    agent: Trainable,
    n: int,
    learning_rate: float | None = None,
    exploration: float | None = None,
    is_last_only: bool = False,
) -> Learner:
    """The learner of n trials for an agent; None keeps the agent's own value of a hyperparameter."""
    import_extra("scipy.linalg", "learning during trials", "learners")  # numba's np.dot calls its BLAS
    learner: Learner
    if agent.kind == "q":
        dqn, schedules = read_hyperparameters(DqnHyperparameters, agent.hyperparameters)
        dqn = dqn if learning_rate is None else dqn._replace(learning_rate=learning_rate)
        dqn = dqn if exploration is None else dqn._replace(exploration_final_eps=exploration)
        learner = Dqn(agent, n, dqn, is_last_only)
    else:
        if exploration is not None:
            raise BadSpecError("option exploration is for DQN agents; PPO explores by sampling from its policy")
        ppo, schedules = read_hyperparameters(PpoHyperparameters, agent.hyperparameters)
        ppo = ppo if learning_rate is None else ppo._replace(learning_rate=learning_rate)
        learner = Ppo(agent, n, ppo, is_last_only)
    learner.notes = _notes(agent, [name for name in schedules if name != "learning_rate" or learning_rate is None])
    return learner


def _notes(agent: Trainable, schedules: list[str]) -> list[str]:
    """Differences from the agent's original training."""
    known = agent.hyperparameters
    notes = []
    if schedules:
        notes.append(f"uses the first value of the schedules of {', '.join(schedules)}")
    if known.get("unreadable"):
        notes.append(f"uses SB3's defaults for values that cannot be read: {', '.join(known['unreadable'])}")
    if agent.kind == "actor-critic" and known.get("algorithm") != "PPO" and "n_epochs" not in known:
        notes.append("uses PPO, although another algorithm made the agent, with SB3's defaults for unknown values")
    if agent.kind == "q" and known.get("n_steps", 1) != 1:
        notes.append(f"uses 1-step returns; the agent was trained with {known['n_steps']}-step returns")
    return notes
