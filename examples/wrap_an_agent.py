"""A trained agent in a changed CartPole: frozen it fails, wrapped it recovers and prints the rules it learned."""

import gymnasium

import nappingrl

CHANGED = {"force": 70.0, "length": 2.0, "gravity": 30.0}


def play(agent: nappingrl.NappingAgent, env: gymnasium.Env, episodes: int) -> list[int]:
    """Lengths of some episodes with the changed parameters."""
    lengths = []
    for seed in range(episodes):
        observation, _ = env.reset(seed=seed, options={"params": CHANGED})
        length, ended = 0, False
        while not ended:
            action, _ = agent.predict(observation, deterministic=True)
            observation, _, terminated, truncated, _ = env.step(action)
            length, ended = length + 1, terminated or truncated
        lengths.append(length)
    return lengths


def main() -> None:
    """Play ten episodes frozen and ten with adaptation."""
    frozen = nappingrl.NappingAgent("ppo", domain="cartpole", method="frozen")
    print("frozen: ", play(frozen, gymnasium.make("nappingrl/CartPole-v0"), 10))
    adaptive = nappingrl.NappingAgent("ppo", domain="cartpole", detector="given", method="napping")
    print("adapted:", play(adaptive, adaptive.wrap(gymnasium.make("nappingrl/CartPole-v0")), 10))
    for rule in adaptive.explain()[:5]:
        print(" ", rule)


if __name__ == "__main__":
    main()
