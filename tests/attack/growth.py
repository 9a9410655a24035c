"""Agents that never stop: memory must be flat, and everything must still work, at the limits of what is kept.

At budget 1 the methods that made most of an endless life (`LONG`) take 10^5 steps, the others 10^4; `--scale 10` gives
10^6 and 10^5.
"""

import multiprocessing
import resource
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from nappingrl import NappingAgent
from nappingrl.adaptation import ENDLESS_OPTIONS
from nappingrl.errors import NappingError
from nappingrl.methods.contexts import MAX_CONTEXTS
from nappingrl.registry import detectors, methods
from tests.attack.outcome import Outcome

LONG = ("napping", "napping-ucb", "foresight")
MAX_GROWTH, MAX_GROWTH_MB = 0.05, 20.0
"""By which resident memory may grow in the second half: more than both of them is a failure."""
N_SHORT_STAYS = MAX_CONTEXTS + 10


@dataclass
class Life:
    """One agent and how long it lives."""

    agent: str
    method: str
    detector: str
    steps: int
    seed: int
    max_regions: int = 0
    """0: the method has no such option."""

    @property
    def name(self) -> str:
        """For the table."""
        return f"{self.method} ({self.agent}, {self.detector})"


@dataclass
class Report:
    """What became of it."""

    life: Life
    regions: int = 0
    contexts: int = 0
    megabytes: list[float] = field(default_factory=list)
    """Resident memory after 10, 50 and 100 % of the steps."""
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)
    is_refused: bool = False

    def line(self) -> str:
        """One line of the table."""
        memory = "/".join(f"{mb:.0f}" for mb in self.megabytes)
        each = 1e6 * self.seconds / self.life.steps
        return (
            f"{self.life.name}: {self.life.steps} steps, {self.regions} regions, {self.contexts} contexts, "
            f"{memory} MB, {self.seconds:.0f} s ({each:.0f} us/step)"
        )


def attack(budget: float, seed: int) -> Outcome:
    """Let every method and every detector live long, each in a separate process."""
    outcome = Outcome("growth")
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as pool:
        for report in pool.map(live, lives(budget, seed)):
            outcome.tried += 1
            check_memory(report)
            outcome.refused += report.is_refused
            outcome.survived += not (report.failures or report.is_refused)
            outcome.notes += [] if report.is_refused else [report.line()]
            for failure in report.failures:
                outcome.fail(f"{report.life.name}: {failure}; seed {seed}")
    return outcome


def check_memory(report: Report) -> None:
    """Add a failure if memory grew in the second half."""
    if report.is_refused:
        return
    _, half, full = report.megabytes
    if full - half > max(MAX_GROWTH * half, MAX_GROWTH_MB):
        report.failures.append(f"memory grew from {half:.0f} to {full:.0f} MB in the second half")


def lives(budget: float, seed: int) -> Iterator[Life]:
    """Every method that can live outside of trials, those that train with both kinds of learner; every detector."""
    for name in methods.names():
        method = methods.get(name)
        if method.is_privileged:
            continue
        steps = int(budget * (1e5 if name in LONG else 1e4))
        limit = min(ENDLESS_OPTIONS["max_regions"], steps // 5) if "max_regions" in method.options else 0
        yield Life("ppo", name, "given", steps, seed, limit)
        if "learning_rate" in method.options:
            yield Life("dqn", name, "given", steps, seed)
    steps = int(budget * 1e4)
    for name in [name for name in detectors.names() if name != "given"]:
        yield Life("ppo", "napping", name, steps, seed, steps // 50)  # full by half time


def live(life: Life) -> Report:
    """Live it, and save, load and explain what was learned."""
    report, is_noise = Report(life), life.max_regions > 0 and life.detector == "given"
    options: dict[str, Any] = {"max_regions": life.max_regions} if life.max_regions else {}
    if is_noise and methods.get(life.method).takes_score:
        options["score"] = _reward
    try:
        agent = NappingAgent(
            life.agent, domain="cartpole", method=life.method, detector=life.detector, seed=life.seed, **options
        )
    except NappingError:
        report.is_refused = True
        return report
    # A burst of short stays in new contexts, then long ones: both limits on contexts are reached before half time.
    moves = {*(life.steps // 20 + 3 * i for i in range(N_SHORT_STAYS)), life.steps // 4, life.steps * 3 // 4}
    began = time.perf_counter()
    env = agent.wrap(Noise(life.seed) if is_noise else Changing(life.seed))
    observation, _ = env.reset()
    for k in range(1, life.steps + 1):
        observation, _, terminated, truncated, _ = env.step(agent.predict(observation)[0])
        if terminated or truncated:
            observation, _ = env.reset()
        if life.detector == "given" and k in moves:
            agent.switch_to(f"context {k}")
        if k in (life.steps // 10, life.steps // 2, life.steps):
            report.megabytes.append(resident_mb())
    report.seconds = time.perf_counter() - began
    _judge(agent, report)
    return report


def _judge(agent: NappingAgent, report: Report) -> None:
    life = report.life
    report.regions = int(agent.method.regions(np.zeros(1, np.int64))[0][0])
    known = agent.contexts()
    report.contexts = len(known)
    if life.max_regions and not report.regions <= life.max_regions:
        report.failures.append(f"{report.regions} regions, allowed: {life.max_regions}")
    if life.max_regions and sum(known.values()) > 2 * life.max_regions:
        report.failures.append(f"{sum(known.values())} regions in all contexts, allowed: {2 * life.max_regions}")
    if len(known) > MAX_CONTEXTS + 2:  # the current and the original one
        report.failures.append(f"{len(known)} contexts, allowed: {MAX_CONTEXTS + 2}")
    agent.explain()
    if agent.method.can_be_saved:
        points = np.random.default_rng(life.seed).uniform(-0.2, 0.2, (100, 4)).astype(np.float32)
        with tempfile.TemporaryDirectory() as folder:
            loaded = NappingAgent.load(agent.save(Path(folder) / "agent"), score=agent.score)
        if loaded.contexts() != known:
            report.failures.append("a saved agent has other contexts")
        if any(loaded.predict(point)[0] != agent.predict(point)[0] for point in points):
            report.failures.append("a saved agent acts differently")


class Noise(gymnasium.Env[Any, Any]):
    """Observations without meaning, and rewards that only fall: nearly every step makes a region."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (4,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, seed: int) -> None:
        self._random, self._reward = np.random.default_rng(seed), 0.0

    def _observation(self) -> Any:
        return self._random.uniform((-2.4, -3.0, -0.21, -3.0), (2.4, 3.0, 0.21, 3.0)).astype(np.float32)

    def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._reward -= 1e-3
        return self._observation(), self._reward, bool(self._random.random() < 0.02), False, {}


class Changing(gymnasium.Wrapper[Any, Any, Any, Any]):
    """CartPole in short episodes, with other parameters after every 60 of them."""

    def __init__(self, seed: int) -> None:
        super().__init__(gymnasium.make("nappingrl/CartPole-v0", max_episode_steps=50))
        self._random, self._n_episodes = np.random.default_rng(seed), 0
        self._options: dict[str, Any] = {}

    def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        if self._n_episodes % 60 == 0:
            is_changed = self._n_episodes and self._random.random() < 0.7
            force, gravity = self._random.uniform(-20, 20), self._random.uniform(5, 20)
            self._options = {"params": {"force": force, "gravity": gravity}} if is_changed else {}
        self._n_episodes += 1
        return self.env.reset(options=self._options)


def _reward(observations: Any, actions: Any, following: Any, rewards: Any, terminated: Any) -> Any:
    """The score of `Noise`."""
    return rewards


def resident_mb() -> float:
    """Resident memory of this process; its peak where the system does not tell."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
