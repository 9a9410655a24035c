"""Find the grounding under which the reference explains what has happened since the alarm, or say why there is none."""

from dataclasses import dataclass, replace

import numpy as np

from nappingrl.methods.reground.candidates import Candidates
from nappingrl.methods.reground.judge import MAX_REACH, Judge, price, t_statistic
from nappingrl.methods.reground.maps import ContinuousMap, DiscreteMap, Grounding
from nappingrl.types import Floats, Rows

MAX_CHANGES = 3
N_TRIED = 4
"""Candidates that must pass the gates, one after the other."""
MIN_GAIN = 10.0
"""Nats by which a candidate must be shorter than what it replaces."""
MIN_LEAD = 6.0
"""Nats by which it must be shorter than nuisances such as wind, or a changed mass."""
MIN_CORRECTION = 3.0
"""Nats by which other numbers must be better than those in force."""
MIN_T = 3.5
MIN_SHARE = 0.5
"""Share of what is unusual that exchanged or reversed entries must explain."""
CLEAR_LEAD, CLEAR_T = 100.0, 5.0
"""Lead over nuisances, and its t statistic, beyond which that share does not matter: the reference may be poor."""
MIN_PARAMETER_SHARE = 0.8
"""The same for shifts, scales and gains, which resemble changed masses and forces."""
MIN_PARAMETER_STEPS = 40
"""Steps from which gains and offsets of actions are estimated: few steps show little of their range."""
SETTLED_SHARE = 0.9
"""Share above which an estimated number needs no contest with nuisances, which estimate many."""
MIN_STARTS = 3
MIN_STEPS = 4
"""Steps with an action by which it is known."""
N_PROBES = 4
MIN_TELLING = 8
"""Steps that must tell two groundings apart where most do not."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a search found."""

    grounding: Grounding
    why_not: str = ""
    """Why it is the identity, in words; empty: it is not, or nothing is unusual."""
    probe: int | None = None
    """The action to execute for a few steps, because two explanations differ in it."""
    tentative: Grounding | None = None
    """What to try for a few steps, because nothing but a changed mass or force speaks against it yet."""


class Search:
    """Explains the evidence, one change at a time, from the identity."""

    def __init__(self, judge: Judge) -> None:
        self._judge, self._candidates = judge, Candidates(judge)
        self._why_not = ""
        self._rivals: list[Grounding] = []
        self._tentative: Grounding | None = None

    def run(self, current: Grounding) -> Finding:
        """The grounding that the evidence speaks for; the current one where it does not speak clearly."""
        judge, identity = self._judge, self._judge.identity
        found = identity
        for _ in range(MAX_CHANGES):
            better = self._better_than(found)
            if better is None:
                break
            found = better
        if found.is_identity and current.is_identity:
            return Finding(identity, self._why_not, self._probe(found), self._tentative)
        lengths = judge.lengths([found, current])
        margin = MIN_CORRECTION if found.signature == current.signature else MIN_LEAD
        if not current.is_identity and lengths[1] <= lengths[0] + margin and self._still_holds(current):
            found = current
        if found.is_identity:
            return Finding(identity, self._why_not or "the steps since then do not fit it", self._probe(found))
        return Finding(self._with_instead(found), "", self._probe(found))

    def _still_holds(self, grounding: Grounding) -> bool:
        steps = self._judge.steps([self._judge.identity, grounding])
        return float((steps[0] - steps[1]).sum()) > -MIN_LEAD

    # ------------------------------------------------------------------------------------------------- gates

    def _better_than(self, old: Grounding) -> Grounding | None:
        judge = self._judge
        candidates = self._candidates.near(old, with_numbers=self._is_unusual(old))
        lengths = judge.lengths([old, *candidates[:N_TRIED]])
        self._rivals = []
        if len(candidates) and lengths[0] - lengths[1] > MIN_GAIN:
            limit = lengths[1] + MIN_LEAD
            self._rivals = [g for g, length in zip(candidates, lengths[1:], strict=False) if length < limit]
        for candidate, length in zip(candidates, lengths[1:].tolist(), strict=False):
            if lengths[0] - length < MIN_GAIN:
                if self._is_unusual(old) and not self._why_not:
                    self._why_not = "no map of actions or sensors explains the change"
                break
            self._why_not = self._objection(old, candidate)
            if not self._why_not:
                return candidate
        return None

    def _is_unusual(self, grounding: Grounding) -> bool:
        """Whether steps or starts fit worse than they did before the change."""
        judge = self._judge
        steps, starts = judge.steps([grounding])[0], judge.starts([grounding])[0]
        by_starts = len(starts) >= MIN_STARTS and starts.mean() > 2 * judge.usual_start
        return bool(by_starts or steps.mean() > judge.reference.levels.high)

    def _objection(self, old: Grounding, new: Grounding) -> str:
        """Why the new grounding is not believed; empty: it is."""
        judge = self._judge
        (before, after), (start_before, start_after) = judge.steps([old, new]), judge.starts([old, new])
        by_steps = t_statistic(before - after) > MIN_T or _is_unanimous(before - after)
        gain_of_starts = start_before - start_after
        by_starts = (
            len(gain_of_starts) >= MIN_STARTS and bool((gain_of_starts > 0).all()) and gain_of_starts.sum() > MIN_GAIN
        )
        by_starts = by_starts and t_statistic(before - after) > -2.0 and not new.sensors.is_identity
        if not (by_steps or by_starts):
            return "the steps so far do not tell"
        is_estimated = _n_parameters(new) > _n_parameters(old)
        share = self._share(before, after, start_before, start_after, new) if is_estimated else 0.0
        if is_estimated and share < MIN_PARAMETER_SHARE:
            return "no map of actions or sensors explains enough of the change"
        if _n_action_parameters(new) > _n_action_parameters(old) and len(before) < MIN_PARAMETER_STEPS:
            return "the steps so far do not tell"
        is_settled = by_starts or share > SETTLED_SHARE
        objection = "" if is_settled else self._objection_by_nuisances(old, new)
        if objection and self._tentative is None and old.is_identity and not is_estimated:
            self._tentative = self._with_instead(new)
        return objection

    def _share(
        self, before: Floats, after: Floats, starts_before: Floats, starts_after: Floats, new: Grounding
    ) -> float:
        """Share of the unusual cost that the new grounding explains, where the reference knows its way."""
        judge = self._judge
        is_near = judge.reference.reach(new.sensors.original(judge.evidence.states)) <= MAX_REACH
        if is_near.sum() < 10:
            is_near[:] = True
        unusual = float((before[is_near] - judge.reference.levels.usual).sum())
        unusual += float((starts_before - judge.usual_start).sum())
        gain = float((before - after)[is_near].sum() + (starts_before - starts_after).sum())
        return gain / max(unusual, MIN_GAIN)

    def _objection_by_nuisances(self, old: Grounding, new: Grounding) -> str:
        """Whether wind, masses or forces explain the evidence as well without the new grounding."""
        judge = self._judge
        (before, price_before), (after, price_after) = judge.with_nuisance(old), judge.with_nuisance(new)
        starts = judge.starts([old, new]).sum(axis=1)
        gain = before.sum() + starts[0] - after.sum() - starts[1]
        lead = gain + price_before - price_after + price(old) - price(new)
        if lead < MIN_LEAD:
            return "a changed mass, force or wind explains the change as well"
        unusual = before.sum() + price_before - judge.reference.levels.usual * len(before)
        is_clear = lead > CLEAR_LEAD and t_statistic(before - after) > CLEAR_T
        if not is_clear and gain + price_before - price_after < MIN_SHARE * unusual:
            return "no map of actions or sensors explains enough of the change"
        return ""

    # ------------------------------------------------------------------------------------------------- actions

    def _counts(self) -> Rows:
        actions = self._judge.evidence.actions[0]
        return np.asarray(actions.sum(axis=0), np.int64)

    def _probe(self, found: Grounding) -> int | None:
        """The action whose effect decides between the best explanations, if it was hardly executed."""
        if isinstance(found.actions, ContinuousMap):
            return None
        counts = self._counts()
        others = [g.actions.acts_as for g in [found, *self._rivals] if isinstance(g.actions, DiscreteMap)]
        differ = np.flatnonzero((np.array(others) != others[0]).any(axis=0))
        differ = differ[counts[differ] < N_PROBES]
        if not len(differ) and found.is_identity and self._rivals:
            is_action = any(not g.actions.is_identity for g in self._rivals)
            differ = np.flatnonzero(counts < N_PROBES) if is_action else differ
        return int(differ[counts[differ].argmin()]) if len(differ) else None

    def _with_instead(self, grounding: Grounding) -> Grounding:
        """With the nearest executed action instead of a wanted one that was lost."""
        actions = grounding.actions
        if isinstance(actions, ContinuousMap) or actions.is_permutation:
            return grounding
        judge, instead = self._judge, actions.instead.copy()
        states = grounding.sensors.original(judge.evidence.states)
        eye = np.eye(len(instead))
        ends = np.array([judge.reference.predict(states, np.tile(one, (len(states), 1))) for one in eye])
        ends = ends[:, :, judge.reference.is_modelled] / judge.reference.usual[judge.reference.is_modelled]
        for wanted in set(range(len(instead))) - set(actions.acts_as.tolist()):
            distances = np.log1p((ends[actions.acts_as] - ends[wanted]) ** 2).sum(axis=(1, 2))
            instead[wanted] = distances.argmin()
        return replace(grounding, actions=replace(actions, instead=instead))


def _is_unanimous(gains: Floats) -> bool:
    """Whether nearly all steps that tell anything, perhaps few, tell the same."""
    telling = gains[np.abs(gains) > 0.5]
    return len(telling) >= MIN_TELLING and float((telling > 0).mean()) >= 0.9 and float(gains.sum()) > 3 * MIN_GAIN


def _n_action_parameters(grounding: Grounding) -> int:
    return grounding.actions.n_parameters if isinstance(grounding.actions, ContinuousMap) else 0


def _n_parameters(grounding: Grounding) -> int:
    return grounding.sensors.n_parameters + _n_action_parameters(grounding)
