"""Whether `auto` depends on the layout of an environment: the same trials with disguised observations and actions.

python benchmarks/disguise.py Acrobot-v1 dqn --swap 0 2 --trials 10
python benchmarks/disguise.py CartPole-v1 benchmarks/agents/cartpole-ppo.zip --novelty force_mag=-10 --trials 10
python benchmarks/disguise.py LunarLander-v3 benchmarks/agents/lander-ppo.zip --swap 1 3 --protocol 30+25 --trials 10

The disguised environment shows the observations in another order and in other units, and numbers its actions in another
order; the agent is told. Draws of episodes are the same. `--swap A B` exchanges two actions, by their original numbers.
"""

import argparse
from copy import deepcopy

import gymnasium
import numpy as np
import polars as pl
from gymnasium.spaces import Box, Discrete

import nappingrl
from nappingrl.agents.base import Agent
from nappingrl.report.intervals import bootstrap_interval, mean
from nappingrl.types import Decision, Floats, Observations


class Disguise(gymnasium.Wrapper):
    """Permuted and rescaled observations, permuted discrete actions."""

    def __init__(self, env: gymnasium.Env, seed: int = 0) -> None:
        super().__init__(env)
        random = np.random.default_rng(seed)
        space, actions = env.observation_space, env.action_space
        assert isinstance(space, Box)
        assert isinstance(actions, Discrete)
        self.order = random.permutation(space.shape[0])
        self.unit = random.uniform(0.2, 5.0, space.shape[0]).astype(np.float32)
        """Shown numbers are the original ones times this."""
        self.acts_as = np.roll(np.arange(actions.n), 1)
        """The original number of each action."""
        self.observation_space = Box(space.low[self.order] * self.unit, space.high[self.order] * self.unit)

    def reset(self, **options):
        observation, info = self.env.reset(**options)
        return observation[self.order] * self.unit, info

    def step(self, action):
        observation, *rest = self.env.step(int(self.acts_as[action]))
        return observation[self.order] * self.unit, *rest


class ToldAgent(Agent):
    """An agent that is told how its environment is disguised."""

    def __init__(self, agent: Agent, disguise: Disguise) -> None:
        self.agent, self.name = agent, f"told-{agent.name}"
        self.n_actions, self.embedding_dim = agent.n_actions, agent.embedding_dim
        self.observation_shape, self.sha256 = agent.observation_shape, agent.sha256
        self._back, self._unit = np.argsort(disguise.order), disguise.unit
        self._acts_as, self._number = disguise.acts_as, np.argsort(disguise.acts_as)

    def _original(self, observations: Observations) -> Observations:
        return (observations / self._unit)[:, self._back]

    def forward(self, observations: Observations) -> Decision:
        found = self.agent.forward(self._original(observations))
        return Decision(self._number[found.actions], found.model_states, found.preferences[:, self._acts_as])

    def values(self, observations: Observations) -> Floats | None:
        return self.agent.values(self._original(observations))

    @property
    def no_critic(self) -> str:
        return self.agent.no_critic

    @property
    def gamma(self) -> float | None:
        return self.agent.gamma


def returns(
    env: str, agent: str, novelty: str, swap: list[int], trials: int, seed: int, protocol: str, is_disguised: bool
) -> np.ndarray:
    """Mean return of the last ten episodes of each trial."""
    loaded: Agent = nappingrl.load_agent(agent, env)
    disguise = Disguise(gymnasium.make(env))
    numbers = np.arange(loaded.n_actions)
    if swap:
        numbers[swap] = swap[::-1]
    name = env
    if is_disguised:
        name = f"disguised/{env}"
        if name not in gymnasium.registry:
            bare = deepcopy(gymnasium.spec(env))
            bare.max_episode_steps, horizon = None, bare.max_episode_steps
            gymnasium.register(
                name, lambda **options: Disguise(gymnasium.make(bare, **options)), max_episode_steps=horizon
            )
        loaded = ToldAgent(loaded, disguise)
        numbers = np.argsort(disguise.acts_as)[numbers[disguise.acts_as]]
    terms = [term for term in (novelty, f"action-remap={','.join(map(str, numbers))}" if swap else "") if term]
    rows = nappingrl.run(
        name, loaded, "auto", novelty="; ".join(terms), trials=trials, seed=seed, protocol=protocol, workers=1
    ).rows
    last = rows.filter(pl.col("episode") >= 0).group_by("trial", maintain_order=True).agg(pl.col("return").tail(10))
    return np.array([np.mean(values) for values in last["return"].to_list()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("env")
    parser.add_argument("agent")
    parser.add_argument("--novelty", default="")
    parser.add_argument("--swap", type=int, nargs=2, default=[])
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--protocol", default="40+40")
    arguments = parser.parse_args()
    for is_disguised in (False, True):
        found = returns(**vars(arguments), is_disguised=is_disguised)
        interval = bootstrap_interval(mean, found, rng=np.random.default_rng(0))
        span = f" [{interval.low:.1f}, {interval.high:.1f}]" if interval else ""
        print(f"{'disguised' if is_disguised else 'original':9}  last ten {found.mean():.1f}{span}")


if __name__ == "__main__":
    main()
