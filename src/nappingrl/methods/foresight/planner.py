"""The planner of one trial in one changed world: fits it, imagines it, and chooses between the agent and a rule."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.base import Agent
from nappingrl.methods.foresight.policies import FROZEN, LINEAR, QUADRATIC, REMAP, RESIDUAL, Rule, n_terms, remaps
from nappingrl.methods.foresight.rollout import imagine_with_agent
from nappingrl.methods.foresight.search import REACH, RETURN, search, worth
from nappingrl.methods.foresight.terminations import Endings, find_endings, greatest_last_reward
from nappingrl.types import DomainSpec, Floats
from nappingrl.world_model.action_encoding import Pushes
from nappingrl.world_model.model import Model, Prior, fit
from nappingrl.world_model.transitions import Seen

N_STARTS, N_EXPLORING = 6, 2
"""Imagined episodes per rule; and of one that only gets about."""
N_RICHER = 6
"""Searches for a richer rule in vain, after which there are no more."""
N_FIRST, N_MORE, N_ROUNDS, N_MUTANTS = 150, 60, 4, 30
"""Random rules (the first time, and later), and how often how many mutations of the best are tried."""
N_REMEMBERED = 6
"""Rules that are kept."""
GAIN = 0.02
"""The gain, as a share, that must be expected before the agent or a rule that has proved itself is left."""
MOST_SQUARED = 8
"""Worlds with more observations get no quadratic rules."""
GAINS = (-1.0, 0.5, 1.5, 2.0)
N_RESIDUALS, RESIDUAL_STEPS = 20, (0.3, 0.1, 0.03)
"""Residuals on a continuous action that are tried: gains, and how many random ones with which deviations."""
HOPELESS = 2.0
"""A known rule that loses more than the new one by so many times its worth is not imagined to its end."""
UNEXPLAINED = 0.1
"""The share of endings that may be unexplained; with more the imagined world is not trusted."""


class Planner:
    """What is known of one changed world, and the rule that is in force there."""

    def __init__(self, agent: Agent, prior: Prior, domain: DomainSpec, key: int) -> None:
        self.agent, self.prior, self.domain = agent, prior, domain
        self.pushes = Pushes(domain)
        self.scale = prior.reach
        self.frozen = Rule(FROZEN, np.zeros((1, 1)))
        self.rules: list[Rule] = []
        self.current = self.frozen
        self.is_exploring = False
        """Whether the rule in force only gets about, for no ending is known yet."""
        self._n_in_vain = 0
        self._errors: list[float] = []
        self._random = np.random.Generator(np.random.Philox(key=key))

    def judge(self, played: Rule, total: float) -> None:
        """A whole episode was played by a rule (or by the frozen agent) and earned this."""
        if played is not self.frozen and not played.returns:
            self._errors.append(total - played.expected)
        played.returns.append(total)

    def replan(self, seen: Seen, starts: NDArray[np.float64], now: Floats | None = None) -> None:
        """Choose again; `starts` are states in which episodes began, `now` the state of an episode under way."""
        model = fit(self.prior, seen)
        endings = find_endings([self.prior.seen, seen], model.frame.centre, model.frame.scale, self._horizon(seen))
        self._rescale(model)
        goal = self._goal(endings, seen)
        if goal is None:
            self.current, self.is_exploring = self.frozen, False
            return
        some = starts[self._random.integers(len(starts), size=N_STARTS)].copy()
        if now is not None:
            some[0] = now
        horizon = self._horizon(seen)
        noise = self._random.standard_normal((N_STARTS, horizon, len(self.scale)))
        rewards = np.concatenate([self.prior.seen.rewards, seen.rewards])
        world = (model, endings, some, noise, goal, float(rewards.max()), greatest_last_reward(endings))
        if goal == REACH:
            few = (model, endings, some[:N_EXPLORING], noise[:N_EXPLORING], *world[4:])
            self.current, self.is_exploring = self._search(LINEAR, [], *few), True
            return
        self.is_exploring = False
        self._choose(model, endings, some, noise, world)

    def _horizon(self, seen: Seen) -> int:
        return self.domain.horizon or max(200, 2 * int(np.bincount(self.prior.seen.episodes).max()))

    def _rescale(self, model: Model) -> None:
        ratio = model.frame.scale / self.scale
        self.rules = [rule.rescaled(ratio) for rule in self.rules]
        self.scale = model.frame.scale

    def _goal(self, endings: Endings, seen: Seen) -> int | None:
        """What to plan for; None where the imagined world cannot tell."""
        n_ended = int(self.prior.seen.ended.sum() + seen.ended.sum())
        if endings.n_unexplained > UNEXPLAINED * n_ended:
            return None
        if endings.is_known:
            return RETURN
        going = np.concatenate([self.prior.seen.rewards, seen.rewards])
        if np.ptp(going) > 1e-9:
            return RETURN
        return REACH if going[0] < 0 else None

    def _search(
        self, kind: int, known: Sequence[Rule], model: Model, endings: Endings, starts: NDArray[np.float64],
        noise: NDArray[np.float64], goal: int, per_step: float, at_end: float,
    ) -> Rule:  # fmt: skip
        """The best rule of a kind that does not ask the agent."""
        n_outputs = self.domain.n_actions or len(self.pushes.low)
        best = np.zeros((n_outputs, n_terms(kind, len(self.scale))))
        thetas = np.array([rule.theta for rule in known]) if known else np.zeros((0, *best.shape))
        expected = search(
            model, endings, kind, not self.pushes.is_continuous, starts, noise, goal, per_step, at_end, thetas,
            N_FIRST if not known else N_MORE, N_ROUNDS, N_MUTANTS, np.uint64(self._random.integers(2**63)), best,
        )  # fmt: skip
        same = [rule for rule in known if np.array_equal(rule.theta, best)]
        found = same[0] if same else Rule(kind, best)
        found.expected = expected
        return found

    def _choose(
        self, model: Model, endings: Endings, starts: NDArray[np.float64], noise: NDArray[np.float64],
        world: tuple[Model, Endings, NDArray[np.float64], NDArray[np.float64], int, float, float],
    ) -> None:  # fmt: skip
        """Compare the frozen agent, the rules that are remembered, and new ones."""
        own = [rule for rule in self.rules if rule.kind in (LINEAR, QUADRATIC)]
        new = [self._search(LINEAR, [rule for rule in own if rule.kind == LINEAR], *world)]
        known = [self.frozen, *(rule for rule in self.rules if rule.kind in (REMAP, RESIDUAL))]
        tried = self._variants([rule.theta for rule in known[1:]])
        asking = known + tried
        least = np.full(len(asking), new[0].expected)  # what is tried and earns less than the new rule is not taken
        least[: len(known)] -= HOPELESS * abs(new[0].expected)
        totals = imagine_with_agent(
            model, endings, self.agent, self.pushes, asking, starts, noise, max(world[5:]), least
        )
        for rule, expected in zip(asking, totals, strict=True):
            rule.expected = expected
        if (
            new[0].expected <= self.frozen.expected + GAIN * abs(self.frozen.expected)
            and len(self.scale) <= MOST_SQUARED
            and self._n_in_vain < N_RICHER
        ):
            # The simplest rules do not pay: richer ones may, if they pay twice the margin more.
            found = self._search(QUADRATIC, [rule for rule in own if rule.kind == QUADRATIC], *world)
            self._n_in_vain += 1
            if found.expected > new[0].expected + 2 * GAIN * abs(new[0].expected):
                new.append(found)
                self._n_in_vain = 0
        for rule in own:
            is_discrete = not self.pushes.is_continuous
            rule.expected = worth(
                model, endings, rule.kind, rule.theta, is_discrete, starts, noise, *world[4:], -np.inf
            )
        if tried:
            new.append(max(tried, key=lambda rule: rule.expected))
        self._decide([rule for rule in new if not any(rule is old for old in self.rules)])

    def _variants(self, known: list[NDArray[np.float64]]) -> list[Rule]:
        """Rules over what the agent wants that are not remembered yet."""
        if self.pushes.is_continuous:
            return [Rule(RESIDUAL, theta) for theta in self._residuals(known)]
        found = [Rule(REMAP, theta) for theta in remaps(self.domain.n_actions)]
        return [rule for rule in found if not any(np.array_equal(rule.theta, theta) for theta in known)]

    def _residuals(self, known: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
        """The agent's action times a gain plus something linear: gains alone, random ones, and mutations of known."""
        shape = len(self.pushes.low), len(self.scale) + 2
        found = []
        for gain in GAINS:
            theta = np.zeros(shape)
            theta[:, -1] = gain
            found.append(theta)
        for number in range(N_RESIDUALS):
            base = known[number % len(known)] if known else found[number % len(found)]
            found.append(base + self._random.standard_normal(shape) * RESIDUAL_STEPS[number % len(RESIDUAL_STEPS)])
        return found

    def _decide(self, new: list[Rule]) -> None:
        """Leave the agent, or a rule that has proved itself, only for a gain that is expected to be clear."""
        shrunk = sum(self._errors[-5:]) / (len(self._errors[-5:]) + 1)
        self.frozen.estimate = _mixed(self.frozen, 0.0)
        best = self.frozen
        for rule in self.rules:
            rule.estimate = _mixed(rule, shrunk)
            if rule.estimate > best.estimate + (_margin(rule, best) if best is self.frozen else 0.0):
                best = rule
        for rule in new:
            rule.estimate = rule.expected + shrunk
            if rule.estimate > best.estimate + _margin(rule, best):
                if len(self.rules) >= N_REMEMBERED:
                    self.rules.remove(min(self.rules, key=lambda old: old.estimate))
                self.rules.append(rule)
                best = rule
        self.current = best

    def state(self) -> dict[str, NDArray[Any]]:
        """All that is known and remembered, as named arrays, so that it can be saved."""
        rules = [self.frozen, *self.rules]
        is_apart = not any(rule is self.current for rule in rules)  # a rule that only gets about is not remembered
        rules += [self.current] if is_apart else []
        current = next(i for i, rule in enumerate(rules) if rule is self.current)
        numbers = [len(self.rules), current, self.is_exploring, self._n_in_vain]
        state: dict[str, NDArray[Any]] = {f"before.{name}": a for name, a in self.prior.seen._asdict().items()}
        state |= {"scale": self.scale, "numbers": np.array(numbers), "errors": np.array(self._errors, np.float64)}
        for i, rule in enumerate(rules):
            state[f"theta.{i}"], state[f"returns.{i}"] = rule.theta, np.array(rule.returns, np.float64)
            state[f"worth.{i}"] = np.array([rule.kind, rule.expected, rule.estimate], np.float64)
        drawn: Any = self._random.bit_generator.state
        flags = [drawn["buffer_pos"], drawn["has_uint32"], drawn["uinteger"]]
        inner = drawn["state"]
        state["random"] = np.concatenate([inner["counter"], inner["key"], drawn["buffer"], np.array(flags, np.uint64)])
        return state

    @classmethod
    def restored(cls, agent: Agent, domain: DomainSpec, state: Mapping[str, NDArray[Any]]) -> "Planner":
        """The planner whose `state` this is."""
        before = Seen(*(state[f"before.{name}"] for name in Seen._fields))
        planner = cls(agent, Prior(before, domain), domain, key=0)
        n_rules, current, is_exploring, planner._n_in_vain = state["numbers"].tolist()
        rules = []
        for i in range(max(n_rules, current) + 1):
            kind, expected, estimate = state[f"worth.{i}"].tolist()
            rules.append(Rule(int(kind), state[f"theta.{i}"], state[f"returns.{i}"].tolist(), expected, estimate))
        planner.frozen, planner.rules, planner.current = rules[0], rules[1 : 1 + n_rules], rules[current]
        planner.is_exploring, planner.scale = bool(is_exploring), state["scale"]
        planner._errors = state["errors"].tolist()
        counter, key, buffer, (position, has_one, one) = np.split(state["random"], [4, 6, 10])
        planner._random.bit_generator.state = {
            "bit_generator": "Philox", "state": {"counter": counter, "key": key}, "buffer": buffer,
            "buffer_pos": int(position), "has_uint32": int(has_one), "uinteger": int(one),
        }  # fmt: skip
        return planner


def _mixed(rule: Rule, error: float) -> float:
    """The mean of the real returns and of what is imagined, which counts as one more."""
    imagined = rule.expected + (0.0 if rule.returns else error)
    return (sum(rule.returns) + imagined) / (len(rule.returns) + 1)


def _margin(rule: Rule, best: Rule) -> float:
    return GAIN * max(abs(rule.estimate), abs(best.estimate))
