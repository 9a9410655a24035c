"""Four readings of Algorithm 2: how a principle reacts to a score, and what a new principle may try.

- printed:  the pseudo-code of the paper.
- text:     the paper's prose. Good actions create no principle, a region covers all states where the agent wants the
            region's action, and a candidate stays only if it is at least as good as the best and the threshold.
- revised:  printed, but a failing closed principle tries everything except the action that just failed, and its best
            score may rise. (As printed, a principle over two actions is closed at birth, and when it fails it creates
            another one with the same failing action.)
- fallback: every action is judged once, the agent's own included, and the best one is kept.
"""

from nappingrl._build import kernel
from nappingrl.methods.napping.action_set import keep_only, size
from nappingrl.methods.napping.store import Principle

RULES = {
    "printed": "the paper's pseudo-code",
    "text": "the paper's prose: good actions create no principle, and a region covers all states with its action",
    "revised": "printed, but a principle that fails tries everything except the action that just failed",
    "fallback": "every action is judged once, the agent's own included, and the best one is kept",
}
PRINTED, TEXT, REVISED, FALLBACK = range(4)

# The readings are inlined: every call would count references to every array of the principle.


@kernel(allocates=False, inline="always")
def react(rule: int, p: Principle, a: int, score: float, thre: float, sup: float) -> bool:
    """Learn from the score of an executed action; True asks for a new principle at the current model state."""
    is_open = size(p.candidates) > 1
    if rule == TEXT:
        return _text(p, is_open, a, score, thre, sup)
    elif rule == FALLBACK:
        return _fallback(p, is_open, a, score, thre, sup)
    return _printed(p, is_open, a, score, thre, sup, rule == REVISED)


@kernel(allocates=False)
def set_candidates(rule: int, p: Principle, a_agent: int, a: int, is_good: bool, is_split: bool) -> None:
    """What a new principle may try: the agent's action if the executed one was good, otherwise the other actions."""
    if is_good:
        keep_only(p.candidates, a_agent)
        return
    p.candidates[:] = True
    if rule == REVISED and is_split:
        p.candidates[a] = False
    elif rule != FALLBACK:
        p.candidates[a_agent] = False


@kernel(allocates=False, inline="always")
def _printed(p: Principle, is_open: bool, a: int, score: float, thre: float, sup: float, is_revised: bool) -> bool:
    """The cases of Algorithm 2 in the paper's order."""
    best = p.best[0]
    if score == sup and is_open:
        keep_only(p.candidates, a)
        p.best[0] = score
    elif score > best and is_open:
        _drop_other_tested(p, a)
        p.best[0] = score
    elif score == best and score >= thre and is_open:
        _drop_other_tested(p, a)
    elif score == best and is_open:
        p.candidates[a] = False
    elif score < best and score < thre:
        if not is_open:
            return True
        p.candidates[a] = False
    elif score > best and is_revised:
        p.best[0] = score
    return False


@kernel(allocates=False, inline="always")
def _text(p: Principle, is_open: bool, a: int, score: float, thre: float, sup: float) -> bool:
    """The paper's prose: a candidate stays if it is at least as good as the best and the threshold."""
    best = p.best[0]
    if not is_open:
        return score < best and score < thre
    if score == sup:
        keep_only(p.candidates, a)
        p.best[0] = score
    elif score >= best and score >= thre:
        _drop_other_tested(p, a)
        p.best[0] = score
    else:
        p.candidates[a] = False
    return False


@kernel(allocates=False, inline="always")
def _fallback(p: Principle, is_open: bool, a: int, score: float, thre: float, sup: float) -> bool:
    """Judge each action once; close on a new best that does not fail, otherwise on the best of all."""
    best = p.best[0]
    if not is_open:
        return score < best and score < thre
    if score > best or score == sup:
        p.best[0] = score
        p.best_action[0] = a
    if score == sup or (score >= thre and score > best):
        keep_only(p.candidates, a)
    else:
        for other in range(p.candidates.shape[0]):
            p.candidates[other] = not p.tested[other]
        p.candidates[p.best_action[0]] = True
    return False


@kernel(allocates=False)
def _drop_other_tested(p: Principle, a: int) -> None:
    """Drop the other tested actions, unless none would remain (the executed action may not be a candidate)."""
    n_remaining = 0
    for other in range(p.candidates.shape[0]):
        n_remaining += p.candidates[other] and (other == a or not p.tested[other])
    if n_remaining == 0:
        return
    for other in range(p.candidates.shape[0]):
        if other != a and p.tested[other]:
            p.candidates[other] = False
