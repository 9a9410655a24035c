"""Changes of what an agent does, sees and earns: array operations on rows, each row with its own numbers.

Each change is defined here once. `domains.transformed` puts them around the batches of trials, `TransformedEnv` around
a gymnasium environment, as a batch of one. What is random in a row follows from the seed of its episode and from the
place of the change among those in force in that row, so a row does not depend on the rows beside it.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from nappingrl.novelties.terms import DROP, OBS_REMAP, REMAP, TABLES, neutral_of, split_name
from nappingrl.types import DomainSpec, Floats, Rows

Array = NDArray[Any]


class Change(ABC):
    """One change of n rows; a row whose numbers are neutral stays as it is."""

    def __init__(self, names: Sequence[str], n: int, domain: DomainSpec) -> None:
        self.names, self.domain = list(names), domain
        name, entry = split_name(names[0])
        self.at = slice(None) if entry is None or name in TABLES else slice(entry, entry + 1)
        """The entries that it changes."""
        self._neutral = np.array([neutral_of(flat, domain) for flat in names])
        self.values = np.tile(self._neutral, (n, 1))
        self.is_active = np.zeros(n, np.bool_)

    def set(self, rows: Rows, values: Floats) -> None:
        """The numbers (m, k) of these rows."""
        self.values[rows] = values
        self.is_active[rows] = (values != self._neutral).any(axis=1)

    def seed(self, row: int, seed: Sequence[int]) -> None:  # noqa: B027
        """Seed what is random in a row."""

    def begin(self, rows: Rows) -> None:  # noqa: B027
        """An episode begins."""

    def __call__(self, rows: Rows, batch: Array) -> Array:
        """A batch (m, ...) as it becomes."""
        at = np.flatnonzero(self.is_active[rows])
        if not len(at):
            return batch
        changed = batch.copy()
        changed[at] = self._change(rows[at], batch[at])
        return changed

    def _amounts(self, rows: Rows, batch: Array) -> Array:
        """Its number in each row, in the precision of the batch, for broadcasting."""
        return self.values[rows].astype(batch.dtype)

    @abstractmethod
    def _change(self, rows: Rows, batch: Array) -> Array:
        """The change of rows where it is in force; `batch` is a copy."""


class _Random(Change):
    """A change that draws random numbers, each row from its own generator."""

    @override
    def __init__(self, names: Sequence[str], n: int, domain: DomainSpec) -> None:
        super().__init__(names, n, domain)
        self._generators: dict[int, np.random.Generator] = {}

    @override
    def seed(self, row: int, seed: Sequence[int]) -> None:
        self._generators[row] = np.random.default_rng(seed[0] if len(seed) == 1 else seed)

    def _normal(self, rows: Rows, batch: Array) -> Floats:
        """Standard normal numbers for the entries that it changes."""
        return np.array([self._generators[row].standard_normal(batch[0, self.at].shape) for row in rows.tolist()])


class _Table(Change):
    """Entries of a table; a row keeps those that it does not name."""

    def _table(self, rows: Rows, size: int) -> NDArray[np.int64]:
        table = np.tile(np.arange(size), (len(rows), 1))
        table[:, [int(split_name(flat)[1] or 0) for flat in self.names]] = self.values[rows].astype(np.int64)
        return table


class RemapActions(_Table):
    """Action i does what action table[i] did."""

    @override
    def _change(self, rows: Rows, batch: Array) -> Array:
        return self._table(rows, self.domain.n_actions)[np.arange(len(rows)), batch]


class DelayActions(Change):
    """Actions take effect some steps late; until then the first action of the episode is repeated."""

    @override
    def __init__(self, names: Sequence[str], n: int, domain: DomainSpec) -> None:
        super().__init__(names, n, domain)
        self._waiting: list[deque[Any]] = [deque() for _ in range(n)]

    @override
    def begin(self, rows: Rows) -> None:
        for row in rows.tolist():
            self._waiting[row].clear()

    @override
    def _change(self, rows: Rows, batch: Array) -> Array:
        late = batch.copy()
        for i, row in enumerate(rows.tolist()):
            waiting = self._waiting[row]
            if not waiting:
                waiting.extend([batch[i]] * int(self.values[row, 0]))
            waiting.append(batch[i])
            late[i] = waiting.popleft()
        return late


class NoisyActions(_Random):
    """Discrete: a random action instead, with a probability. Continuous: Gaussian, as a share of the range."""

    @override
    def _change(self, rows: Rows, batch: Array) -> Array:
        if self.domain.is_continuous:
            low, high = self.domain.action_low[self.at], self.domain.action_high[self.at]
            noise = self._amounts(rows, batch) * (high - low) * self._normal(rows, batch)
            batch[:, self.at] = np.clip(batch[:, self.at] + noise, low, high)
            return batch
        for i, row in enumerate(rows.tolist()):
            rng = self._generators[row]
            is_random, other = rng.random() < self.values[row, 0], rng.integers(self.domain.n_actions)
            batch[i] = other if is_random else batch[i]
        return batch


class ScaleActions(Change):
    """A continuous action is multiplied, and cut to its range."""

    @override
    def _change(self, rows: Rows, batch: Array) -> Array:
        changed = self._amounts(rows, batch) * batch[:, self.at]
        batch[:, self.at] = np.clip(changed, self.domain.action_low[self.at], self.domain.action_high[self.at])
        return batch


class ShiftActions(Change):
    """A number is added to a continuous action, which is then cut to its range."""

    @override
    def _change(self, rows: Rows, batch: Array) -> Array:
        changed = self._amounts(rows, batch) + batch[:, self.at]
        batch[:, self.at] = np.clip(changed, self.domain.action_low[self.at], self.domain.action_high[self.at])
        return batch


class RemapObservations(_Table):
    """Entry i shows what entry table[i] showed."""

    @override
    def _change(self, rows: Rows, batch: Array) -> Array:
        remapped: Array = np.take_along_axis(batch, self._table(rows, batch.shape[1]), axis=1)
        return remapped


class ShiftObservations(Change):
    """Reads too much by a number."""

    @override
    def _change(self, rows: Rows, batch: Array) -> Array:
        batch[:, self.at] += self._amounts(rows, batch)
        return batch


class ScaleObservations(Change):
    """Reads a multiple."""

    @override
    def _change(self, rows: Rows, batch: Array) -> Array:
        batch[:, self.at] *= self._amounts(rows, batch)
        return batch


class NoisyObservations(_Random):
    """Gaussian noise of a standard deviation."""

    @override
    def _change(self, rows: Rows, batch: Array) -> Array:
        batch[:, self.at] = batch[:, self.at] + self.values[rows] * self._normal(rows, batch)
        return batch


class QuantiseObservations(Change):
    """Reads multiples of a number only, the nearest one."""

    @override
    def _change(self, rows: Rows, batch: Array) -> Array:
        amounts = self._amounts(rows, batch)
        batch[:, self.at] = np.round(batch[:, self.at] / amounts) * amounts
        return batch


class DropObservations(Change):
    """Reads 0."""

    @override
    def _change(self, rows: Rows, batch: Array) -> Array:
        batch[:, self.at] = 0.0
        return batch


class ScaleRewards(Change):
    """A reward is multiplied."""

    @override
    def _change(self, rows: Rows, batch: Array) -> Array:
        scaled: Array = self.values[rows, 0] * batch
        return scaled


class ShiftRewards(Change):
    """A number is added to a reward."""

    @override
    def _change(self, rows: Rows, batch: Array) -> Array:
        shifted: Array = self.values[rows, 0] + batch
        return shifted


CHANGES: dict[str, type[Change]] = {
    REMAP: RemapActions,
    "action-delay": DelayActions,
    "action-noise": NoisyActions,
    "action-scale": ScaleActions,
    "action-shift": ShiftActions,
    OBS_REMAP: RemapObservations,
    "obs-shift": ShiftObservations,
    "obs-scale": ScaleObservations,
    "obs-noise": NoisyObservations,
    "obs-quantise": QuantiseObservations,
    DROP: DropObservations,
    "reward-scale": ScaleRewards,
    "reward-shift": ShiftRewards,
}


class Transforms:
    """All changes of n rows: actions from the agent to the environment, observations and rewards on the way back.

    `names` are flat names in the order of the description: the first term of actions meets an action first, the first
    term of observations meets an observation first. Rewards are scaled, then shifted.
    """

    def __init__(self, n: int, names: Sequence[str], domain: DomainSpec, seed: int = 0) -> None:
        self.names, self._seed = list(names), seed
        groups: dict[str, list[str]] = {}
        for flat in names:
            name, _ = split_name(flat)
            groups.setdefault(name if name in TABLES else flat, []).append(flat)
        made = [CHANGES[split_name(flats[0])[0]](flats, n, domain) for flats in groups.values()]
        self._actions = [change for change in made if change.names[0].startswith("action-")]
        self._observations = [change for change in made if change.names[0].startswith("obs-")]
        rewards = [change for change in made if change.names[0].startswith("reward-")]
        self._rewards = sorted(rewards, key=lambda change: change.names[0] != "reward-scale")
        self._changes = [*self._observations, *reversed(self._actions), *self._rewards]

    @property
    def changed_observations(self) -> list[slice]:
        """The entries of observations that any change touches."""
        return [change.at for change in self._observations]

    def set(self, rows: Rows, values: Floats) -> None:
        """The numbers (m, names) of these rows."""
        for change in self._changes:
            change.set(rows, values[:, [self.names.index(flat) for flat in change.names]])
        for row in rows.tolist():
            for number, change in enumerate(self._active(row)):
                change.seed(row, [self._seed + number])

    def begin(self, rows: Rows, seeds: Sequence[int] | None) -> None:
        """Episodes begin in these rows; None: random numbers continue."""
        for change in self._changes:
            change.begin(rows)
        for row, seed in zip(rows.tolist(), seeds or (), strict=False):
            for number, change in enumerate(self._active(row)):
                change.seed(row, [self._seed + number, seed])

    def actions(self, rows: Rows, actions: Array) -> Array:
        """The actions that reach the environment."""
        return _through(self._actions, rows, actions)

    def observations(self, rows: Rows, observations: Array) -> Array:
        """The observations that reach the agent."""
        return _through(self._observations, rows, observations)

    def rewards(self, rows: Rows, rewards: Floats) -> Floats:
        """The rewards that reach the agent."""
        return _through(self._rewards, rows, rewards)

    def _active(self, row: int) -> list[Change]:
        return [change for change in self._changes if change.is_active[row]]


def _through(changes: Sequence[Change], rows: Rows, batch: Array) -> Array:
    for change in changes:
        batch = change(rows, batch)
    return batch
