"""MiniGrid: an agent learns to reach the goal, then left and right are exchanged. Needs minigrid and SB3."""

from importlib.util import find_spec

import gymnasium

from nappingrl import NappingAgent, apply_novelty
from nappingrl.env_wrappers import with_wrappers

ENV = "MiniGrid-Empty-5x5-v0+minigrid-full+minigrid-image+flatten"
STEPS = 20_000


def play(policy, env, episodes=10):
    """Mean return of some episodes."""
    total = 0.0
    for seed in range(episodes):
        observation, _ = env.reset(seed=seed)
        is_over = False
        while not is_over:
            observation, reward, terminated, truncated, _ = env.step(policy(observation))
            total, is_over = total + float(reward), terminated or truncated
    return total / episodes


def main() -> None:
    """Train, change, compare."""
    if missing := [name for name in ("minigrid", "stable_baselines3") if find_spec(name) is None]:
        print(f"this example needs {' and '.join(missing)}: pip install minigrid 'nappingrl[sb3]'")
        return
    import minigrid  # noqa: F401  # registers its environments
    from stable_baselines3 import PPO

    def make():
        return gymnasium.make(with_wrappers(ENV))

    model = PPO("MlpPolicy", make(), n_steps=512, seed=0).learn(STEPS)
    agent = NappingAgent(model)
    agent.calibrate(make(), episodes=20)

    def changed():
        return apply_novelty(make(), "action-remap=1,0,2,3,4,5,6")

    def frozen(observation):
        return model.predict(observation, deterministic=True)[0]

    print(f"before the change: {play(frozen, make()):.2f}")
    print(f"after it, frozen:  {play(frozen, changed()):.2f}")
    print(f"after it, adapted: {play(lambda obs: agent.predict(obs)[0], agent.wrap(changed())):.2f}")
    print(agent.status())


if __name__ == "__main__":
    main()
