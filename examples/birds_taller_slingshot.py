"""The shipped DQN of Angry Birds with a slingshot twice as high: its shots miss until it learns where to aim."""

import gymnasium

from nappingrl import NappingAgent

EPISODES = 15


def play(env, agent, params, seed):
    """Play one level; True if it was passed."""
    observation, info = env.reset(seed=seed, options={"params": params})
    ended = False
    while not ended:
        action, _ = agent.predict(observation)
        observation, _, terminated, truncated, info = env.step(action)
        ended = terminated or truncated
    return info["status"] == "won"


def main() -> None:
    """Play levels of one template, first unchanged, then with the taller slingshot."""
    agent = NappingAgent("dqn", domain="angrybirds", method="frozen")
    env = agent.wrap(gymnasium.make("nappingrl/AngryBirds-v0", reward="win"))
    before = [play(env, agent, {"template": 3}, seed) for seed in range(5)]
    print(f"before the novelty: {sum(before)} of {len(before)} levels passed")
    changed = {"template": 3, "taller_slingshot": 1}
    frozen = [play(env, agent, changed, 100 + seed) for seed in range(5)]
    print(f"taller slingshot, frozen: {sum(frozen)} of {len(frozen)}")

    agent = NappingAgent("dqn", domain="angrybirds", method="napping", detector="given")
    env = agent.wrap(gymnasium.make("nappingrl/AngryBirds-v0", reward="win"))
    adapted = [play(env, agent, changed, 100 + seed) for seed in range(EPISODES)]
    print("taller slingshot, NAPPING:", " ".join("passed" if won else "lost" for won in adapted))
    print("rules it learned:")
    for rule in agent.explain():
        print(" ", rule)


if __name__ == "__main__":
    main()
