"""The actions: one of the objects, a low or a high trajectory, and an offset above or below the object's centre."""

import numpy as np
from numpy.typing import NDArray

N_SLOTS = 12
"""Objects that can be aimed at."""
TRAJECTORIES = ("low", "high")
OFFSETS = (0, 15, -15, 25, -25, 35, -35)
"""Pixels above the object's centre."""
PER_OBJECT = len(TRAJECTORIES) * len(OFFSETS)
"""Actions per object."""
N_ACTIONS = N_SLOTS * PER_OBJECT
ACTION_NAMES = tuple(
    f"object {slot + 1} {trajectory} {offset:+d}" for slot in range(N_SLOTS) for trajectory in TRAJECTORIES
    for offset in OFFSETS
)  # fmt: skip


def split(action: int) -> tuple[int, int, int]:
    """Slot, trajectory and offset in pixels of an action."""
    slot, rest = divmod(action, PER_OBJECT)
    trajectory, offset = divmod(rest, len(OFFSETS))
    return slot, trajectory, OFFSETS[offset]


def join(slot: int, trajectory: int, offset: int) -> int:
    """The action of a slot, a trajectory and an offset in pixels."""
    return slot * PER_OBJECT + trajectory * len(OFFSETS) + OFFSETS.index(offset)


def candidate_order() -> NDArray[np.int64]:
    """For each action, all actions in the order in which the paper tries them instead, (n_actions, n_actions).

    Other objects come first, then the other trajectory with each object, then other offsets.
    """
    order = np.empty((N_ACTIONS, N_ACTIONS), np.int64)
    for action in range(N_ACTIONS):
        slot, trajectory, offset = split(action)
        slots = [(slot + i) % N_SLOTS for i in range(N_SLOTS)]
        ways = [trajectory, 1 - trajectory]
        offsets = [offset, *(other for other in OFFSETS if other != offset)]
        order[action] = [join(s, t, o) for o in offsets for t in ways for s in slots]
    return order
