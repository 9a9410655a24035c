"""A match: the frozen agent and the same agent with a method, in lock step in the same world."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.adaptation import ENDLESS_OPTIONS, AdaptationSpec
from nappingrl.agents import load as load_agent
from nappingrl.agents.base import Agent, check_fit
from nappingrl.errors import BadSpecError, check_name, check_whole
from nappingrl.methods.napping.rules import RULES
from nappingrl.play.pane import Episode, Pane, Slingshot
from nappingrl.play.watched import WatchedPane
from nappingrl.play.world import World
from nappingrl.registry import domains, methods
from nappingrl.trials.limits import MAX_SEED
from nappingrl.trials.spec import RunSpec, TrialSpec
from nappingrl.types import Floats

YOU = "you"
"""The method that is a person at the keyboard."""
N_BEFORE, N_BEFORE_SLOW = 20, 1
"""Episodes in the unchanged world before the match: detectors calibrate on them."""
SLOW_COST = 50.0
"""Domains that cost this much more than CartPole are slow."""
REEL_FRAMES = 25
"""Pictures a second of a step that takes long."""
ORACLE_DELAY = 50
"""Steps for which a world must last before the oracle plans for it: a slider passes many worlds on its way."""
MAX_STATES = 500
MAX_WORLDS = 24
"""Worlds that are remembered for coming back."""


@dataclass(frozen=True, slots=True)
class MatchSpec:
    """Everything that a match follows from; the same spec gives the same episodes, also with `napping run`."""

    domain: str
    agent: str = ""
    """Default: the domain's."""
    method: str = "auto"
    seed: int = 0
    changes: Mapping[str, float] = field(default_factory=dict)
    """Parameters that differ from the trained ones from the first episode on."""
    n_before: int = -1
    """Episodes in the unchanged world before the match; -1: as many as detectors need, few where they take long."""


class _EpisodeDraws:
    """The uniform numbers from which the episodes of a pane begin: the same for all panes, and for `napping run`."""

    def __init__(self, stream: np.random.Generator, n_draws: int, n_needed: int) -> None:
        self._stream, self._n_draws, self._n_needed = stream, n_draws, n_needed
        self._number, self._drawn = -1, np.zeros((1, n_draws))

    def __call__(self, number: int) -> Floats:
        """Those of an episode; the same one again, or a later one."""
        while self._number < number:
            self._drawn = self._stream.random((1, self._n_draws))
            self._number += 1
        return self._drawn if self._n_draws == self._n_needed else np.zeros((1, self._n_needed))


class Match:
    """Two panes in the same world, and an oracle behind the scenes where the domain has one."""

    def __init__(
        self,
        spec: MatchSpec,
        world: World | None = None,
        agent: Agent | None = None,
        watched: WatchedPane | None = None,
    ) -> None:
        """`watched`: an agent that is shown instead of the frozen one."""
        check_whole("seed", spec.seed, 0, MAX_SEED)
        self.world = world if world is not None else World(spec.domain, agent=spec.agent)
        domain = self.world.domain
        self.agent = agent if agent is not None else load_agent(self.world.agent, spec.domain)
        check_fit(self.agent, domain)
        check_name("method", spec.method, method_names(self.world, self.agent))
        n_before = spec.n_before if spec.n_before >= 0 else N_BEFORE_SLOW if is_slow(spec.domain) else N_BEFORE
        self.spec = spec = replace(spec, changes=self.world.check(spec.changes), n_before=n_before)
        self.novelty = self.world.text(self.spec.changes)
        """The changes of the spec, as `--novelty` takes them."""
        self._trial = TrialSpec(RunSpec(spec.domain, seed=spec.seed), self.novelty, 0)
        self.frozen: Pane | WatchedPane = watched or self._pane("frozen", 0)
        self.adapting = self._pane("frozen" if spec.method == YOU else spec.method, spec.n_before)
        has_oracle = self.world.has_oracle and spec.method != "oracle"
        self.oracle = self._pane("oracle", 0) if has_oracle else None
        if spec.method == YOU:
            self.adapting.human = 0
        self.changes: dict[str, float] = {}
        self.worlds: list[dict[str, float]] = [{}]
        """Those that were met, by number; the first is as trained."""
        self._lived_in = {0}
        """Numbers of the worlds in which an episode ended."""
        self.titles: dict[int, str] = {}
        """What drawn novelties are called, by number of their world."""
        self.n_ticks = self._changed_at = 0
        self.states_before: deque[NDArray[np.float32]] = deque(maxlen=MAX_STATES)
        """The latest model states before the match."""
        while self.adapting.episode < 0:
            self.adapting.step()
            if self.adapting.wanted is not None:
                self.states_before.append(self.adapting.wanted.model_states[0])
        self.adapting.alarms.clear()
        for pane in self.panes:
            pane.keep_reels()
        if self.spec.changes:
            self.change_world(self.spec.changes)

    def _pane(self, method: str, n_before: int) -> Pane:
        plain = self.world.plain
        name, options = split_method(method)
        spec = AdaptationSpec(name, options=options)
        spec = spec.resolve(plain if name == "oracle" else self.world.domain, ENDLESS_OPTIONS)
        skipped = self.spec.n_before - n_before
        draws = _EpisodeDraws(self._trial.stream("reset"), plain.n_reset_draws, self.world.domain.n_reset_draws)
        key = self._trial.key("choice")
        return Pane(self.world, spec, self.agent, lambda number: draws(number + skipped), key, n_before)

    @property
    def panes(self) -> tuple[Pane | WatchedPane, Pane]:
        """Frozen (or watched) and adapting, as they are shown."""
        return self.frozen, self.adapting

    @property
    def waits_for_you(self) -> bool:
        """Whether nothing happens before a person shoots."""
        return self.spec.method == YOU and isinstance(self.adapting.domain, Slingshot) and not self.adapting.release

    @property
    def frames_per_second(self) -> float:
        """Pictures a second at the world's own pace."""
        return REEL_FRAMES if any(pane.reel for pane in self.panes) else self.world.domain.frames_per_second

    def advance(self) -> list[Episode]:
        """Show the next picture of a long step, or make the next step."""
        if any(pane.reel for pane in self.panes):
            for pane in self.panes:
                del pane.reel[:1]
            return []
        return [] if self.waits_for_you else self.step()

    def step(self) -> list[Episode]:
        """One step of everyone; returns the episodes of the shown panes that ended."""
        self.n_ticks += 1
        ended = [episode for pane in self.panes if (episode := pane.step()) is not None]
        self._lived_in.update(episode.world for episode in ended)
        self._step_oracle()
        return ended

    def _step_oracle(self) -> None:
        """A step of the oracle; it plans anew once the world has rested for a while, as that takes long."""
        if self.oracle is None:
            return
        if self.oracle.changes != self.changes:
            if self.n_ticks - self._changed_at < ORACLE_DELAY:
                return
            self.oracle.change_world(self.changes, self.worlds.index(self.changes))
            self.oracle.restart_episode()
            self.oracle.episodes.clear()
        self.oracle.step()

    def change_world(self, changes: Mapping[str, float], title: str = "") -> None:
        """Other parameters for everyone, at once; `title`: what a drawn novelty is called."""
        checked = self.world.check(changes)
        if checked == self.changes:
            return
        if checked not in self.worlds:
            self._forget_unused()
            self.worlds.append(checked)
        self.changes = checked
        number = self.worlds.index(checked)
        if title:
            self.titles[number] = title
        self._changed_at = self.n_ticks
        for pane in self.panes:
            pane.change_world(checked, number)

    def _forget_unused(self) -> None:
        """Drop the latest world if no episode ended in it (a slider on its way), and any beyond the limit."""
        latest = len(self.worlds) - 1
        if latest and (latest not in self._lived_in or len(self.worlds) >= MAX_WORLDS):
            self.worlds.pop()
            self.titles.pop(latest, None)
            self._lived_in.discard(latest)

    def describe_world(self, number: int) -> str:
        """A world that was met, in words."""
        words = self.world.describe(self.worlds[number])
        return f"{self.titles[number]}: {words}" if number in self.titles else words

    @property
    def oracle_level(self) -> float | None:
        """The mean return of the oracle's latest episodes in this world; None: unknown."""
        if self.oracle is None or self.oracle.changes != self.changes:
            return None
        if any(name not in self.world.plain.parameters for name in self.changes):
            return None
        latest = [episode.total for episode in self.oracle.episodes[-5:]]
        return float(np.mean(latest)) if latest else None


def is_slow(domain: str) -> bool:
    """Whether a step takes long."""
    return domain in domains and bool(domains.entry(domain).cost >= SLOW_COST)


def method_names(world: World, agent: Agent) -> list[str]:
    """The methods that a match offers for this agent."""
    if agent.is_stateful:
        return ["frozen", YOU]
    rules = [f"napping/{rule}" for rule in RULES if rule != world.plain.defaults.options.get("rule")]
    offered = ["auto", "napping", *rules, "napping-ucb", "foresight", "reground", "oracle", "frozen"]
    if world.plain.observation_low.ndim != 1 or world.plain.action_mask is not None:
        offered = ["napping", *rules, "napping-ucb", "oracle", "frozen"]
    if not world.has_oracle:
        offered.remove("oracle")
    if world.plain.is_continuous:
        return [name for name in offered if not methods.get(split_method(name)[0]).needs_discrete]
    return [*offered, YOU]


def default_method(world: World, agent: Agent) -> str:
    """Auto where it can run."""
    names = method_names(world, agent)
    if not names:
        raise BadSpecError(f"no method of the playground fits {world.domain.name}")
    return "auto" if "auto" in names else names[0]


def title_of(method: str) -> str:
    """What a method is called on the page."""
    if method == YOU:
        return "You (arrow keys)"
    name, options = split_method(method)
    return ", ".join([str(methods.entry(name).title), *(f"rule {rule}" for rule in options.values())])


def split_method(method: str) -> tuple[str, dict[str, Any]]:
    """The registered method and its options: "napping/text" is NAPPING with the rule "text"."""
    name, _, rule = method.partition("/")
    return name, {"rule": rule} if rule else {}
