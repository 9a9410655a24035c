"""MuJoCo: an agent learns to balance an inverted pendulum, then its motor is reversed. Needs mujoco and SB3."""

from importlib.util import find_spec

import gymnasium

from nappingrl import NappingAgent, apply_novelty

ENV = "InvertedPendulum-v5"
STEPS = 30_000


def play(policy, env, episodes=5):
    """Returns of some episodes."""
    returns = []
    for seed in range(episodes):
        observation, _ = env.reset(seed=seed)
        total, is_over = 0.0, False
        while not is_over:
            observation, reward, terminated, truncated, _ = env.step(policy(observation))
            total, is_over = total + float(reward), terminated or truncated
        returns.append(total)
    return returns


def main() -> None:
    """Train, change, compare."""
    if missing := [name for name in ("mujoco", "stable_baselines3") if find_spec(name) is None]:
        print(f"this example needs {' and '.join(missing)}: pip install mujoco 'nappingrl[sb3]'")
        return
    from stable_baselines3 import PPO

    model = PPO("MlpPolicy", gymnasium.make(ENV), n_steps=1024, learning_rate=1e-3, seed=0).learn(STEPS)
    agent = NappingAgent(model)
    agent.calibrate(gymnasium.make(ENV), episodes=5)

    def changed():
        return apply_novelty(gymnasium.make(ENV), "action-scale=-1")

    def frozen(observation):
        return model.predict(observation, deterministic=True)[0]

    print("before the change:", play(frozen, gymnasium.make(ENV)))
    print("after it, frozen: ", play(frozen, changed()))
    print("after it, adapted:", play(lambda obs: agent.predict(obs)[0], agent.wrap(changed())))
    print(agent.status())


if __name__ == "__main__":
    main()
