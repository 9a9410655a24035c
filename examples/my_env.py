"""Trials with your own environment and novelty, and a novelty that is refused."""

import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv

import nappingrl
from nappingrl.errors import NappingError


class ShortTrack(CartPoleEnv):
    """Your own environment: CartPole on a track of half the length."""

    def __init__(self, render_mode=None):
        super().__init__(render_mode=render_mode)
        self.x_threshold = 1.2


def main() -> None:
    """Register the environment, describe the novelty, run trials with and without adaptation."""
    gymnasium.register("ShortTrack-v0", entry_point=ShortTrack, max_episode_steps=200, reward_threshold=195)
    agent = nappingrl.load_agent("ppo", "cartpole")  # or the path of an SB3 zip

    try:
        nappingrl.apply_novelty(gymnasium.make("ShortTrack-v0"), "masscart=5")
    except NappingError as error:
        print("refused:", error)

    novelty = "masscart=5; total_mass=follows; action-remap=1,0"
    settings = {"frozen": {}, "napping": {"score": "terminal", "options": {"rule": "revised"}}, "foresight": {}}
    for method, own in settings.items():
        rows = nappingrl.run(
            "ShortTrack-v0", agent, method, novelty=novelty, detector="given", trials=2, protocol="4+12", **own
        ).rows
        before, after = (rows.filter(phase=phase)["return"].mean() for phase in ("pre", "novel"))
        print(f"{method}: mean return {before:.0f} before the novelty, {after:.0f} after it")


if __name__ == "__main__":
    main()
