"""Bad numbers in rewards and observations, for every method with every detector.

A twin of each agent acts as well, but never observes the bad steps; both must act the same and end in the same state.
"""

import tempfile
import warnings
import zipfile
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

import nappingrl
from nappingrl.errors import NappingError
from nappingrl.registry import detectors, methods
from tests.attack.outcome import Outcome

ABSURD = (np.nan, np.inf, -np.inf, 1e30, -1e300, 1.1e12, -5e15)
LARGE = (3e9, -8e11)
"""Only dropped once an agent knows what is usual."""
USUAL_STEPS = 30
STEPS = 600
"""Of each pair at full budget."""
CHANGED_AT = 0.3
"""Share of the steps before the pole becomes long and heavy."""
POISONED = 0.15


class Pair:
    """An agent that meets bad numbers, and its twin that does not."""

    def __init__(self, method: str, detector: str, rng: np.random.Generator) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what can never act is said at once
            self.agent, self.twin = (
                nappingrl.NappingAgent("ppo", domain="cartpole", method=method, detector=detector, seed=1)
                for _ in range(2)
            )
        self.rng = rng
        self.env = gymnasium.make("CartPole-v1", max_episode_steps=200)
        self.observation, _ = self.env.reset(seed=int(rng.integers(2**31)))
        self.n_clean = self.n_poisoned = 0

    def step(self) -> None:
        """One step of the environment; the agent may be told nonsense about it."""
        what = (
            str(self.rng.choice(["observation", "next observation", "reward"])) if self.rng.random() < POISONED else ""
        )
        seen = self._spoil(self.observation) if what == "observation" else self.observation
        action, _ = self.agent.predict(seen)
        assert action in (0, 1), f"action {action!r}"
        if what != "observation":
            expected, _ = self.twin.predict(seen)
            assert action == expected, f"acts {action}, its twin {expected}"
        after, reward, terminated, truncated, _ = self.env.step(int(action))
        if what:
            told = self._spoil(after) if what == "next observation" else after
            told_reward = self._bad_number() if what == "reward" else reward
            self.agent.observe(seen, action, told, told_reward, terminated, truncated)
            self.n_poisoned += 1
        else:
            for one in (self.agent, self.twin):
                one.observe(seen, action, after, reward, terminated, truncated)
            self.n_clean += 1
        self.observation = after
        if terminated or truncated:
            self.observation, _ = self.env.reset()
            if what:
                self.twin.begin_episode()  # it was never told of the last step

    def change(self) -> None:
        """Make the pole long and heavy."""
        world: Any = self.env.unwrapped
        world.length, world.gravity, world.polemass_length = 2.0, 25.0, 0.4

    def compare(self) -> None:
        """Both are in the same state, and every bad step was counted."""
        mine, other = state(self.agent), state(self.twin)
        different = [name for name in mine if not np.array_equal(mine[name], other[name], equal_nan=True)]
        assert not different, f"state differs from the twin's: {different}"
        n_dropped = int(self.agent.adaptation.filter.n_dropped[0])
        assert n_dropped == self.n_poisoned, f"{n_dropped} steps dropped instead of {self.n_poisoned}"

    def _bad_number(self) -> float:
        choices = ABSURD + (LARGE if self.n_clean > USUAL_STEPS else ())
        return choices[int(self.rng.integers(len(choices)))]

    def _spoil(self, observation: NDArray[np.float32]) -> NDArray[np.float32]:
        spoiled = observation.copy()
        places = self.rng.random(len(spoiled)) < 0.5
        places[self.rng.integers(len(places))] = True
        with np.errstate(over="ignore"):
            spoiled[places] = np.float32(self._bad_number())
        return spoiled


def state(agent: nappingrl.NappingAgent) -> dict[str, NDArray[Any]]:
    """What a saved agent holds, without the count of dropped steps; what can be asked, of one that cannot be saved."""
    if not agent.method.can_be_saved:
        return {"regions": np.array(agent.method.regions(np.arange(1))), "contexts": agent.adaptation.contexts}
    with tempfile.TemporaryDirectory() as folder:
        path = agent.save(Path(folder, "agent.zip"))
        with zipfile.ZipFile(path) as archive:
            members = [name for name in archive.namelist() if name.endswith(".npz")]
            tables = [np.load(BytesIO(archive.read(name)), allow_pickle=False) for name in members]
    return {name: array for table in tables for name, array in table.items() if "dropped" not in name}


def poison(method: str, detector: str, steps: int, seed: int, outcome: Outcome) -> None:
    """Poison one pair; a failure names what repeats it."""
    rng = np.random.default_rng([seed, *f"{method} {detector}".encode()])
    try:
        pair = Pair(method, detector, rng)
    except NappingError:  # the method cannot run with this agent, or needs another detector
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", nappingrl.AdaptationWarning)
            for step in range(steps):
                if step == int(CHANGED_AT * steps):
                    pair.change()
                pair.step()
            pair.compare()
    except Exception as error:
        outcome.fail(f"{method} with {detector}, seed {seed}: {type(error).__name__}: {error}")
        outcome.survived -= 1
    outcome.tried += pair.n_poisoned
    outcome.survived += pair.n_poisoned


def attack(budget: float, seed: int) -> Outcome:
    """Poison every method with every detector."""
    outcome = Outcome("poisoned")
    pairs = list(product(methods.names(), detectors.names()))
    for method, detector in pairs:
        poison(method, detector, max(60, round(STEPS * budget)), seed, outcome)
    outcome.notes.append(f"{len(methods.names())} methods with {len(detectors.names())} detectors")
    return outcome
