"""Foresight: fit the changed world, imagine it, and follow a simple rule where it is expected to earn more."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.base import Agent
from nappingrl.errors import BadSpecError
from nappingrl.methods.base import Method, MethodInfo
from nappingrl.methods.contexts import by_context
from nappingrl.methods.foresight.describe import as_cells, in_words
from nappingrl.methods.foresight.planner import Planner
from nappingrl.methods.foresight.policies import FROZEN, QUADRATIC, act_each, n_terms, shares_of
from nappingrl.types import Actions, Decision, Flags, Keys, Observations, Rows, Transition, with_prefix
from nappingrl.world_model.action_encoding import Pushes
from nappingrl.world_model.model import Prior, fit, predict
from nappingrl.world_model.transitions import Memory, Seen

FIRST_PLAN = 8
"""Steps in the changed world before the first plan; then plans come at twice as many, and so on."""
FULL_EPISODES = 12
"""After each of so many episodes the plan is made again; later only when an episode surprises."""
SURPRISE, SLACK = 0.05, 0.01
"""An episode surprises if it differs from what was expected by this share, and this share of the horizon's rewards."""
RECENT = 10
"""Episodes before the alarm that may have been in the changed world already."""
ANOMALOUS = 5.0
"""A step is of another world if its residual is so many times the largest one before."""
FEWEST = 50
"""Transitions from which a prior can be made."""
PROBES, LAST_PROBE = 2, 64
"""How often every action must have been executed in the changed world, if need be as a trial, in its first steps."""
N_STARTS = 64
"""States in which episodes began that are remembered."""

_NOW = -1
_STATE = ("keys", "worlds", "has_left", "episodes", "totals", "is_first", "next_plan", "n_episodes", "has_switched",
          "chosen", "kinds", "thetas", "centres", "scales")  # fmt: skip


class Foresight(Method):
    """Adaptation by imagined episodes; needs neither a score nor a threshold."""

    detector = "residual"
    learns_from_others = True
    can_be_saved = True

    def __init__(self, agent: Agent, info: MethodInfo, n: int) -> None:
        super().__init__(agent, info, n)
        if not info.domain.name or len(info.domain.observation_low.shape) != 1:
            raise BadSpecError(
                "method 'foresight' needs to know its world, and observations that are one row of numbers: give domain="
            )
        self.domain = info.domain
        d = len(self.domain.observation_low)
        self._pushes = Pushes(self.domain)
        self._memory = Memory(n, d, self._pushes.size)
        self._keys = np.zeros(n, np.uint64)
        self._worlds = np.zeros(n, np.int64)
        self._has_left = np.zeros(n, np.bool_)  # whether the trial was ever believed to be in another world
        self._episodes = np.zeros(n, np.int64)
        self._totals = np.zeros(n)
        self._is_first = np.ones(n, np.bool_)  # whether the next step is an episode's first
        self._starts: list[list[NDArray[np.float64]]] = [[] for _ in range(n)]
        self._planners: list[Planner | None] = [None] * n
        self._stored: list[dict[int, tuple[Planner | None, Seen]]] = [{} for _ in range(n)]
        self._next_plan = np.zeros(n, np.int64)
        self._n_episodes = np.zeros(n, np.int64)  # ended since the world was entered
        self._has_switched = np.zeros(n, np.bool_)  # whether others than the rule in force have played this episode
        self._chosen = np.zeros((n, max(1, len(self._pushes.low))))
        self._before: list[dict[int, float]] = [{} for _ in range(n)]  # returns of the episodes before the alarm
        self._probes: list[list[int]] = [[] for _ in range(n)]
        self._kinds = np.full(n, FROZEN)
        outputs, terms = self.domain.n_actions or len(self._pushes.low), n_terms(QUADRATIC, d)
        self._thetas = np.zeros((n, outputs, max(terms, outputs) + 1))
        self._centres, self._scales = np.zeros((n, d)), np.ones((n, d))

    def start(self, rows: Rows, keys: Keys) -> None:
        """Forget everything of these rows."""
        super().start(rows, keys)
        self._memory.clear(rows)
        self._keys[rows], self._worlds[rows], self._has_left[rows] = keys, 0, False
        self._episodes[rows], self._totals[rows], self._is_first[rows] = 0, 0.0, True
        self._kinds[rows] = FROZEN
        for row in rows:
            self._starts[row], self._stored[row], self._before[row] = [], {}, {}
            self._planners[row], self._probes[row] = None, []

    def act(self, rows: Rows, observations: Observations, decision: Decision) -> Actions:
        """The agent's actions where no rule is in force, else those of the rules."""
        first = self._is_first[rows]
        if first.any():
            for row, observation in zip(rows[first], observations[first], strict=True):
                starts = self._starts[row]
                starts.append(observation.astype(np.float64))
                del starts[:-N_STARTS]
            self._is_first[rows] = False
        actions = self._actions(rows, observations, decision)
        for m, row in enumerate(rows.tolist()):
            if self._probes[row]:
                actions = actions.copy() if actions is decision.actions else actions
                actions[m] = self._probes[row].pop()
        self._chosen[rows] = actions.reshape(len(rows), -1)
        return actions

    def _actions(self, rows: Rows, observations: Observations, decision: Decision) -> Actions:
        if not self._kinds[rows].any():
            return decision.actions
        if self._pushes.is_continuous:
            return self._act_continuously(rows, observations, decision.actions)
        actions = decision.actions.copy()
        act_each(self._kinds, self._thetas, self._centres, self._scales, rows, observations, actions)
        return actions

    def _act_continuously(self, rows: Rows, observations: Observations, wanted: Actions) -> Actions:
        actions = wanted.copy()
        for m in np.flatnonzero(self._kinds[rows]):
            planner = self._planners[rows[m]]
            assert planner is not None
            z = (observations[m : m + 1] - planner.prior.centre) / planner.scale
            shares = shares_of(planner.current, z, self._pushes.to_shares(wanted[m : m + 1]))
            actions[m] = self._pushes.to_actions(shares)[0]
        return actions

    def on_context_change(self, rows: Rows, contexts: Rows) -> None:
        """Keep what is known of the world that is left; go on with what is known of the one that is entered."""
        for row, world in zip(rows.tolist(), contexts.tolist(), strict=True):
            old = int(self._worlds[row])
            if old:
                self._stored[row][old] = (self._planners[row], self._memory.read(row))
            self._worlds[row], self._probes[row] = world, []
            self._has_switched[row] = True
            if world == 0:
                self._planners[row] = None
                self._kinds[row] = FROZEN
                continue
            if not self._has_left[row]:
                self._stored[row][0] = (None, self._memory.read(row))
                self._has_left[row] = True
            if world in self._stored[row]:
                self._recall(row, world)
            else:
                self._meet(row)

    def _recall(self, row: int, world: int) -> None:
        self._planners[row], seen = self._stored[row][world]
        self._memory.write(row, seen)
        self._use(row)

    def _meet(self, row: int) -> None:
        """A world that was never seen: what was seen of it before the alarm is told from what was seen before it."""
        seen = self._stored[row][0][1]
        first = self._first_anomalous(row, seen)
        before, after = seen.at(seen.episodes < first), seen.at(seen.episodes >= first)
        self._memory.write(row, after)
        self._n_episodes[row], self._next_plan[row] = 0, FIRST_PLAN
        self._planners[row] = None
        if len(before.rewards) < FEWEST:
            return
        self._planners[row] = planner = self._make_planner(row, before)
        planner.frozen.returns += [total for episode, total in self._before[row].items() if episode >= first]

    def _make_planner(self, row: int, before: Seen) -> Planner:
        key = int(self._keys[row]) ^ (int(self._worlds[row]) << 64)
        return Planner(self.agent, Prior(before, self.domain), self.domain, key)

    def _first_anomalous(self, row: int, seen: Seen) -> int:
        """The first episode of the changed world: this one, or the first of those that older ones do not explain.

        A detector that alarms within an episode has watched those before it: then it is this one.
        """
        now = int(self._episodes[row])
        if not self._is_first[row]:
            return now
        is_old = seen.episodes < now - RECENT
        if is_old.sum() < FEWEST:
            is_old = seen.episodes < now
        if is_old.sum() < FEWEST:
            return now
        old = seen.at(is_old)
        prior = Prior(old, self.domain)
        model = fit(prior)
        usual = np.abs(predict(model, old) - old.nexts).max(axis=0) + 1e-3 * (old.nexts - old.states).std(axis=0) + 1e-9
        first = now
        for episode in sorted(set(seen.episodes[~is_old & (seen.episodes < now)].tolist()), reverse=True):
            part = seen.at(seen.episodes == episode)
            strange = (np.abs(predict(model, part) - part.nexts) > ANOMALOUS * usual).any(axis=1)
            if strange.sum() < min(2, len(strange)):
                break
            first = episode
        return first

    def learn(self, rows: Rows, transition: Transition, detected: Flags) -> None:
        """Remember the step; plan when there is twice as much to plan from."""
        super().learn(rows, transition, detected)
        t = transition
        self._totals[rows] += t.rewards
        self._has_switched[rows] |= (t.actions.reshape(len(rows), -1) != self._chosen[rows]).any(axis=1)
        keep = detected | ~self._has_left[rows]
        at = slice(None) if keep.all() else keep
        self._memory.add(
            rows[at], t.observations[at], self._pushes(t.actions[at]), t.next_observations[at], t.rewards[at],
            t.terminated[at], self._episodes[rows[at]],
        )  # fmt: skip
        ended = t.terminated | t.truncated
        due = detected & ~ended & (self._memory.count[rows] >= self._next_plan[rows])
        for m in np.flatnonzero(due):
            self._plan(int(rows[m]), t.next_observations[m].astype(np.float64))

    def end_episode(self, rows: Rows) -> None:
        """Judge the rule that played; plan again in the first episodes, and after a surprise."""
        for row in rows.tolist():
            total, self._totals[row] = float(self._totals[row]), 0.0
            planner = self._planners[row]
            if not self._has_left[row]:
                self._before[row][int(self._episodes[row])] = total
                self._before[row].pop(int(self._episodes[row]) - RECENT, None)
            elif planner is not None and self._worlds[row]:
                played = planner.current
                if not self._has_switched[row] and not planner.is_exploring:
                    planner.judge(played, total)
                self._n_episodes[row] += 1
                slack = SLACK * self._reward_scale(row) + SURPRISE * abs(played.expected)
                is_surprising = planner.is_exploring or abs(total - played.expected) > slack
                if self._n_episodes[row] <= FULL_EPISODES or is_surprising:
                    self._plan(row, None)
            elif self._worlds[row]:
                self._plan(row, None)
            self._has_switched[row] = False
            self._episodes[row] += 1
            self._probes[row] = []
        self._is_first[rows] = True

    def _reward_scale(self, row: int) -> float:
        """What the rewards of a whole episode may add up to."""
        planner = self._planners[row]
        assert planner is not None
        return float(np.abs(planner.prior.seen.rewards).mean()) * (self.domain.horizon or 200)

    def _plan(self, row: int, now: NDArray[np.float64] | None) -> None:
        """Plan with all that is known; `now`: in the middle of an episode."""
        seen = self._memory.read(row)
        while self._next_plan[row] <= len(seen.rewards):
            self._next_plan[row] *= 2
        planner = self._planners[row]
        if planner is None:
            if len(seen.rewards) < FEWEST:
                return
            planner = self._planners[row] = self._make_planner(row, seen)
        if now is not None:
            self._has_switched[row] = True
        self._probes[row] = self._untried(seen) if now is not None else []
        if len(seen.rewards) >= FIRST_PLAN:
            planner.replan(seen, np.array(self._starts[row]), now)
        self._use(row)

    def _untried(self, seen: Seen) -> list[int]:
        """Discrete actions that were hardly executed since the change: what the model knows of them is old."""
        if self._pushes.is_continuous or len(seen.rewards) > LAST_PROBE:
            return []
        return [a for a, count in enumerate(seen.pushes.sum(axis=0)) for _ in range(PROBES) if count < PROBES]

    def _use(self, row: int) -> None:
        """Put the planner's rule in force."""
        planner = self._planners[row]
        self._kinds[row] = FROZEN if planner is None else planner.current.kind
        if planner is None or planner.current.kind == FROZEN:
            return
        rule = planner.current
        self._centres[row], self._scales[row] = planner.prior.centre, planner.scale
        a, terms = rule.theta.shape
        self._thetas[row, :a, :terms] = rule.theta

    def discard_episode(self, rows: Rows) -> None:
        """What the episode under way has earned says nothing."""
        for row in rows[~self._is_first[rows]].tolist():
            self._totals[row], self._has_switched[row], self._probes[row] = 0.0, False, []
            self._episodes[row] += 1
        self._is_first[rows] = True

    def state(self) -> dict[str, NDArray[Any]]:
        """What was seen, and what is planned, in every world of every trial."""
        state: dict[str, NDArray[Any]] = {name: getattr(self, f"_{name}") for name in _STATE}
        for row in range(self.n):
            before = self._before[row]
            state[f"{row}/starts"] = np.array(self._starts[row], np.float64)
            state[f"{row}/before"] = np.array([list(before), list(before.values())], np.float64)
            state[f"{row}/probes"] = np.array(self._probes[row], np.int64)
            sets = self._stored[row] | {_NOW: (self._planners[row], self._memory.read(row))}
            for world, (planner, seen) in sets.items():
                state |= {f"{row}/{world}/seen.{name}": array for name, array in seen._asdict().items()}
                if planner is not None:
                    state |= {f"{row}/{world}/planner.{name}": array for name, array in planner.state().items()}
        return state

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on where `state` was taken."""
        for name in _STATE:
            getattr(self, f"_{name}")[:] = state[name]
        for row, sets in enumerate(by_context(state, self.n)):
            self._starts[row], self._probes[row] = list(state[f"{row}/starts"]), state[f"{row}/probes"].tolist()
            self._before[row] = {int(episode): float(total) for episode, total in state[f"{row}/before"].T}
            self._stored[row] = {world: self._restored(arrays) for world, arrays in sets.items()}
            self._planners[row], seen = self._stored[row].pop(_NOW)
            self._memory.write(row, seen)

    def _restored(self, arrays: dict[str, NDArray[Any]]) -> tuple[Planner | None, Seen]:
        seen = Seen(*(arrays[f"seen.{name}"] for name in Seen._fields))
        planner = with_prefix("planner.", arrays)
        return (Planner.restored(self.agent, self.domain, planner) if planner else None), seen

    def table(self, row: int) -> dict[str, NDArray[Any]]:
        """The rule in force as cells."""
        planner = self._planners[row]
        if planner is None or self._kinds[row] == FROZEN or self._pushes.is_continuous:
            return {}
        seen = self._memory.read(row)
        return as_cells(planner.current, planner.prior.centre, planner.scale, seen, self.agent, self.domain)

    def describe(self, row: int) -> str:
        """The rule in force, in the observations' names and units."""
        planner = self._planners[row]
        if planner is None or self._kinds[row] == FROZEN:
            return ""
        return in_words(planner.current, planner.prior.centre, planner.scale, self.domain)

    def context_sizes(self, row: int) -> dict[int, int]:
        """Rules remembered for each world."""
        found = {w: len(planner.rules) for w, (planner, _) in self._stored[row].items() if planner is not None}
        planner = self._planners[row]
        now = {int(self._worlds[row]): len(planner.rules) if planner is not None else 0}
        return dict(sorted((found | now).items()))

    def regions(self, rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """One rule where one is in force; none is open."""
        return (self._kinds[rows] != FROZEN).astype(np.int64), np.zeros(len(rows), np.int64)
