"""NAPPING: adaptation principles over the Voronoi regions of a frozen agent's embedding.

| paper                | here                  | meaning                                                        |
|----------------------|-----------------------|----------------------------------------------------------------|
| ms_t                 | model_state           | activations that enter the output layer for the state s_t      |
| a_agent              | wanted                | the action the trained agent wants                             |
| a_t                  | executed              | the executed action                                            |
| VoronoiSet           | sites                 | points in model-state space; each owns a Voronoi region        |
| AdaptationPrinciples | principle.candidates  | what to do instead of `wanted`: open (several) or closed (one) |
| tested, best         | principle.tested/best | actions executed in the region; the best score there           |
| Eval(s_t,a_t,s_t+1)  | score                 | how good the executed action was                               |
| thre, sup(Eval)      | threshold, supremum   | an action below the first fails; no score exceeds the second   |

`select` is Algorithm 1 and `update` is Algorithm 2. Both work on a batch of trials; a single agent is a batch of one.
How a principle reacts to a score is one of the four rules in `rules.py`. `store.py` keeps the principles, and
`methods/voronoi` finds the nearest site.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.errors import check_name
from nappingrl.methods.napping.action_set import first, pick, size
from nappingrl.methods.napping.rules import FALLBACK, RULES, TEXT, react, set_candidates
from nappingrl.methods.napping.store import PrincipleStore, StoreView, new_principle, principle_at
from nappingrl.methods.voronoi.limit import kept_regions
from nappingrl.methods.voronoi.nearest import nearest
from nappingrl.rng import Streams, draw
from nappingrl.types import Actions, Floats, Keys, ModelStates, Observations, Rows

_NO_ORDER = np.zeros((0, 0), np.int64)
_NO_MASK = np.zeros((0, 0), np.bool_)


class Principles:
    """The adaptation principles of n trials.

    With `match_wanted`, the nearest site is searched among those created for the action the agent wants now. A trial
    with more than `max_regions` principles drops the least visited ones (`voronoi/limit.py`); 0: no limit.
    """

    def __init__(
        self,
        n: int,
        n_actions: int,
        dim: int,
        rule: str = "revised",
        situation_dim: int = 0,
        match_wanted: bool = False,
        max_regions: int = 0,
    ) -> None:
        self._rule = RULES.index(check_name("rule", rule, RULES))
        # paper (text): the first region covers all the space where the agent wants its action.
        self._match_wanted = match_wanted or rule == "text"
        self._max_regions = max_regions
        self._store = PrincipleStore(n, n_actions, dim, situation_dim)
        self._streams = Streams(n)

    @property
    def n_regions(self) -> NDArray[np.int64]:
        """Number of principles of each trial, (n,)."""
        return self._store.n_regions

    @property
    def n_open(self) -> NDArray[np.int64]:
        """Number of open principles of each trial, (n,)."""
        return self._store.n_open

    def start(self, rows: Rows, keys: Keys) -> None:
        """Begin new trials in `rows`; `keys` seed the random choice of candidates."""
        self.forget(rows)
        self._streams.start(rows, keys)

    def forget(self, rows: Rows) -> None:
        """Drop all principles of `rows`; their random streams continue."""
        self._store.clear(rows)

    def select(
        self,
        rows: Rows,
        model_states: ModelStates,
        wanted: Actions,
        order: Actions | None = None,
        mask: NDArray[np.bool_] | None = None,
    ) -> tuple[Actions, Rows]:
        """Algorithm 1: the actions to execute, and the region of each (-1: none).

        An open principle draws a candidate at random, or takes the first one in `order` (m, n_actions). Candidates
        that `mask` (m, n_actions) excludes are never chosen; if none remains, the wanted action is.
        """
        actions, regions = wanted.copy(), np.full(len(rows), -1)
        _select(
            self._store.view, self._rule, self._match_wanted, rows, model_states, wanted,
            _NO_ORDER if order is None else order, _NO_MASK if mask is None else mask,
            self._streams.keys, self._streams.draws, actions, regions,
        )  # fmt: skip
        return actions, regions

    def update(
        self,
        rows: Rows,
        model_states: ModelStates,
        wanted: Actions,
        executed: Actions,
        regions: Rows,
        scores: Floats,
        threshold: float | Floats,
        supremum: float | Floats,
        situations: Observations | None = None,
    ) -> Rows:
        """Algorithm 2: learn from the scores of the executed actions, in the regions that `select` returned.

        Returns the rows that had too many principles: regions that `select` returned for them are no longer valid.
        """
        m = len(rows)
        thresholds, suprema = np.full(m, threshold, np.float64), np.full(m, supremum, np.float64)
        if situations is None:
            situations = np.zeros((m, self._store.situation_dim), np.float32)
        self._store.reserve(rows)
        n_created = _update(
            self._store.view, self._rule, rows, model_states, wanted, executed, regions, scores, thresholds, suprema,
            situations,
        )  # fmt: skip
        self._store.maybe_refit_index(n_created)
        if not self._max_regions:
            return rows[:0]
        full: Rows = rows[self.n_regions[rows] > self._max_regions]
        for row in full.tolist():
            self._store.keep(row, kept_regions(self.table(row), self._max_regions))
        return full

    def table(self, row: int) -> dict[str, NDArray[Any]]:
        """The principles of one trial in order of creation, as named arrays."""
        return self._store.table(row)

    def stream(self, row: int) -> tuple[int, int]:
        """Key of a trial's random stream, and how many numbers were drawn from it."""
        return int(self._streams.keys[row]), int(self._streams.draws[row])

    def restore(self, row: int, table: dict[str, NDArray[Any]], stream: tuple[int, int] | None = None) -> None:
        """Replace the principles of one trial with those of a `table`, and its random stream with `stream`."""
        self._store.restore(row, table)
        self._streams.keys[row], self._streams.draws[row] = stream or (self._streams.keys[row], 0)


# ------------------------------------------------------------------------------------------------------- Algorithm 1


@kernel()
def _select(
    store: StoreView, rule: int, match_wanted: bool, rows: Rows, model_states: ModelStates, wanted: Actions,
    order: Actions, mask: NDArray[np.bool_], keys: Keys, draws: Keys, actions: Actions, regions: Rows,
) -> None:  # fmt: skip
    sites, principles, _ = store
    for m in range(rows.shape[0]):
        row, a_agent = rows[m], wanted[m]
        searched = a_agent if match_wanted else -1  # as an argument of the call, it would copy `sites` at each step
        regions[m] = region = nearest(sites, row, model_states[m], searched)
        if region < 0:
            continue  # no principles yet
        principle = principle_at(sites, principles, row, region)
        if principle.wanted != a_agent:
            continue  # the region belongs to another action
        candidates = principle.candidates
        if rule == FALLBACK and size(candidates) > 1:
            candidates = candidates & ~principle.tested
        if mask.shape[0]:
            candidates = candidates & mask[m]
        n_candidates = size(candidates)
        if n_candidates == 0:
            continue  # the mask excludes all candidates
        if n_candidates == 1:
            actions[m] = pick(candidates, 0)
        elif order.shape[0]:
            actions[m] = first(candidates, order[m])
        else:
            actions[m] = pick(candidates, int(draw(keys[row], draws[row]) % np.uint64(n_candidates)))
            draws[row] += np.uint64(1)


# ------------------------------------------------------------------------------------------------------- Algorithm 2


@kernel()
def _update(
    store: StoreView, rule: int, rows: Rows, model_states: ModelStates, wanted: Actions, executed: Actions,
    regions: Rows, scores: Floats, thresholds: Floats, suprema: Floats, situations: Observations,
) -> int:  # fmt: skip
    sites, principles, n_open = store
    n_created = 0
    for m in range(rows.shape[0]):
        row, region, a_agent, a, score = rows[m], regions[m], wanted[m], executed[m], scores[m]
        is_good, is_split = score >= thresholds[m], False
        if region >= 0:
            principle = principle_at(sites, principles, row, region)
            if principle.wanted == a_agent:
                was_open = size(principle.candidates) > 1
                principle.tested[a] = True
                principle.visits[0] += 1
                is_split = react(rule, principle, a, score, thresholds[m], suprema[m])
                n_open[row] -= was_open and size(principle.candidates) == 1
                if not is_split:
                    continue
        if rule == TEXT and is_good:
            continue  # paper (text): good actions are ignored
        principle = new_principle(sites, principles, row, model_states[m], a_agent, a, score, situations[m])
        set_candidates(rule, principle, a_agent, a, is_good, is_split)
        n_open[row] += size(principle.candidates) > 1
        n_created += 1
    return n_created
