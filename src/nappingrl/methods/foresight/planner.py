"""The planner of one trial in one changed world: fits it, rolls policies out, and chooses one."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from nappingrl.agents.base import Agent
from nappingrl.methods.foresight.agent_rollouts import evaluate_with_agent, imagine
from nappingrl.methods.foresight.config import ForesightConfig
from nappingrl.methods.foresight.policies import (
    FROZEN,
    LINEAR,
    QUADRATIC,
    REMAP,
    RESIDUAL,
    SimplePolicy,
    frozen_policy,
    n_terms,
    remaps,
)
from nappingrl.methods.foresight.rollout import (
    COVERAGE,
    RETURN,
    Rollouts,
    enough_return,
    evaluate,
)
from nappingrl.methods.foresight.search import Effort, search
from nappingrl.methods.foresight.terminations import Terminations, find_terminations
from nappingrl.snapshot import Expected, Sizes
from nappingrl.types import DomainSpec, Floats
from nappingrl.world_model.action_encoding import ActionEncoding
from nappingrl.world_model.fit import BaselineModel, fit
from nappingrl.world_model.transitions import Transitions


@dataclass(slots=True)
class PlannerState:
    """What a planner has learned, for saving."""

    baseline: Transitions
    scale: Annotated[Floats, Expected(("d",), low=1e-12)]
    policies: list[SimplePolicy]
    """The agent's own policy first, then the remembered ones."""
    chosen: Annotated[int, Expected(low=0)]
    exploring: SimplePolicy | None
    enough: Annotated[float, Expected(with_inf=True)]
    failed_quadratic_searches: Annotated[int, Expected(low=0)]
    errors: list[float]
    random: Generator

    def check(self, sizes: Sizes) -> None:
        """Raise if what was saved is no planner's."""
        kinds = [policy.kind for policy in self.policies]
        if not self.chosen < len(kinds) <= sizes["max_policies"] + 1 or kinds[0] != FROZEN or FROZEN in kinds[1:]:
            raise ValueError(f"policies of the kinds {kinds[:10]}, of which number {self.chosen} is chosen")
        if self.exploring is not None and self.exploring.kind != LINEAR:
            raise ValueError(f"a policy of kind {self.exploring.kind} explores")
        if self.baseline.n < sizes["min_baseline_transitions"]:
            raise ValueError(f"a baseline of {self.baseline.n} transitions")


class Planner:
    """What is known of one changed world, and the policy in force there."""

    def __init__(
        self, agent: Agent, domain: DomainSpec, config: ForesightConfig, baseline: BaselineModel, random: Generator
    ) -> None:
        self.agent, self.domain, self.config, self.baseline = agent, domain, config, baseline
        self.encoding = ActionEncoding(domain)
        self.scale = self.baseline.half_range
        self.frozen = frozen_policy()
        self.policies: list[SimplePolicy] = []
        """The remembered ones."""
        self.chosen = self.frozen
        self.exploring: SimplePolicy | None = None
        """A policy that only covers ground, while no termination is known."""
        self._enough = np.inf
        """The mean return in the fitted world beyond which there is hardly anything to gain."""
        self._failed_quadratic_searches = 0
        self._errors: list[float] = []
        """Return minus expected return of the first episode of each of the latest new policies."""
        self._random = random
        self._fitted: Rollouts | None = None
        """The world of the latest plan, without starts and noise; None: none since it was made or restored."""

    @property
    def current(self) -> SimplePolicy:
        """The policy in force."""
        return self.exploring or self.chosen

    @property
    def is_content(self) -> bool:
        """Whether the policy in force is expected to earn about all that there is."""
        return self.exploring is None and self.chosen.expected >= self._enough

    def judge(self, policy: SimplePolicy, total: float) -> None:
        """Record the return of a full episode that this policy has played."""
        if policy is not self.frozen and not policy.returns:
            self._errors.append(total - policy.expected)
            del self._errors[: -self.config.n_recent_errors]
        policy.returns.append(total)
        del policy.returns[: -self.config.max_returns]

    def replan(self, transitions: Transitions, starts: NDArray[np.float64], now: Floats | None = None) -> None:
        """Choose a policy anew; `starts` are initial states, `now` is the state within a running episode."""
        rollouts = self._rollouts(transitions, starts, now)
        self.exploring = self._fitted = None
        self._enough = np.inf
        if rollouts is None:
            self.chosen = self.frozen
            return
        self._enough = enough_return(rollouts)
        self._fitted = rollouts._replace(starts=rollouts.starts[:0].copy(), noise=rollouts.noise[:0].copy())
        if rollouts.goal == COVERAGE:
            n = self.config.n_coverage_rollouts
            few = rollouts._replace(starts=rollouts.starts[:n], noise=rollouts.noise[:n])
            self.exploring = self._search(few, LINEAR, [])
        else:
            self._choose(rollouts)

    def imagine(self, state: Floats, n_steps: int) -> Floats | None:
        """The states (m, d) that are expected from here under the policy in force; None: no world is fitted."""
        if self._fitted is None:
            return None
        return imagine(self._fitted, self.agent, self.encoding, self.current, state, n_steps)

    def _rollouts(self, transitions: Transitions, starts: NDArray[np.float64], now: Floats | None) -> Rollouts | None:
        """The rollouts in the fitted world; None where they cannot be trusted or there is nothing to plan for."""
        model = fit(self.baseline, transitions)
        horizon = self.domain.horizon or max(200, 2 * self._longest_episode())
        data = [self.baseline.transitions, transitions]
        terminations = find_terminations(data, model.frame.centre, model.frame.scale, horizon, self.config)
        for policy in self.policies:
            policy.rescale(model.frame.scale / self.scale)
        self.scale = model.frame.scale
        goal = self._goal(terminations, data)
        if goal is None:
            return None
        n = self.config.n_rollouts
        initial = starts[self._random.integers(len(starts), size=n)].copy()
        if now is not None:
            initial[0] = now
        noise = self._random.standard_normal((n, horizon, len(self.scale)))
        max_reward = max(float(t.rewards.max()) for t in data)
        is_discrete = not self.encoding.is_continuous
        return Rollouts(model, terminations, initial, noise, goal, max_reward, terminations.max_reward, is_discrete)

    def _longest_episode(self) -> int:
        return int(np.unique(self.baseline.transitions.episodes, return_counts=True)[1].max())

    def _goal(self, terminations: Terminations, data: list[Transitions]) -> int | None:
        """What to plan for; None where the rollouts cannot tell."""
        n_terminated = sum(int(t.terminated.sum()) for t in data)
        if terminations.n_unexplained > self.config.max_unexplained_share * n_terminated:
            return None
        if terminations.is_known:
            return RETURN
        rewards = np.concatenate([t.rewards for t in data])
        if np.ptp(rewards) > 1e-9:
            return RETURN
        return COVERAGE if rewards[0] < 0 else None

    def _search(self, rollouts: Rollouts, kind: int, known: list[SimplePolicy]) -> SimplePolicy:
        """The best policy of a kind that does not ask the agent: a known one or a new one."""
        config = self.config
        best = np.zeros((self.encoding.n_outputs, n_terms(kind, len(self.scale))))
        weights = np.array([policy.weights for policy in known]) if known else np.zeros((0, *best.shape))
        n_random = config.n_later_policies if known else config.n_initial_policies
        effort = Effort(
            n_random, config.n_search_rounds, config.n_mutants, config.n_parents, config.mutation_size,
            config.mutation_decay, config.initial_bias,
        )  # fmt: skip
        expected = search(rollouts, kind, weights, effort, np.uint64(self._random.integers(2**63)), best)
        same = [policy for policy in known if np.array_equal(policy.weights, best)]
        policy = same[0] if same else SimplePolicy(kind, best)
        policy.expected = expected
        return policy

    def _choose(self, rollouts: Rollouts) -> None:
        """Compare the frozen agent, the remembered policies, and new ones."""
        own = [policy for policy in self.policies if policy.kind in (LINEAR, QUADRATIC)]
        linear = self._search(rollouts, LINEAR, [policy for policy in own if policy.kind == LINEAR])
        over_agent = self._evaluate_over_agent(rollouts, linear)
        new = [linear]
        if self._wants_quadratic(linear):
            new += self._search_quadratic(rollouts, linear, [policy for policy in own if policy.kind == QUADRATIC])
        for policy in own:
            if any(policy is found for found in new):
                continue  # the search has evaluated it
            policy.expected = evaluate(rollouts, policy.kind, policy.weights, -np.inf)
        if over_agent:
            new.append(max(over_agent, key=lambda policy: policy.expected))
        self._decide([policy for policy in new if not any(policy is old for old in self.policies)])

    def _evaluate_over_agent(self, rollouts: Rollouts, linear: SimplePolicy) -> list[SimplePolicy]:
        """Evaluate all policies that ask the agent; returns the new ones."""
        known = [self.frozen, *(policy for policy in self.policies if policy.kind in (REMAP, RESIDUAL))]
        new = self._variants([policy.weights for policy in known[1:]])
        least = np.full(len(known) + len(new), linear.expected)  # a new policy that earns less is not taken
        least[: len(known)] -= self.config.hopeless_loss * abs(linear.expected)
        returns = evaluate_with_agent(rollouts, self.agent, self.encoding, known + new, least)
        for policy, expected in zip(known + new, returns, strict=True):
            policy.expected = expected
        return new

    def _wants_quadratic(self, linear: SimplePolicy) -> bool:
        """Whether to search among richer policies: the linear ones do not pay."""
        frozen, config = self.frozen.expected, self.config
        return (
            linear.expected <= frozen + config.min_relative_gain * abs(frozen)
            and len(self.scale) <= config.max_quadratic_dim
            and self._failed_quadratic_searches < config.max_failed_quadratic_searches
        )

    def _search_quadratic(
        self, rollouts: Rollouts, linear: SimplePolicy, known: list[SimplePolicy]
    ) -> list[SimplePolicy]:
        """The best quadratic policy, if it pays twice the margin more than the linear one."""
        policy = self._search(rollouts, QUADRATIC, known)
        if policy.expected > linear.expected + 2 * self.config.min_relative_gain * abs(linear.expected):
            self._failed_quadratic_searches = 0
            return [policy]
        self._failed_quadratic_searches += 1
        return []

    def _variants(self, known: list[NDArray[np.float64]]) -> list[SimplePolicy]:
        """New policies over what the agent wants."""
        if self.encoding.is_continuous:
            return [SimplePolicy(RESIDUAL, weights) for weights in self._residuals(known)]
        new = (weights for weights in remaps(self.domain.n_actions))
        return [
            SimplePolicy(REMAP, weights) for weights in new if not any(np.array_equal(weights, old) for old in known)
        ]

    def _residuals(self, known: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
        """Weights of residual policies: gains alone, and random changes of the known ones or of those gains."""
        sizes = self.config.residual_sizes
        found = []
        for gain in self.config.residual_gains:
            weights = np.zeros((self.encoding.n_outputs, len(self.scale) + 2))
            weights[:, -1] = gain
            found.append(weights)
        for number in range(self.config.n_residuals):
            base = known[number % len(known)] if known else found[number % len(found)]
            found.append(base + self._random.standard_normal(base.shape) * sizes[number % len(sizes)])
        return found

    def _decide(self, new: list[SimplePolicy]) -> None:
        """Replace the agent, or a policy that has proved itself, only for a clear expected gain."""
        error = sum(self._errors) / (len(self._errors) + 1)
        self.frozen.estimate = _estimate(self.frozen, 0.0)
        best = self.frozen
        for policy in self.policies:
            policy.estimate = _estimate(policy, error)
            if policy.estimate > best.estimate + (self._margin(policy, best) if best is self.frozen else 0.0):
                best = policy
        for policy in new:
            policy.estimate = policy.expected + error
            if policy.estimate > best.estimate + self._margin(policy, best):
                if len(self.policies) >= self.config.max_policies:
                    self.policies.remove(min(self.policies, key=lambda old: old.estimate))
                self.policies.append(policy)
                best = policy
        self.chosen = best

    def _margin(self, policy: SimplePolicy, best: SimplePolicy) -> float:
        return self.config.min_relative_gain * max(abs(policy.estimate), abs(best.estimate))

    def state(self) -> PlannerState:
        """Everything that was learned."""
        policies = [self.frozen, *self.policies]
        chosen = next(i for i, policy in enumerate(policies) if policy is self.chosen)
        return PlannerState(
            self.baseline.transitions, self.scale, policies, chosen, self.exploring, self._enough,
            self._failed_quadratic_searches, self._errors, self._random,
        )  # fmt: skip

    @classmethod
    def restored(
        cls, agent: Agent, domain: DomainSpec, config: ForesightConfig, baseline: BaselineModel, state: PlannerState
    ) -> "Planner":
        """The planner with this state; `baseline`: the model of its baseline."""
        planner = cls(agent, domain, config, baseline, state.random)
        planner.frozen, *planner.policies = state.policies
        planner.chosen, planner.exploring = state.policies[state.chosen], state.exploring
        planner.scale, planner._errors = state.scale, state.errors
        planner._enough, planner._failed_quadratic_searches = state.enough, state.failed_quadratic_searches
        return planner


def _estimate(policy: SimplePolicy, error: float) -> float:
    """The mean of the real returns and of the expected one, which counts as one more."""
    expected = policy.expected + (0.0 if policy.returns else error)
    return (sum(policy.returns) + expected) / (len(policy.returns) + 1)
