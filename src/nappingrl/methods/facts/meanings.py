"""What an action does now, told by what the actions did in the original world."""

from collections.abc import Hashable, Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Where = TypeVar("Where", bound=Hashable)


class Meanings:
    """By which action of the original world each action may be explained.

    `now` and `original`: where each action led, by (where, action).
    """

    def __init__(
        self, now: Mapping[tuple[Where, int], int], original: Mapping[tuple[Where, int], int], n_actions: int
    ) -> None:
        shape = n_actions, n_actions
        agrees, contradicts = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for (where, action), end in now.items():
            for other in range(n_actions):
                expected = original.get((where, other))
                if expected is not None:
                    agrees[action, other] += expected == end
                    contradicts[action, other] += expected != end
        self.is_possible: NDArray[np.bool_] = contradicts == 0
        """(action, original action): nothing speaks against it."""
        self._is_confirmed = agrees.any(axis=1)
        self.acts_as = np.full(n_actions, -1)
        """The original action that each action is taken for; -1: unknown."""
        for action in range(n_actions):
            votes = np.where(self.is_possible[action], agrees[action], 0)
            if self.is_possible[action, action] and (votes[action] or not votes.any()):
                self.acts_as[action] = action
            elif votes.any():
                self.acts_as[action] = votes.argmax()

    def executes(self, wanted: int) -> int:
        """The action to execute so that it acts as the original one that is wanted; itself if nothing is known."""
        same = np.flatnonzero(self.acts_as == wanted)
        if len(same):
            return wanted if wanted in same else int(same[0])
        is_open = self.is_possible[:, wanted] & ~self._is_confirmed
        return int(np.argmax(is_open)) if is_open.any() else wanted
