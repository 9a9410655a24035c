"""The method: adaptation principles, learned in the cells of a trained agent's embedding.

| paper               | here                        | meaning                                                        |
|---------------------|-----------------------------|----------------------------------------------------------------|
| ms_t                | model_state                 | activations that enter the output layer, for the state s_t     |
| a_agent             | wanted                      | the action the trained agent wants                             |
| a_t                 | executed                    | the action that was executed                                   |
| VoronoiSet          | sites                       | points in model-state space; each owns a Voronoi cell (region) |
| AdaptationPrinciples| candidates[region]          | what to do instead of `wanted`: open (several) or closed (one) |
| tested              | tested[region]              | actions that were executed in the region                       |
| best                | best[region]                | the best score seen in the region                              |
| Eval(s_t,a_t,s_t+1) | score                       | how good the executed action was                               |
| thre, sup(Eval)     | threshold, supremum         | below it an action fails; the best score there is              |

`select` is Algorithm 1, `update` is Algorithm 2. Both work on a batch of trials, a principle is one row of arrays, and
a single agent is a batch of one. Four readings of the update exist:

- printed:  the pseudo-code as it stands in the paper.
- text:     the paper's prose: good actions are ignored, a region reaches over all states where the agent wants the
            region's action, and a candidate stays only if it is at least as good as both the best and the threshold.
- revised:  printed, but a failing closed principle tries everything except what just failed, and its best score rises.
            (As printed, a two-action principle is closed at birth and respawns the action that failed.)
- fallback: every action is judged once, the agent's own included, and the best scorer is kept.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.errors import check_name
from nappingrl.methods.voronoi.sites import PAGE, Plots, Sites, add_site, grown, nearest
from nappingrl.rng import Streams, draw
from nappingrl.types import Actions, Floats, Keys, ModelStates, Observations, Rows

RULES = ("printed", "text", "revised", "fallback")
_PRINTED, _TEXT, _REVISED, _FALLBACK = range(4)


class Book(NamedTuple):
    """What is written at each site: one principle. All arrays are (pool, PAGE, ...), like the sites."""

    candidates: NDArray[np.bool_]
    tested: NDArray[np.bool_]
    best: NDArray[np.float64]
    best_action: NDArray[np.int64]
    visits: NDArray[np.int64]
    situation: NDArray[np.float32]
    """The observation at creation, so that a principle can be read."""


class Principles:
    """The adaptation principles of n trials."""

    def __init__(
        self,
        n: int,
        n_actions: int,
        dim: int,
        rule: str = "revised",
        situation_dim: int = 0,
        is_same_key: bool = False,
    ) -> None:
        self.n_actions, self.rule = n_actions, check_name("rule", rule, RULES)
        self._rule = RULES.index(rule)
        # paper (text): the first region covers all the space where the agent wants its action.
        self._is_same_key = is_same_key or rule == "text"
        self._sites = Sites(n, dim)
        pool = self._sites.pool
        self._book = Book(
            candidates=np.zeros((pool, PAGE, n_actions), np.bool_),
            tested=np.zeros((pool, PAGE, n_actions), np.bool_),
            best=np.zeros((pool, PAGE)),
            best_action=np.zeros((pool, PAGE), np.int64),
            visits=np.zeros((pool, PAGE), np.int64),
            situation=np.zeros((pool, PAGE, situation_dim), np.float32),
        )
        self.n_open = np.zeros(n, np.int64)
        self._streams = Streams(n)

    @property
    def n_regions(self) -> NDArray[np.int64]:
        """How many principles each trial has, (n,)."""
        return self._sites.plots.n_sites

    def start(self, rows: Rows, keys: Keys) -> None:
        """A new trial begins in `rows`; `keys` seed its random choice of candidates."""
        self.forget(rows)
        self._streams.start(rows, keys)

    def forget(self, rows: Rows) -> None:
        """Drop all principles of `rows`; their random choice goes on where it was."""
        self._sites.clear(rows)
        self.n_open[rows] = 0

    def select(
        self, rows: Rows, model_states: ModelStates, wanted: Actions, order: Actions | None = None,
        mask: NDArray[np.bool_] | None = None,
    ) -> tuple[Actions, Rows]:  # fmt: skip
        """Algorithm 1: the actions to execute, and the region that each was taken from (-1: none).

        An open principle draws a candidate from the trial's own random stream; with `order` (m, n_actions) it takes
        the first one in that order. `mask` (m, n_actions) leaves out candidates that make no sense now; where none is
        left the wanted action is taken.
        """
        actions, regions = wanted.copy(), np.full(len(rows), -1)
        _select(
            self._sites.plots, self._book, self._rule, self._is_same_key, rows, model_states, wanted,
            _NO_ORDER if order is None else order, _NO_MASK if mask is None else mask, self._streams.keys,
            self._streams.draws, actions, regions,
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
    ) -> None:
        """Algorithm 2: learn from the scores of the executed actions; `regions` are those that `select` found."""
        self._sites.make_room(rows)
        self._grow_book()
        m = len(rows)
        if situations is None:
            situations = np.zeros((m, self._book.situation.shape[2]), np.float32)
        created = _update(
            self._sites.plots, self._book, self._rule, rows, model_states, wanted, executed, regions, scores,
            np.full(m, threshold, np.float64), np.full(m, supremum, np.float64), situations, self.n_open,
        )  # fmt: skip
        self._sites.after_growth(created)

    def table(self, row: int) -> dict[str, NDArray[Any]]:
        """The principles of one trial in the order of creation, as named arrays."""
        at = self._sites.addresses(row)
        plots = self._sites.plots
        table: dict[str, NDArray[Any]] = {"site": plots.site[at], "wanted": plots.wanted[at]}
        return table | {name: array[at] for name, array in self._book._asdict().items()}

    def stream(self, row: int) -> tuple[int, int]:
        """Key of a trial's random stream, and how many numbers were drawn from it."""
        return int(self._streams.keys[row]), int(self._streams.draws[row])

    def restore(self, row: int, table: dict[str, NDArray[Any]], stream: tuple[int, int] | None = None) -> None:
        """Put back what `table` (and `stream`) gave."""
        key, draws = stream or (self._streams.keys[row], 0)
        self.start(np.array([row]), np.array([key], np.uint64))
        self._streams.draws[row] = draws
        self._sites.put(row, table["site"], table["wanted"])
        self._grow_book()
        at = self._sites.addresses(row)
        for name, array in self._book._asdict().items():
            array[at] = table[name]
        self.n_open[row] = int((table["candidates"].sum(axis=1) > 1).sum())

    def _grow_book(self) -> None:
        self._book = grown(self._book, self._sites.pool)


_NO_ORDER = np.zeros((0, 0), np.int64)
_NO_MASK = np.zeros((0, 0), np.bool_)


# ---------------------------------------------------------------------------------------------------- Algorithm 1


@kernel()
def _select(
    plots: Plots, book: Book, rule: int, is_same_key: bool, rows: Rows, model_states: ModelStates, wanted: Actions,
    order: Actions, mask: NDArray[np.bool_], keys: Keys, draws: Keys, actions: Actions, regions: Rows,
) -> None:  # fmt: skip
    for m in range(rows.shape[0]):
        row = rows[m]
        same_key = wanted[m] if is_same_key else -1
        region = nearest(plots, row, model_states[m], same_key)
        regions[m] = region
        if region < 0:
            continue
        page, j = plots.pages[row, region // PAGE], region % PAGE
        if plots.wanted[page, j] != wanted[m]:
            continue
        eligible = book.candidates[page, j]
        if rule == _FALLBACK and _size(eligible) > 1:
            eligible = eligible & ~book.tested[page, j]
        if mask.shape[0]:
            eligible = eligible & mask[m]
            if _size(eligible) == 0:
                continue
        if order.shape[0]:
            actions[m] = _first(eligible, order[m])
        elif _size(eligible) == 1:
            actions[m] = _pick(eligible, 0)
        else:
            actions[m] = _pick(eligible, int(draw(keys[row], draws[row]) % np.uint64(_size(eligible))))
            draws[row] += np.uint64(1)


@kernel()
def _size(actions: NDArray[np.bool_]) -> int:
    size = 0
    for a in range(actions.shape[0]):
        size += actions[a]
    return size


@kernel()
def _pick(actions: NDArray[np.bool_], index: int) -> int:
    """The index-th action of a set."""
    for a in range(actions.shape[0]):
        if actions[a]:
            if index == 0:
                return a
            index -= 1
    return -1


@kernel()
def _first(actions: NDArray[np.bool_], order: Actions) -> int:
    """The first action of a set in the given order."""
    for i in range(order.shape[0]):
        if actions[order[i]]:
            return int(order[i])
    return -1


# ---------------------------------------------------------------------------------------------------- Algorithm 2


@kernel()
def _update(
    plots: Plots, book: Book, rule: int, rows: Rows, model_states: ModelStates, wanted: Actions, executed: Actions,
    regions: Rows, scores: Floats, thresholds: Floats, suprema: Floats, situations: Observations, n_open: Rows,
) -> int:  # fmt: skip
    created = 0
    for m in range(rows.shape[0]):
        row, region = rows[m], regions[m]
        a_agent, a, score, thre, sup = wanted[m], executed[m], scores[m], thresholds[m], suprema[m]
        is_good, is_split = score >= thre, False
        page, j = plots.pages[row, region // PAGE], region % PAGE
        if region >= 0 and plots.wanted[page, j] == a_agent:
            principle = _Principle(
                book.candidates[page, j], book.tested[page, j], book.best[page], book.best_action[page], j
            )
            principle.tested[a] = True
            book.visits[page, j] += 1
            was_open = _size(principle.candidates) > 1
            if rule == _TEXT:
                is_split = _judge_text(principle, was_open, a, score, thre, sup)
            elif rule == _FALLBACK:
                is_split = _judge_fallback(principle, was_open, a, score, thre, sup)
            else:
                is_split = _judge_printed(principle, was_open, a, score, thre, sup, rule == _REVISED)
            n_open[row] -= was_open and _size(principle.candidates) == 1
            if not is_split:
                continue
        elif rule == _TEXT and is_good:
            continue  # paper (text): good actions are ignored
        # A new principle at ms_t.
        i = add_site(plots, row, model_states[m], a_agent)
        page, j = plots.pages[row, i // PAGE], i % PAGE
        candidates, tested = book.candidates[page, j], book.tested[page, j]
        if is_good:
            candidates[:] = False
            candidates[a_agent] = True
        else:
            candidates[:] = True
            if rule == _REVISED and is_split:
                candidates[a] = False
            elif rule != _FALLBACK:
                candidates[a_agent] = False
        # paper: `best` is the score of the action just executed, so that action counts as tested.
        tested[:] = False
        tested[a] = True
        book.best[page, j], book.best_action[page, j], book.visits[page, j] = score, a, 1
        book.situation[page, j] = situations[m]
        n_open[row] += _size(candidates) > 1
        created += 1
    return created


class _Principle(NamedTuple):
    """One principle: its two sets, and where its best score and best action are kept."""

    candidates: NDArray[np.bool_]
    tested: NDArray[np.bool_]
    best: NDArray[np.float64]
    best_action: NDArray[np.int64]
    j: int


@kernel()
def _judge_printed(p: _Principle, is_open: bool, a: int, score: float, thre: float, sup: float, revised: bool) -> bool:
    """The cases of Algorithm 2 in the paper's order; True asks for a new principle."""
    best = p.best[p.j]
    if score == sup and is_open:
        _keep_only(p.candidates, a)
        p.best[p.j] = score
    elif score > best and is_open:
        _drop_other_tested(p, a)
        p.best[p.j] = score
    elif score == best and score >= thre and is_open:
        _drop_other_tested(p, a)
    elif score == best and is_open:
        p.candidates[a] = False
    elif score < best and score < thre:
        if not is_open:
            return True
        p.candidates[a] = False
    elif score > best and revised:
        p.best[p.j] = score
    return False


@kernel()
def _judge_text(p: _Principle, is_open: bool, a: int, score: float, thre: float, sup: float) -> bool:
    """The paper's prose: a candidate stays if it is at least as good as the best and the threshold."""
    best = p.best[p.j]
    if not is_open:
        return score < best and score < thre
    if score == sup:
        _keep_only(p.candidates, a)
        p.best[p.j] = score
    elif score >= best and score >= thre:
        _drop_other_tested(p, a)
        p.best[p.j] = score
    else:
        p.candidates[a] = False
    return False


@kernel()
def _judge_fallback(p: _Principle, is_open: bool, a: int, score: float, thre: float, sup: float) -> bool:
    """Each action is judged once; a new best that does not fail is kept at once, else the best of all."""
    best = p.best[p.j]
    if not is_open:
        return score < best and score < thre
    if score > best or score == sup:
        p.best[p.j], p.best_action[p.j] = score, a
    if score == sup or (score >= thre and score > best):
        _keep_only(p.candidates, a)
    else:
        p.candidates[:] = ~p.tested
        p.candidates[p.best_action[p.j]] = True
    return False


@kernel()
def _keep_only(candidates: NDArray[np.bool_], a: int) -> None:
    candidates[:] = False
    candidates[a] = True


@kernel()
def _drop_other_tested(p: _Principle, a: int) -> None:
    """The other tested actions go, unless nothing would be left (the executed action may not be a candidate)."""
    left = 0
    for b in range(p.candidates.shape[0]):
        left += p.candidates[b] and (b == a or not p.tested[b])
    if left:
        for b in range(p.candidates.shape[0]):
            p.candidates[b] = p.candidates[b] and (b == a or not p.tested[b])
