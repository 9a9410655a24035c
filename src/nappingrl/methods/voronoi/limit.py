"""A limit on the regions of a trial: when there are more, the least visited ones are dropped."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.types import Rows

DROPPED_SHARE = 0.05
"""Share of the limit that is dropped at once: that costs about as much as a few hundred steps."""


def kept_regions(table: Mapping[str, NDArray[Any]], limit: int) -> Rows:
    """The regions of a table (see `Principles.table`) that stay, in order of creation.

    The newest stays. Of the others, closed principles go before open ones, less visited before more visited ones, and
    older before newer ones.
    """
    is_open = table["candidates"].sum(axis=1) > 1
    order = np.lexsort((table["visits"][:-1], is_open[:-1]))
    n_dropped = len(is_open) - limit + int(DROPPED_SHARE * limit)
    kept: Rows = np.sort(np.append(order[n_dropped:], len(is_open) - 1))
    return kept
