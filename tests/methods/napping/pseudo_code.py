"""The paper's pseudo-code for one trial with plain sets and loops: slow on purpose, the reference of the tests.

Names follow the paper: a *principle* belongs to one point of the VoronoiSet (its `site`) and to the action that the
agent wanted when the point was added (`wanted`). It is open with more than one candidate and closed with one.

With `match_wanted`, every rule searches only the sites created for the wanted action.

The four rules:
  printed   the algorithms as printed
  text      the paper's prose: only sites created for the wanted action are searched, good actions add no point, and a
            candidate below the best score or below thre is removed
  revised   printed, but a failing closed principle creates one with A - {executed}, and the best score of a closed
            principle may rise
  fallback  every action is judged, the wanted one included, and the best one is kept
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class Principle:
    """One principle; `site` and `wanted` never change."""

    site: tuple[float, ...]
    wanted: int
    candidates: set[int]
    tested: set[int]
    best: float
    best_action: int  # used by the fallback rule only
    visits: int = 1  # the creating step counts

    @property
    def is_open(self) -> bool:
        return len(self.candidates) > 1


class PseudoCode:
    """The principles of one trial."""

    def __init__(self, n_actions: int, rule: str, match_wanted: bool = False) -> None:
        if rule not in ("printed", "text", "revised", "fallback"):
            raise ValueError(rule)
        self.all_actions = set(range(n_actions))
        self.rule = rule
        self.match_wanted = match_wanted or rule == "text"
        self.principles: list[Principle] = []  # in order of creation

    # ---- the VoronoiSet -------------------------------------------------------------------------------------------

    def nearest(self, model_state: Sequence[float], wanted: int) -> int:
        """Index of the principle with the nearest site (ties: the earliest), -1 if there is none."""
        index_of_nearest, smallest = -1, float("inf")
        for index, principle in enumerate(self.principles):
            if self.match_wanted and principle.wanted != wanted:
                continue
            distance = sum((a - b) ** 2 for a, b in zip(model_state, principle.site, strict=True))
            if distance < smallest:
                index_of_nearest, smallest = index, distance
        return index_of_nearest

    def _applies(self, region: int, wanted: int) -> bool:
        return region >= 0 and self.principles[region].wanted == wanted

    # ---- select ---------------------------------------------------------------------------------------------------

    def eligible(self, model_state: Sequence[float], wanted: int) -> set[int]:
        """The actions that select may choose from."""
        region = self.nearest(model_state, wanted)
        if not self._applies(region, wanted):
            return {wanted}
        principle = self.principles[region]
        if principle.is_open and self.rule == "fallback":
            return principle.candidates - principle.tested
        return set(principle.candidates)

    def select(self, model_state: Sequence[float], wanted: int, order: Sequence[int]) -> int:
        """The first eligible action of the order."""
        eligible = self.eligible(model_state, wanted)
        return next(action for action in order if action in eligible)

    # ---- update ---------------------------------------------------------------------------------------------------

    def update(
        self, model_state: Sequence[float], wanted: int, executed: int, score: float, thre: float, sup: float
    ) -> None:
        """Learn from score = Eval(s_t, executed, s_t+1)."""
        region = self.nearest(model_state, wanted)
        if not self._applies(region, wanted):
            self._add_point(model_state, wanted, executed, score, thre)
            return
        principle = self.principles[region]
        principle.visits += 1
        principle.tested.add(executed)
        if self.rule == "text":
            is_split = self._learn_text(principle, executed, score, thre, sup)
        elif self.rule == "fallback":
            is_split = self._learn_fallback(principle, executed, score, thre, sup)
        else:
            is_split = self._learn_printed(principle, executed, score, thre, sup)
        if is_split:  # a closed principle failed
            if self.rule == "revised":
                candidates = self.all_actions - {executed}
            elif self.rule == "fallback":
                candidates = set(self.all_actions)
            else:
                candidates = self.all_actions - {wanted}
            self._append(model_state, wanted, executed, score, candidates)

    def _add_point(self, model_state: Sequence[float], wanted: int, executed: int, score: float, thre: float) -> None:
        if score >= thre:
            if self.rule == "text":
                return  # "good actions are ignored"
            candidates = {wanted}
        elif self.rule == "fallback":
            candidates = set(self.all_actions)
        else:
            candidates = self.all_actions - {wanted}
        self._append(model_state, wanted, executed, score, candidates)

    def _append(
        self, model_state: Sequence[float], wanted: int, executed: int, score: float, candidates: set[int]
    ) -> None:
        site = tuple(float(x) for x in model_state)
        self.principles.append(Principle(site, wanted, candidates, {executed}, score, best_action=executed))

    # Each _learn_* changes the principle and returns True if its region must be split.

    def _learn_printed(self, p: Principle, executed: int, score: float, thre: float, sup: float) -> bool:
        if score == sup and p.is_open:
            p.candidates = {executed}
            p.best = score
        elif score > p.best and p.is_open:
            self._drop_other_tested(p, executed)
            p.best = score
        elif score == p.best and score >= thre and p.is_open:
            self._drop_other_tested(p, executed)
        elif score == p.best and score < thre and p.is_open:
            p.candidates.discard(executed)
        elif score < p.best and score < thre:
            if not p.is_open:
                return True
            p.candidates.discard(executed)
        elif self.rule == "revised" and not p.is_open and score > p.best:
            p.best = score
        return False

    def _learn_text(self, p: Principle, executed: int, score: float, thre: float, sup: float) -> bool:
        if not p.is_open:
            return score < p.best and score < thre
        if score == sup:
            p.candidates = {executed}
            p.best = score
        elif score >= p.best and score >= thre:
            self._drop_other_tested(p, executed)
            p.best = score
        else:
            p.candidates.discard(executed)
        return False

    def _learn_fallback(self, p: Principle, executed: int, score: float, thre: float, sup: float) -> bool:
        if not p.is_open:
            return score < p.best and score < thre
        best_before = p.best
        if score > p.best:
            p.best = score
            p.best_action = executed
        if score == sup or (score >= thre and score > best_before):
            p.candidates = {executed}
            p.best = score
            p.best_action = executed
        else:
            p.candidates = (self.all_actions - p.tested) | {p.best_action}
        return False

    @staticmethod
    def _drop_other_tested(p: Principle, executed: int) -> None:
        left = p.candidates - (p.tested - {executed})
        if left:  # it can only be empty when the executed action was not a candidate
            p.candidates = left
