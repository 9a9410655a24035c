"""One store of transitions for detector and methods, and the model that is fitted to those before the change."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from nappingrl.snapshot import MAX_EPISODE, Expected, flatten, restore_arrays, unflatten
from nappingrl.types import DomainSpec, Flags, Rows, Transition, arrays_of
from nappingrl.world_model.action_encoding import ActionEncoding
from nappingrl.world_model.bounds import bounds
from nappingrl.world_model.reference import Reference
from nappingrl.world_model.reference_stack import ReferenceStack, Stack
from nappingrl.world_model.repeats import Repeats
from nappingrl.world_model.transitions import TransitionBuffer, Transitions, encode

MAX_BEFORE = 20_000
"""Transitions before the change that are kept; later ones hardly improve the reference."""
MAX_CURRENT = 2048
N_BEFORE_ALARM = 200
"""The latest transitions of the episode of an alarm that count as the changed world's."""


@cache
def _threadpools() -> ThreadpoolController:
    """Found once, because looking for the libraries takes milliseconds."""
    return ThreadpoolController()


class TransitionMemory:
    """The transitions of n trials, before the change and since; the reference is fitted to the former.

    `before` holds the steps of the original world, until it is sealed. `current` holds the steps since the alarm, with
    those of the same episode that led to it; before an alarm, the steps of the episode under way.
    """

    saved: ClassVar[Mapping[str, Expected]] = {
        "_episodes": Expected(low=0, high=MAX_EPISODE), "_contexts": Expected(low=0),
    }  # fmt: skip

    def __init__(self, n: int, domain: DomainSpec, max_before: int = MAX_BEFORE) -> None:
        self.n, self.domain, self.encoding = n, domain, ActionEncoding(domain)
        dim, size = len(domain.observation_low), self.encoding.size
        self._before = TransitionBuffer(n, dim, size, max_before)
        self._current = TransitionBuffer(n, dim, size, MAX_CURRENT)
        self._references: dict[int, Reference | str] = {}
        """Or why there is none."""
        self._stack = ReferenceStack(n)
        self._is_stacked, self._has_flags = np.zeros((2, n), np.bool_)
        """Where the reference is known to the stack, and where it has observations with few values."""
        self._repeats: dict[int, Repeats] = {}
        self._episodes, self._contexts = np.zeros((2, n), np.int64)
        self._is_sealed, self._has_begun = np.zeros((2, n), np.bool_)
        """_has_begun: whether the episode under way has a step."""
        self.latest: Transitions | None = None
        """What `add` stored last: one step of each of its rows, with encoded actions."""

    def start(self, rows: Rows) -> None:
        """New trials begin: forget everything."""
        self._before.clear(rows)
        self._current.clear(rows)
        self._episodes[rows] = self._contexts[rows] = 0
        self._is_sealed[rows] = self._has_begun[rows] = False
        for row in rows.tolist():
            self._forget_models(row)

    def _forget_models(self, row: int) -> None:
        self._references.pop(row, None)
        self._repeats.pop(row, None)
        self._is_stacked[row] = False

    def add(self, rows: Rows, transition: Transition, is_changed: Flags) -> None:
        """Store one step of each row; `is_changed`: where the detector believes in another world."""
        self.latest = encode(transition, self.encoding, self._episodes[rows])
        self._has_begun[rows] = True
        self._current.add(rows, self.latest)
        is_open = ~self._is_sealed[rows]
        if is_open.any():
            has_room = self._before.count[rows] < self._before.capacity
            self._before.add(rows, self.latest, is_open & ~is_changed & has_room)

    def end_episode(self, rows: Rows) -> None:
        """The episode under way ended."""
        self._episodes[rows] += self._has_begun[rows]
        self._has_begun[rows] = False
        self._current.clear(rows[self._contexts[rows] == 0])

    def discard_episode(self, rows: Rows) -> None:
        """The episode under way was cut: another one begins. Its steps stay."""
        self.end_episode(rows)

    def enter(self, rows: Rows, contexts: Rows, n_leading: Sequence[int] = ()) -> None:
        """The detector believes in other contexts: `current` starts afresh.

        After the original context it keeps the latest `n_leading` steps of the episode under way, which led to the
        alarm; not given: up to 200.
        """
        n_leading = n_leading or [N_BEFORE_ALARM] * len(rows)
        for row, context, n in zip(rows.tolist(), contexts.tolist(), n_leading, strict=True):
            led_to_it = self._current.read(row)
            if self._before.count[row]:
                led_to_it = led_to_it.at(slice(-min(n, N_BEFORE_ALARM), None))
            self._current.clear(np.array([row]))
            if context and not self._contexts[row]:
                self._take_back(row)
                self._current.write(row, led_to_it)
            if context:
                self.seal(row)
            self._contexts[row] = context

    def _take_back(self, row: int) -> None:
        """Remove the episode under way from `before`: the alarm says that it is the changed world's."""
        if not self._is_sealed[row] and self._has_begun[row]:
            before = self._before.read(row)
            self._before.write(row, before.at(before.episodes < self._episodes[row]))

    def disown(self, row: int) -> None:
        """The steps so far were of the changed world after all, which has no reference."""
        self._current.write(row, self._before.read(row).at(slice(-self._current.capacity, None)))
        self._before.clear(np.array([row]))
        self._forget_models(row)
        self.seal(row)

    def seal(self, row: int) -> None:
        """The steps before the change are complete: no later one joins them."""
        self._is_sealed[row] = True

    def is_sealed(self, rows: Rows) -> Flags:
        """Where the steps before the change are complete."""
        flags: Flags = self._is_sealed[rows]
        return flags

    def before(self, row: int) -> Transitions:
        """A copy of the transitions before the change."""
        return self._before.read(row)

    def current(self, row: int) -> Transitions:
        """A copy of the transitions since the alarm; before it, of those of the episode under way."""
        return self._current.read(row)

    def latest_episode(self, row: int) -> Transitions:
        """A copy of the transitions of the latest episode; there must be a current one."""
        return self._current.read_episode(row)

    def n_before(self, rows: Rows) -> Rows:
        """How many transitions before the change there are."""
        counts: Rows = self._before.count[rows]
        return counts

    def n_current(self, rows: Rows) -> Rows:
        """How many transitions `current` holds."""
        counts: Rows = self._current.count[rows]
        return counts

    def reference(self, row: int) -> Reference | None:
        """The model of the world before the change, fitted when it is first asked for; None: see `why_not`."""
        if not self._is_sealed[row]:
            return None
        if row not in self._references:
            before = self.before(row)
            why_not = Reference.why_not(before, self.encoding)
            with _threadpools().limit(limits=1, user_api="blas"):  # small matrices: threads only wait
                self._references[row] = why_not or Reference(before, self.encoding, bounds(self.domain))
        reference = self._references[row]
        return None if isinstance(reference, str) else reference

    def judge(self, rows: Rows, steps: Transitions) -> tuple[NDArray[np.float64], Rows, Flags]:
        """(m, d) residuals of a step of each row in usual ones, its mode (-1: not judged), and if it is the main."""
        for row in rows[~self._is_stacked[rows]].tolist():
            self._put_on_stack(row)
        out = np.zeros(steps.states.shape)
        states, next_states = steps.states.astype(np.float64), steps.next_states.astype(np.float64)
        for m in np.flatnonzero(self._has_flags[rows]).tolist():
            reference = self.reference(int(rows[m]))
            assert reference is not None
            reference.judge_flags(states[m], next_states[m], out[m])
        modes, is_main = self._stack.judge(rows, states, steps.actions, next_states, out)
        return out, modes, is_main

    @property
    def stack(self) -> Stack:
        """The references of all rows that were judged, as kernels take them."""
        return self._stack.stack

    def _put_on_stack(self, row: int) -> None:
        reference = self.reference(row)
        if reference is None:
            self._stack.clear(row)
        else:
            self._stack.put(row, reference.judged_modes)
        self._is_stacked[row] = self._is_sealed[row]
        self._has_flags[row] = reference is not None and reference.has_flags

    def repeats(self, row: int) -> Repeats | None:
        """Outcomes that always repeated before the change; None: they do not, or it is too early to say."""
        if not self._is_sealed[row] or not self.encoding.n_actions:
            return None
        if row not in self._repeats:
            self._repeats[row] = Repeats(self.before(row))
        return self._repeats[row] if self._repeats[row].is_usable else None

    def why_not(self, row: int) -> str:
        """Why there is no reference, in words; empty: there is one."""
        if not self._is_sealed[row]:
            return f"the world before the change is still being recorded: {self._before.count[row]} steps so far"
        self.reference(row)
        reference = self._references[row]
        return reference if isinstance(reference, str) else ""

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything stored, as named arrays; the reference follows from them."""
        state = arrays_of(self)
        for name, buffer in self._buffers().items():
            for row in range(self.n):
                state |= flatten(buffer.read(row), f"{name}.{row}")
        return state

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from what `state` returned, which may come from a file."""
        restore_arrays(self, state)
        for name, buffer in self._buffers().items():
            for row in range(self.n):
                buffer.write(row, unflatten(Transitions, state, f"{name}.{row}", buffer.sizes))
        self._references, self._repeats = {}, {}
        self._is_stacked[:] = False

    def _buffers(self) -> dict[str, TransitionBuffer]:
        return {"before": self._before, "current": self._current}
