"""Sets of actions as boolean arrays (n_actions,), for kernels."""

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.types import Actions

ActionSet = NDArray[np.bool_]


@kernel(allocates=False)
def size(actions: ActionSet) -> int:
    """Number of actions in the set."""
    n = 0
    for a in range(actions.shape[0]):
        n += actions[a]
    return n


@kernel(allocates=False)
def pick(actions: ActionSet, index: int) -> int:
    """The index-th action of the set."""
    for a in range(actions.shape[0]):
        if actions[a]:
            if index == 0:
                return a
            index -= 1
    return -1


@kernel(allocates=False)
def first(actions: ActionSet, order: Actions) -> int:
    """The first action of the set in the given order."""
    for i in range(order.shape[0]):
        if actions[order[i]]:
            return int(order[i])
    return -1


@kernel(allocates=False)
def keep_only(actions: ActionSet, a: int) -> None:
    """Reduce the set to one action."""
    actions[:] = False
    actions[a] = True
