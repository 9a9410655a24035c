"""What a method needs to run within a kernel that plays whole episodes (`trials/episodes.py`)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.types import Floats, Observation, Rows


@dataclass(frozen=True, slots=True)
class CompiledMethod:
    """A method as kernels for one trial; they must do exactly what `Method.act` and `Method.learn` do.

    `view` is what the kernels work on. Everything else about a trial (its start, its alarms, the end of an episode)
    remains with the method.
    """

    act: Any
    """act(view, row, point, wanted) -> (action, region)."""
    learn: Any
    """learn(view, row, point, wanted, action, region, score, observation) -> number of regions created."""
    has_room: Any
    """has_room(view, row) -> whether `learn` has the space it may need; otherwise `reserve` is called first."""
    view: Callable[[], Any]
    """Arrays and settings as a tuple, valid until `reserve` or `on_created`."""
    reserve: Callable[[Rows, int], None]
    """reserve(rows, n): make space for about n new regions in each of these trials, for one at least."""
    on_created: Callable[[int], None]
    """Told the number of regions that `learn` created."""
    learns: bool = True
    """Whether it learns at all."""
    centre: Floats | None = None
    scale: Floats | None = None
    """Points are observations minus `centre` over `scale`; None: they are the model states."""


@kernel(allocates=False, inline="always")
def _act_as_agent(view: tuple[int], row: int, point: NDArray[np.float32], wanted: int) -> tuple[int, int]:
    return wanted, -1


@kernel(allocates=False, inline="always")
def _learn_nothing(
    view: tuple[int], row: int, point: NDArray[np.float32], wanted: int, action: int, region: int, score: float,
    observation: Observation,
) -> int:  # fmt: skip
    return 0


@kernel(allocates=False, inline="always")
def _always_room(view: tuple[int], row: int) -> bool:
    return True


def as_agent() -> CompiledMethod:
    """Acts as the frozen agent wants and never learns."""
    return CompiledMethod(
        _act_as_agent, _learn_nothing, _always_room, lambda: (0,), lambda *_: None, lambda _: None, learns=False
    )
