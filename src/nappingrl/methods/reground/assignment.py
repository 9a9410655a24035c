"""The cheapest permutation: which column each row gets so that the sum of costs is least."""

import numpy as np

from nappingrl.types import Floats, Rows


def cheapest_assignment(costs: Floats) -> Rows:
    """The column of each row of a square table, by shortest augmenting paths (Jonker and Volgenant), O(n^3).

    Rows join one after the other. Each is given a column along the path of least reduced cost to a free column, on
    which rows that joined before may move to other columns.
    """
    n = len(costs)
    row_price, column_price = np.zeros(n), np.zeros(n)
    row_of = np.full(n, -1)
    """The row of each column; -1: it is free."""
    for first in range(n):
        distance, came_from = np.full(n, np.inf), np.full(n, -1)
        is_done = np.zeros(n, np.bool_)
        row, reached = first, 0.0
        while True:
            reduced = reached + costs[row] - row_price[row] - column_price
            is_shorter = ~is_done & (reduced < distance)
            distance[is_shorter], came_from[is_shorter] = reduced[is_shorter], row
            column = int(np.where(is_done, np.inf, distance).argmin())
            reached = distance[column]
            is_done[column] = True
            if row_of[column] < 0:
                break
            row = int(row_of[column])
        on_path = is_done & (row_of >= 0)
        row_price[first] += reached
        row_price[row_of[on_path]] += reached - distance[on_path]
        column_price[is_done] -= reached - distance[is_done]
        while True:  # back along the path
            row = int(came_from[column])
            row_of[column], column = row, int(np.flatnonzero(row_of == row)[0]) if row != first else -1
            if row == first:
                break
    return np.argsort(row_of)
