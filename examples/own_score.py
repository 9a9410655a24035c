"""Your own score: in MountainCar, an action is good if the car gains mechanical energy."""

from pathlib import Path
from tempfile import TemporaryDirectory

import gymnasium
import numpy as np

from nappingrl import NappingAgent, Score


def gains_energy(obs, action, next_obs, reward, terminated):
    """Change of kinetic plus potential energy at the gravity the agent was trained with."""
    before, after = (0.5 * o[:, 1] ** 2 + 0.0025 / 3 * np.sin(3 * o[:, 0]) for o in (obs, next_obs))
    return (after - before).astype(np.float64)


def main() -> None:
    """Play ten episodes with stronger gravity."""
    score = Score("gains-energy", gains_energy, threshold=0.0)
    agent = NappingAgent("dqn", domain="mountaincar", score=score, detector="given")
    env = agent.wrap(gymnasium.make("nappingrl/MountainCar-v0"))
    env.unwrapped.set_params(force=0.002, gravity=0.004)
    for seed in range(10):
        observation, _ = env.reset(seed=seed)
        total, ended = 0.0, False
        while not ended:
            action, _ = agent.predict(observation)
            observation, reward, terminated, truncated, _ = env.step(action)
            total, ended = total + float(reward), terminated or truncated
        print(f"episode {seed}: return {total:.0f}")
    with TemporaryDirectory() as folder:
        path = agent.save(Path(folder) / "adapted.zip")
        again = NappingAgent.load(path, score=score)  # functions are not in the file: give the score again
    print(again)


if __name__ == "__main__":
    main()
