"""One trial of the method `plan`: the model of the changed world, and the sequence of actions that is followed."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.base import Agent
from nappingrl.methods.plan.config import PlanConfig
from nappingrl.methods.plan.search import evaluate, follow, write_changed, write_simple
from nappingrl.snapshot import Expected, Sizes
from nappingrl.types import Actions, DomainSpec, Floats
from nappingrl.world_model.action_encoding import ActionEncoding
from nappingrl.world_model.fit import BaselineModel, fit
from nappingrl.world_model.model import Model, predict_steps
from nappingrl.world_model.transitions import Transitions

Sequence = NDArray[np.float64]
MIN_STEP = 1e-9
"""An observation whose changes are smaller is constant, and so is such a reward."""


@dataclass(slots=True)
class TrialState:
    """Everything that a trial has learned, for saving."""

    key: Annotated[int, Expected(low=0, high=2**64 - 1)]
    counter: Annotated[int, Expected(low=0, high=2**63)]
    context: Annotated[int, Expected(low=0)]
    fitted: Transitions | None
    """What the model was fitted to."""
    errors: Annotated[list[float], Expected(low=0)]
    sequence: Annotated[Sequence, Expected(("m", "k"), low=-1)]
    """The rest of the latest one; empty: there is none."""

    def check(self, sizes: Sizes) -> None:
        """Raise if what was saved is no trial's."""
        highest = sizes["n_actions"] - 1 if sizes["n_actions"] else 1
        if (self.sequence > highest).any() or len(self.sequence) not in (0, sizes["h"]):
            raise ValueError(f"a sequence of {len(self.sequence)} actions, up to {self.sequence.max(initial=-1)}")
        if len(self.errors) > sizes["n_judged"]:
            raise ValueError(f"{len(self.errors)} errors; at most {sizes['n_judged']} are kept")


class PlanTrial:
    """Searches at every step for a sequence of actions that earns more, by a model of the changed world."""

    def __init__(self, agent: Agent, domain: DomainSpec, config: PlanConfig, key: int) -> None:
        self.agent, self.domain, self.config, self.key = agent, domain, config, key
        self._encoding = ActionEncoding(domain)
        self._counter = 0
        self.context = 0
        self._baseline: BaselineModel | None = None
        self._model: Model | None = None
        self._fitted: Transitions | None = None
        self._errors: list[float] = []
        """Of the latest episodes: the mean error of a step that the model predicted before it was fitted to it."""
        self._typical: Floats = np.zeros(0)
        self._rewards = 0.0, 0.0
        self._sequence: Sequence | None = None
        """The rest of the sequence that was chosen at the step before."""

    # ------------------------------------------------------------------------------------------------- the model

    def enter(self, context: int) -> None:
        """The detector believes in another context."""
        self.context, self._model, self._fitted, self._errors, self._sequence = context, None, None, [], None

    def end_episode(self, before: Transitions, current: Transitions) -> None:
        """Judge the model by the episode that ended, and fit it again where enough steps have come."""
        self._sequence = None
        if self._model is not None:
            latest = current.at(current.episodes == current.episodes[-1])
            error = _relative_error(self._model, latest, self._typical)
            self._errors = [*self._errors, error][-self.config.n_judged_episodes :]
        n_needed = self.config.min_transitions if self._fitted is None else int(self.config.growth * self._fitted.n)
        if current.n >= n_needed:
            self._fit(before, current)

    def _fit(self, before: Transitions, current: Transitions) -> None:
        is_known = before.n >= self.config.min_transitions
        if self._baseline is None or not is_known:
            self._baseline = BaselineModel(before if is_known else current, self.domain, self.config)
        self._fitted, self._model = current, fit(self._baseline, current)
        self._typical = _typical_step([before, current])
        rewards = np.concatenate([before.rewards, current.rewards])
        self._rewards = float(rewards.min()), float(rewards.max())

    @property
    def error(self) -> float:
        """The error of a predicted step in the middle one of the latest episodes; infinite: not known yet."""
        return float(np.median(self._errors)) if self._errors else np.inf

    @property
    def is_ready(self) -> bool:
        """Whether the model is good enough to plan with."""
        return self._model is not None and self.error <= self.config.max_relative_error

    def context_sizes(self) -> dict[int, int]:
        """One plan in the current context, if the model is good enough; a context that returns is learned anew."""
        return {self.context: int(self.is_ready)} if self.context else {}

    @property
    def why_not(self) -> str:
        """Why it does not plan, in words; empty: it does, or it is too early to say."""
        if self.is_ready or not self._errors:
            return ""
        share = f"{self.error:.0%} of a typical step; it plans up to {self.config.max_relative_error:.0%}"
        return f"its model of the changed world misses a step by {share}"

    # ------------------------------------------------------------------------------------------------- planning

    def act(self, observation: NDArray[np.float32], wanted: Actions) -> Actions:
        """The first action of the best sequence; the wanted one where there is no model, or no data."""
        if not self.is_ready or self._is_outside(observation):
            self._sequence = None
            return wanted
        best = self._search(observation.astype(np.float64), wanted)
        self._sequence = np.concatenate([best[1:], best[-1:]])
        if self.domain.n_actions:
            return np.asarray(best[0, 0], np.int64)
        return np.asarray(self._encoding.unscale(best[:1])[0])

    def _is_outside(self, observation: NDArray[np.float32]) -> bool:
        """Whether an observation is so far from all data that the model says nothing of it."""
        assert self._model is not None
        distance = np.abs((observation - self._model.frame.centre) / self._model.frame.scale)
        return bool(distance.max() > self.config.max_distance)

    def _search(self, state: Floats, wanted: Actions) -> Sequence:
        """Random changes of what is left of the latest sequence, or of the wanted action; then of the best one."""
        assert self._model is not None
        config, n_actions = self.config, self.domain.n_actions
        first = np.atleast_1d(np.asarray(wanted, np.float64))
        if not n_actions:
            first = np.clip(self._encoding.scale(wanted[None])[0], -1.0, 1.0)
        discount = config.usual_discount if self.agent.gamma is None else self.agent.gamma
        best = np.tile(first, (config.horizon, 1)) if self._sequence is None else self._sequence
        sequences = np.empty((config.n_sequences, *best.shape))
        penalty = config.outside_penalty * max(self._rewards[1] - self._rewards[0], *map(abs, self._rewards))
        totals, ends = np.empty(config.n_sequences), np.empty((config.n_sequences, len(state)))
        size = config.change_size
        for turn in range(config.n_rounds):
            counter = np.uint64(self._counter)
            key = np.uint64(self.key)
            self._counter = int(write_changed(sequences, best, n_actions, config.hold, size, key, counter))
            if turn == 0:
                write_simple(sequences, first, n_actions)
            evaluate(self._model, state, sequences, n_actions, discount, self._rewards, penalty, totals, ends)
            values = totals + discount**config.horizon * self._values(ends)
            best = sequences[int(np.nan_to_num(values, nan=-np.inf).argmax())].copy()
            size *= config.change_decay
        return best

    def _values(self, states: NDArray[np.float64]) -> Floats | float:
        """What the agent's critic expects from here on; 0 where it has none."""
        shape = (-1, *(self.agent.observation_shape or states.shape[1:]))
        values = self.agent.values(states.astype(np.float32).reshape(shape))
        return 0.0 if values is None else values

    def imagine(self, state: Floats, n_steps: int) -> Floats | None:
        """The states (m, d) that are expected from here; None: there is no plan."""
        if not self.is_ready or self._sequence is None or self._model is None:
            return None
        path = follow(self._model, np.asarray(state, np.float64), self._sequence, self.domain.n_actions)
        return np.asarray(path[:n_steps])

    # ------------------------------------------------------------------------------------------------- saving

    def state(self) -> TrialState:
        """Everything that was learned."""
        sequence = np.zeros((0, max(1, len(self._encoding.low)))) if self._sequence is None else self._sequence
        return TrialState(self.key, self._counter, self.context, self._fitted, self._errors, sequence)

    def restore(self, state: TrialState, before: Transitions) -> None:
        """Continue from this state."""
        self.key, self._counter = state.key, state.counter
        self.enter(state.context)
        if state.fitted is not None:
            self._fit(before, state.fitted)
        self._errors, self._sequence = state.errors, state.sequence if len(state.sequence) else None


def _typical_step(parts: list[Transitions]) -> Floats:
    """(d + 1,) the usual size of a change of each observation, and the usual deviation of a reward."""
    changes = np.concatenate([steps.next_states - steps.states for steps in parts])
    rewards = np.concatenate([steps.rewards[~steps.terminated] for steps in parts])
    return np.append(np.sqrt((changes**2).mean(axis=0)), rewards.std() if len(rewards) else 0.0)


def _relative_error(model: Model, steps: Transitions, typical: Floats) -> float:
    """The mean over observations, and the reward, of the error of a predicted step, as a share of a typical one."""
    predicted, rewards = np.empty_like(steps.next_states), np.empty(steps.n)
    predict_steps(model, steps.states, steps.actions, predicted, rewards)
    errors = np.column_stack([predicted - steps.next_states, np.where(steps.terminated, 0.0, rewards - steps.rewards)])
    shares = np.sqrt((errors**2).mean(axis=0))[typical > MIN_STEP] / typical[typical > MIN_STEP]
    return float(shares.mean()) if len(shares) else 0.0
