"""NAPPING as a user would write it: SB3's predict(), a forward hook, gymnasium's CartPole and numpy's argmin."""

import time
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.base import Agent
from nappingrl.agents.state_dict import policy_layers
from nappingrl.errors import BadAgentError, MissingExtraError
from nappingrl.registry import domains

Table = dict[str, NDArray[Any]]  # see Principles.table
HORIZON = domains.entry("cartpole").horizon


class UserLoop:
    """Runs CartPole trials of a shipped agent, one step at a time."""

    def __init__(self, name: str, agent: Agent) -> None:
        self._env: Any = gymnasium.make("CartPole-v1", max_episode_steps=HORIZON)
        self._model = _sb3_model(self._env, agent)
        policy = self._model.policy
        layer = policy.mlp_extractor.policy_net if name == "ppo" else policy.q_net.q_net[-2]
        layer.register_forward_hook(self._capture)
        self._model_state = np.empty(0, np.float32)

    def _capture(self, module: Any, inputs: Any, output: Any) -> None:
        self._model_state = output.numpy()[0]

    def change_parameters(self, parameters: dict[str, float]) -> None:
        """Apply a novelty to the environment."""
        cartpole = self._env.unwrapped
        cartpole.length = parameters["length"]
        cartpole.gravity = parameters["gravity"]
        cartpole.masscart = parameters["masscart"]
        cartpole.masspole = parameters["masspole"]
        cartpole.force_mag = parameters["force"]
        cartpole.total_mass = cartpole.masspole + cartpole.masscart
        cartpole.polemass_length = cartpole.masspole * cartpole.length

    def run(self, starts: NDArray[np.float64], table: Table) -> list[float]:
        """The returns of a trial with rule `revised`, with lists and a preallocated array of sites."""
        env = self._env
        n = len(table["wanted"])
        sites = np.empty((n + len(starts) * HORIZON, table["site"].shape[1]), np.float32)
        sites[:n] = table["site"]
        keys = table["wanted"].tolist()
        candidates = [set(np.flatnonzero(mask).tolist()) for mask in table["candidates"]]
        best = table["best"].tolist()
        all_actions = {0, 1}
        returns = []
        for start in starts:
            env.reset()
            env.unwrapped.state = start.copy()
            observation, total, ended = start.astype(np.float32), 0.0, False
            while not ended:
                action, _ = self._model.predict(observation, deterministic=True)
                wanted = executed = int(action)
                offsets = sites[:n] - self._model_state
                region = int(np.argmin((offsets * offsets).sum(axis=1)))
                matches = keys[region] == wanted
                if matches:
                    executed = next(iter(candidates[region]))
                next_observation, reward, terminated, truncated, _ = env.step(executed)
                heading = 1.0 if observation[2] + 0.3 * observation[3] > 0 else -1.0
                score = -heading * (float(next_observation[3]) - float(observation[3]))
                new = None
                if not matches:
                    new = {wanted} if score >= 0 else all_actions - {wanted}
                elif score > best[region]:
                    best[region] = score
                elif score < best[region] and score < 0:
                    new = all_actions - {executed}
                if new is not None:
                    sites[n] = self._model_state
                    keys.append(wanted)
                    candidates.append(new)
                    best.append(score)
                    n += 1
                total += reward
                observation, ended = next_observation, terminated or truncated
            returns.append(total)
        return returns


def time_predict_loop(env_id: str, agent: Agent, n_steps: int = 500, repeats: int = 3) -> float:
    """CPU microseconds per step of SB3's predict() and env.step(), one at a time; the least of some repeats."""
    env: Any = gymnasium.make(env_id)
    model = _sb3_model(env, agent)
    best = np.inf
    for _ in range(repeats):
        observation, _ = env.reset(seed=0)
        started = time.process_time()
        for _ in range(n_steps):
            action, _ = model.predict(observation, deterministic=True)
            observation, _, terminated, truncated, _ = env.step(int(action))
            if terminated or truncated:
                observation, _ = env.reset()
        best = min(best, time.process_time() - started)
    return best / n_steps * 1e6


def _sb3_model(env: Any, agent: Agent) -> Any:
    """SB3's model with the weights of an agent; BadAgentError where it is neither DQN nor PPO."""
    try:
        import stable_baselines3 as sb3
        import torch
    except ImportError as error:
        raise MissingExtraError('the benchmark needs SB3: pip install "nappingrl[sb3]"') from error
    torch.set_num_threads(1)
    kind, layers = policy_layers(agent.weights())
    if kind not in ("actor-critic", "q"):
        raise BadAgentError(f"agent {agent.name} is neither SB3's PPO nor its DQN")
    algorithm: Any = sb3.PPO if kind == "actor-critic" else sb3.DQN
    hidden = [weight.shape[1] for weight, _ in layers[:-1]]
    model = algorithm("MlpPolicy", env, policy_kwargs={"net_arch": hidden}, device="cpu")
    model.policy.load_state_dict({key: torch.from_numpy(value) for key, value in agent.weights().items()})
    return model
