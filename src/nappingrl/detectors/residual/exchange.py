"""Exchange: steps fit the original world better if other actions had been executed than those that were."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nappingrl.detectors.residual.config import ResidualConfig
from nappingrl.detectors.residual.gains import accumulate, gains, judge_blocks
from nappingrl.detectors.tail_limits import tail_limit
from nappingrl.snapshot import Expected
from nappingrl.types import Flags, Floats, Rows
from nappingrl.world_model.action_encoding import ActionEncoding
from nappingrl.world_model.reference import Judged, Reference
from nappingrl.world_model.reference_stack import Stack
from nappingrl.world_model.transitions import Transitions

BLOCK = 8
"""Steps that are judged together: one by one would be slow."""
SUSPECTED_SHARE = 0.25
"""Share of the limit beyond which the original world cannot be back."""
MAX_ACTIONS = 32
MAX_DIMENSIONS = 16
"""With more, exchanged actions are not looked for."""


class Exchange:
    """Adds up by how many nats steps fit better under another action (CUSUM), in the home mode.

    Alternatives: for each executed discrete action every other one; for continuous actions each dimension reversed, and
    all. Small exchanges that hardly surprise are found within tens of steps, because all evidence counts that speaks
    for the same alternative. After an alarm the same sum, reversed, tells when the original actions are back.
    """

    saved: ClassVar[Mapping[str, Expected]] = {
        "limit": Expected(low=0, with_inf=True), "evidence": Expected(low=0), "against": Expected(low=0),
        "n_kept": Expected(low=0, high=BLOCK - 1),
    }  # fmt: skip

    def __init__(self, n: int, dim: int, encoding: ActionEncoding, config: ResidualConfig) -> None:
        self.config, self._encoding = config, encoding
        k = len(encoding.low)
        n_actions = encoding.n_actions if encoding.n_actions <= MAX_ACTIONS else 0
        n_reversed = (k + (k > 1)) if k <= MAX_DIMENSIONS else 0
        shape = (n, n_actions, n_actions) if encoding.n_actions else (n, 1, n_reversed)
        self.evidence = np.zeros(shape)
        """By executed action and alternative."""
        self.limit = np.full(n, np.inf)
        self.is_blamed = np.zeros(shape, np.bool_)
        """The alternatives that raised the alarm, at most one for each executed action."""
        self.against = np.zeros(n)
        """What has added up since then against them."""
        self.states, self.next_states = np.zeros((2, n, BLOCK, dim))
        self.actions = np.zeros((n, BLOCK, encoding.size))
        self.n_kept = np.zeros(n, np.int64)
        """Steps that are not judged yet."""

    def start(self, rows: Rows) -> None:
        """Nothing is calibrated yet."""
        self.limit[rows], self.n_kept[rows] = np.inf, 0
        self.reset(rows)

    def reset(self, rows: Rows) -> None:
        """The original world is back: forget the evidence."""
        self.evidence[rows], self.is_blamed[rows], self.against[rows] = 0.0, False, 0.0

    def calibrate(self, row: int, reference: Reference, held_out: Judged) -> None:
        """Set the limit by what adds up in the original world."""
        where = np.flatnonzero(held_out.mode == 0)
        if not self.evidence[row].size or not len(where):
            return
        states, actions = held_out.states[where], held_out.actions[where]
        each, executed = self._gains(reference, states, actions, errors=held_out.errors[where])
        sums = np.zeros(self.evidence.shape[1:])
        episodes = np.split(np.arange(len(where)), np.flatnonzero(np.diff(held_out.episodes[where])) + 1)
        values = np.array([accumulate(sums, executed[at], each[at]) for at in episodes])
        limit = min(tail_limit(values, self.config.false_alarms), self.config.max_limit_factor * float(values.max()))
        self.limit[row] = max(limit, self.config.min_exchange)

    def _gains(
        self, reference: Reference, states: NDArray[np.float64], actions: NDArray[np.float64],
        ends: NDArray[np.float64] | None = None, errors: NDArray[np.float64] | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:  # fmt: skip
        """(m, alternatives) by how many nats steps fit better, and (m,) the executed actions.

        `ends`: where the steps led, or `errors`: by how much that differed from predictions.
        """
        nowhere = np.empty((0, states.shape[1]))
        each = gains(
            reference.model, reference.usual_residuals, reference.levels, self.evidence.shape[2], *(
                np.ascontiguousarray(nowhere if part is None else part, np.float64)
                for part in (states, actions, ends, errors)
            ),
        )  # fmt: skip
        is_discrete = self._encoding.n_actions > 0
        return each, actions.argmax(axis=1) if is_discrete else np.zeros(len(actions), np.int64)

    def _alternatives(self, actions: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """The encoded actions (m, size) that may have taken effect instead."""
        n = self.evidence.shape[2]
        if self._encoding.n_actions:
            return [np.tile(one, (len(actions), 1)) for one in np.eye(n)]
        k = len(self._encoding.low)
        signs = np.ones((n, actions.shape[1]))
        signs[np.arange(k), 1 + np.arange(k)] = -1
        signs[k:, 1 : 1 + k] = -1
        return [actions * sign for sign in signs]

    def keep(
        self, rows: Rows, states: NDArray[np.float64], actions: NDArray[np.float64], next_states: NDArray[np.float64]
    ) -> Rows:
        """Keep a step of the home mode of each row; returns those with enough steps to judge."""
        at = self.n_kept[rows]
        self.states[rows, at], self.actions[rows, at], self.next_states[rows, at] = states, actions, next_states
        self.n_kept[rows] = at + 1
        return np.asarray(rows[at + 1 == BLOCK])

    def judge(self, rows: Rows, stack: Stack) -> Flags:
        """Judge the blocks of steps that were kept; returns where there is enough evidence for an exchange."""
        self.n_kept[rows] = 0
        if self.evidence.size:
            judge_blocks(
                stack, rows, self.states, self.actions, self.next_states, self.evidence, self.is_blamed, self.against
            )
        return np.asarray(self.evidence[rows].max(axis=(1, 2), initial=0.0) > self.limit[rows])

    def blame(self, row: int) -> None:
        """Note which alternatives raised the alarm."""
        best = self.evidence[row] == self.evidence[row].max(axis=1, keepdims=True)
        is_blamed = best & (self.evidence[row] > self.limit[row])
        if not np.array_equal(is_blamed, self.is_blamed[row]) and is_blamed.any():
            self.is_blamed[row], self.against[row] = is_blamed, 0.0

    def is_suspected(self, rows: Rows) -> Flags:
        """Where some evidence speaks for an exchange."""
        return np.asarray(self.evidence[rows].max(axis=(1, 2), initial=0.0) > SUSPECTED_SHARE * self.limit[rows])

    def shares(self, row: int, reference: Reference) -> Floats:
        """(d,) in which observations the best alternative differs from what was executed, in the steps judged last."""
        states, actions = self.states[row], self.actions[row]
        number = int(self.evidence[row].max(axis=0).argmax())
        effects = reference.predict(states, actions) - reference.predict(states, self._alternatives(actions)[number])
        sizes = np.log1p((effects / reference.tolerance) ** 2).sum(axis=0) * reference.is_modelled
        return np.asarray(sizes / max(float(sizes.sum()), 1e-12))

    def is_back(self, rows: Rows) -> Flags:
        """Whether the steps speak against what raised the alarm as clearly as they spoke for it."""
        return np.asarray(self.against[rows] > self.limit[rows])

    def n_since_back(self, row: int, reference: Reference, steps: Transitions) -> int:
        """How many of the latest steps speak against what raised the alarm, as a change point divides them best."""
        where = np.flatnonzero(reference.home.keeps(steps))
        kept = steps.at(where)
        each, executed = self._gains(reference, kept.states, kept.actions, kept.next_states)
        sums = -(each * self.is_blamed[row, executed]).sum(axis=1)[::-1].cumsum()
        return int(steps.n - where[len(where) - 1 - int(sums.argmax())]) if len(where) else 0
