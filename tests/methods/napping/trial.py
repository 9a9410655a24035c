"""One trial of the batched principles, and comparisons with the pseudo-code."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from methods.napping.pseudo_code import PseudoCode
from nappingrl.methods.napping.principles import Principles

Ints = npt.NDArray[np.int64]
Table = dict[str, npt.NDArray[np.generic]]

SCORES = (-2.0, -1.0, -1 / 3, 0.0, 0.1, 0.5, 1.0)
FAIL, GOOD = -1.0, 0.5  # with thre = 0 and sup = 1


def as_rows(values: Sequence[int]) -> Ints:
    return np.asarray(values, dtype=np.int64)


def as_keys(values: Sequence[int]) -> npt.NDArray[np.uint64]:
    return np.asarray(values, dtype=np.uint64)


def as_states(values: Sequence[Sequence[float]] | npt.NDArray[np.generic]) -> npt.NDArray[np.float32]:
    return np.asarray(values, dtype=np.float32)


def actions_of(mask: npt.NDArray[np.generic]) -> set[int]:
    return {int(action) for action in np.flatnonzero(mask)}


def assert_table(table: Table, reference: PseudoCode, n_actions: int) -> None:
    """Compare every field of every principle."""
    known = reference.principles
    assert table["site"].dtype == np.float32
    assert table["best"].dtype == np.float64
    assert table["candidates"].shape == table["tested"].shape == (len(known), n_actions)
    assert table["candidates"].dtype == table["tested"].dtype == np.bool_
    assert [tuple(site) for site in table["site"].tolist()] == [p.site for p in known]
    assert table["wanted"].tolist() == [p.wanted for p in known]
    assert [actions_of(mask) for mask in table["candidates"]] == [p.candidates for p in known]
    assert [actions_of(mask) for mask in table["tested"]] == [p.tested for p in known]
    assert table["best"].tolist() == [p.best for p in known]
    assert table["visits"].tolist() == [p.visits for p in known]


def assert_same_table(left: Table, right: Table) -> None:
    for name in ("site", "wanted", "candidates", "tested", "best", "visits"):
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)


class Trial:
    """One trial in one dimension, with thre = 0 and sup = 1 by default."""

    def __init__(self, rule: str, n_actions: int, key: int = 7) -> None:
        self.principles = Principles(1, n_actions, 1, rule=rule)
        self.principles.start(as_rows([0]), as_keys([key]))
        self.n_actions = n_actions

    def select(self, at: float, wanted: int, order: Sequence[int] | None = None) -> tuple[int, int]:
        """(action, region)"""
        priorities = None if order is None else as_rows(order)[None]
        actions, regions = self.principles.select(as_rows([0]), as_states([[at]]), as_rows([wanted]), priorities)
        return int(actions[0]), int(regions[0])

    def update(self, at: float, wanted: int, executed: int, score: float, thre: float = 0.0, sup: float = 1.0) -> None:
        _, region = self.select(at, wanted)
        self.principles.update(
            as_rows([0]),
            as_states([[at]]),
            as_rows([wanted]),
            as_rows([executed]),
            as_rows([region]),
            np.array([score]),
            thre,
            sup,
        )

    def known(self) -> list[tuple[float, int, set[int], set[int], float, int]]:
        """(site, wanted, candidates, tested, best, visits) of each principle."""
        t = self.principles.table(0)
        return [
            (
                float(t["site"][i, 0]),
                int(t["wanted"][i]),
                actions_of(t["candidates"][i]),
                actions_of(t["tested"][i]),
                float(t["best"][i]),
                int(t["visits"][i]),
            )
            for i in range(len(t["wanted"]))
        ]
