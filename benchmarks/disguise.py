"""Whether `auto` depends on the layout of an environment: the same trials with disguised observations and actions.

python benchmarks/disguise.py Acrobot-v1 dqn --swap 0 2 --trials 10
python benchmarks/disguise.py CartPole-v1 benchmarks/agents/cartpole-ppo.zip --novelty force_mag=-10 --trials 10
python benchmarks/disguise.py LunarLander-v3 benchmarks/agents/lander-ppo.zip --swap 1 3 --protocol 30+25 --trials 10
python benchmarks/disguise.py crossroad dqn --trials 2

The disguised environment shows the observations in another order and in other units, and numbers its actions in another
order; the agent is told. Draws of episodes are the same. `--swap A B` exchanges two actions, by their original numbers.
A built-in domain instead of an environment: each of its novelties in turn, drawn once.
"""

import argparse
import zlib
from copy import deepcopy

import gymnasium
import numpy as np
import polars as pl
from gymnasium.spaces import Box, Discrete

import nappingrl
from nappingrl.agents.base import Agent
from nappingrl.domains import domains, find_domain
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


def disguised(env: str, terms: str = "", is_disguised: bool = True) -> str:
    """Id of an environment with the changes that `terms` describe, disguised or not."""
    name = f"{'disguised' if is_disguised else 'changed'}/{env.rpartition('/')[2]}"
    if terms:
        name = name.replace("/", f"-{zlib.crc32(terms.encode())}/")
    if name not in gymnasium.registry:
        bare = deepcopy(gymnasium.spec(env))
        bare.max_episode_steps, horizon = None, bare.max_episode_steps

        def make(**options):
            made = gymnasium.make(bare, **options)
            made = nappingrl.apply_novelty(made, terms, verify=False) if terms else made
            return Disguise(made) if is_disguised else made

        gymnasium.register(name, make, max_episode_steps=horizon)
    return name


def named_terms(domain: str, novelty: str, seed: int) -> str:
    """A draw of a built-in domain's novelty, as terms."""
    spec = find_domain(domain)
    drawn = spec.novelty(novelty).sample(np.random.default_rng(seed), spec.parameters)
    return "; ".join(f"{name}={value}" for name, value in drawn.items() if value != spec.parameters[name])


def returns(arguments: argparse.Namespace, is_disguised: bool) -> np.ndarray:
    """Mean return of the last ten episodes of each trial."""
    env = find_domain(arguments.domain).env_id if arguments.domain else arguments.env
    agent: Agent = nappingrl.load_agent(arguments.agent, arguments.domain or env)
    name, numbers = env, np.arange(agent.n_actions)
    if arguments.swap:
        numbers[arguments.swap] = arguments.swap[::-1]
    if is_disguised:
        name, disguise = disguised(env), Disguise(gymnasium.make(env))
        agent = ToldAgent(agent, disguise)
        numbers = np.argsort(disguise.acts_as)[numbers[disguise.acts_as]]
    if arguments.domain:
        names = list(find_domain(arguments.domain).novelties)
        draws = [named_terms(arguments.domain, novelty, arguments.seed) for novelty in names]
        novelties = [f"other-env={disguised(env, terms, is_disguised)}" for terms in draws]
    else:
        swap = f"action-remap={','.join(map(str, numbers))}" if arguments.swap else ""
        novelties = ["; ".join(term for term in (arguments.novelty, swap) if term)]
    found: list[float] = []
    for novelty in novelties:
        rows = nappingrl.run(
            name, agent, "auto", novelty=novelty, trials=arguments.trials, seed=arguments.seed,
            protocol=arguments.protocol, workers=1,
        ).rows  # fmt: skip
        changed = rows.filter(pl.col("episode") >= 0)
        last = changed.group_by("trial", maintain_order=True).agg(pl.col("return").tail(10).mean())
        found += last["return"].to_list()
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("env", help="id of an environment, or a built-in domain")
    parser.add_argument("agent")
    parser.add_argument("--novelty", default="")
    parser.add_argument("--swap", type=int, nargs=2, default=[])
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--protocol", default="40+40")
    arguments = parser.parse_args()
    arguments.domain = arguments.env if arguments.env in domains.names() else ""
    for is_disguised in (False, True):
        found = returns(arguments, is_disguised)
        interval = bootstrap_interval(mean, found, rng=np.random.default_rng(0))
        span = f" [{interval.low:.2f}, {interval.high:.2f}]" if interval else ""
        print(f"{'disguised' if is_disguised else 'original':9}  last ten {found.mean():.2f}{span}")


if __name__ == "__main__":
    main()
