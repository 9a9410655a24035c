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

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.errors import check_name
from nappingrl.methods.compiled import CompiledMethod
from nappingrl.methods.napping.action_set import first, pick, size
from nappingrl.methods.napping.rules import FALLBACK, RULES, TEXT, react, set_candidates
from nappingrl.methods.napping.store import PrincipleStore, StoreView, new_principle, principle_at
from nappingrl.methods.voronoi.limit import kept_regions
from nappingrl.methods.voronoi.nearest import has_room, nearest
from nappingrl.rng import Streams, draw
from nappingrl.types import Actions, Floats, Keys, ModelStates, Observation, Observations, Rows

_NO_ORDER = np.zeros((0, 0), np.int64)
_NO_MASK = np.zeros((0, 0), np.bool_)


class PrinciplesView(NamedTuple):
    """Everything that both algorithms need of the principles, as kernels see it."""

    store: StoreView
    rule: int
    match_wanted: bool
    order: Actions
    mask: NDArray[np.bool_]
    allowed: NDArray[np.bool_]
    keys: Keys
    draws: Keys
    threshold: float
    supremum: float


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
        self._rule = list(RULES).index(check_name("rule", rule, RULES))
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

    def compiled(
        self, threshold: float, supremum: float, centre: Floats | None, scale: Floats | None
    ) -> CompiledMethod:
        """Both algorithms for kernels, over points that are model states or standardised observations."""
        allowed = np.empty(self._store.view.principles.candidates.shape[2], np.bool_)

        def view() -> PrinciplesView:
            return PrinciplesView(
                self._store.view, self._rule, self._match_wanted, _NO_ORDER, _NO_MASK, allowed, self._streams.keys,
                self._streams.draws, float(threshold), float(supremum),
            )  # fmt: skip

        return CompiledMethod(
            _act, _learn, _has_room, view, self._store.reserve, self._store.maybe_refit_index, True, centre, scale
        )

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
    allowed = np.empty(store.principles.candidates.shape[2], np.bool_)
    for m in range(rows.shape[0]):
        actions[m], regions[m] = select(
            store, rule, match_wanted, rows[m], model_states[m], wanted[m], order, mask, m, allowed, keys, draws
        )


@kernel(allocates=False, inline="always")
def select(
    store: StoreView, rule: int, match_wanted: bool, row: int, model_state: NDArray[np.float32], a_agent: int,
    order: Actions, mask: NDArray[np.bool_], m: int, allowed: NDArray[np.bool_], keys: Keys, draws: Keys,
) -> tuple[int, int]:  # fmt: skip
    """Algorithm 1 for one trial: the action to execute, and its region.

    `m` is its row of `order` and `mask`; in `allowed` (n_actions,) it computes what may be chosen.
    """
    sites, principles, _ = store
    searched = a_agent if match_wanted else -1  # as an argument of the call, it would copy `sites` at each step
    region = nearest(sites, row, model_state, searched)
    if region < 0:
        return a_agent, region  # no principles yet
    principle = principle_at(sites, principles, row, region)
    if principle.wanted != a_agent:
        return a_agent, region  # the region belongs to another action
    is_untested_only = rule == FALLBACK and size(principle.candidates) > 1
    for a in range(allowed.shape[0]):
        allowed[a] = principle.candidates[a] and not (is_untested_only and principle.tested[a])
        if mask.shape[0]:
            allowed[a] &= mask[m, a]
    n_allowed = size(allowed)
    if n_allowed == 0:
        return a_agent, region  # the mask excludes all candidates
    if n_allowed == 1:
        return pick(allowed, 0), region
    if order.shape[0]:
        return first(allowed, order[m]), region
    action = pick(allowed, int(draw(keys[row], draws[row]) % np.uint64(n_allowed)))
    draws[row] += np.uint64(1)
    return action, region


# ------------------------------------------------------------------------------------------------------- Algorithm 2


@kernel(allocates=False)
def _update(
    store: StoreView, rule: int, rows: Rows, model_states: ModelStates, wanted: Actions, executed: Actions,
    regions: Rows, scores: Floats, thresholds: Floats, suprema: Floats, situations: Observations,
) -> int:  # fmt: skip
    n_created = 0
    for m in range(rows.shape[0]):
        n_created += update(
            store, rule, rows[m], model_states[m], wanted[m], executed[m], regions[m], scores[m], thresholds[m],
            suprema[m], situations[m],
        )  # fmt: skip
    return n_created


@kernel(allocates=False, inline="always")
def update(
    store: StoreView, rule: int, row: int, model_state: NDArray[np.float32], a_agent: int, a: int, region: int,
    score: float, threshold: float, supremum: float, situation: NDArray[np.float32],
) -> int:  # fmt: skip
    """Algorithm 2 for one trial; returns the number of new principles."""
    sites, principles, n_open = store
    is_good, is_split = score >= threshold, False
    if region >= 0:
        principle = principle_at(sites, principles, row, region)
        if principle.wanted == a_agent:
            was_open = size(principle.candidates) > 1
            principle.tested[a] = True
            principle.visits[0] += 1
            is_split = react(rule, principle, a, score, threshold, supremum)
            n_open[row] -= was_open and size(principle.candidates) == 1
            if not is_split:
                return 0
    if rule == TEXT and is_good:
        return 0  # paper (text): good actions are ignored
    principle = new_principle(sites, principles, row, model_state, a_agent, a, score, situation)
    set_candidates(rule, principle, a_agent, a, is_good, is_split)
    n_open[row] += size(principle.candidates) > 1
    return 1


# ------------------------------------------------------------------------------ both, within a kernel of whole episodes


@kernel(allocates=False, inline="always")
def _act(view: PrinciplesView, row: int, point: NDArray[np.float32], wanted: int) -> tuple[int, int]:
    return select(
        view.store, view.rule, view.match_wanted, row, point, wanted, view.order, view.mask, 0, view.allowed,
        view.keys, view.draws,
    )  # fmt: skip


@kernel(allocates=False, inline="always")
def _learn(
    view: PrinciplesView, row: int, point: NDArray[np.float32], wanted: int, action: int, region: int, score: float,
    observation: Observation,
) -> int:  # fmt: skip
    return update(
        view.store, view.rule, row, point, wanted, action, region, score, view.threshold, view.supremum, observation
    )


@kernel(allocates=False, inline="always")
def _has_room(view: PrinciplesView, row: int) -> bool:
    return has_room(view.store.sites, row)
