"""The four rules: the paper's worked example, and every case by hand."""

import pytest

from methods.napping.pseudo_code import PseudoCode
from methods.napping.trial import FAIL, GOOD, Trial
from nappingrl.methods.napping.rules import RULES


def test_rule_names() -> None:
    assert tuple(RULES) == ("printed", "text", "revised", "fallback")


def test_worked_example_of_the_paper() -> None:
    """Rule text. The paper's actions 1, 2, 3 are 0, 1, 2 here."""
    trial = Trial("text", 3)

    # time t: the agent wants 1, which fails; the principle opens with {2, 3} over all of action 1's space
    assert trial.select(0.0, 0) == (0, -1)
    trial.update(0.0, 0, 0, FAIL)
    assert trial.known() == [(0.0, 0, {1, 2}, {0}, FAIL, 1)]
    for far in (-1000.0, 0.0, 1000.0):
        assert trial.select(far, 0)[1] == 0
        assert trial.select(far, 1) == (1, -1)  # where the agent wants another action there is no region
        assert trial.select(far, 2) == (2, -1)

    # time t+1: action 3 is drawn in that region and reaches the supremum: closed on 3
    assert trial.select(5.0, 0, order=[2, 1, 0]) == (2, 0)
    trial.update(5.0, 0, 2, 1.0)
    assert trial.known() == [(0.0, 0, {2}, {0, 2}, 1.0, 2)]
    assert trial.principles.n_open.tolist() == [0]
    assert trial.select(-3.0, 0) == (2, 0)

    # time t+2: in the same region action 3 fails: the region is split, the new principle opens, the old one stays
    assert trial.select(8.0, 0) == (2, 0)
    trial.update(8.0, 0, 2, FAIL)
    assert trial.known() == [(0.0, 0, {2}, {0, 2}, 1.0, 3), (8.0, 0, {1, 2}, {2}, FAIL, 1)]
    assert trial.principles.n_open.tolist() == [1]
    assert trial.select(3.5, 0) == (2, 0)
    assert trial.select(4.0, 0) == (2, 0)  # halfway: the older one
    assert trial.select(4.5, 0, order=[0, 1, 2]) == (1, 1)
    assert trial.select(8.0, 1) == (1, -1)


def test_text_ignores_good_actions() -> None:
    trial = Trial("text", 3)
    trial.update(0.0, 0, 0, 0.0)  # exactly thre
    trial.update(1.0, 1, 1, 1.0)
    assert trial.known() == []
    trial.update(2.0, 1, 1, FAIL)
    trial.update(3.0, 0, 0, GOOD)  # action 1 has a site, action 0 has none
    assert trial.known() == [(2.0, 1, {0, 2}, {1}, FAIL, 1)]


# rule, number of actions, the steps (at, wanted, executed, score), the principles after them. thre = 0, sup = 1.
Steps = list[tuple[float, int, int, float]]
Known = list[tuple[float, int, set[int], set[int], float, int]]
OPEN: Steps = [(0, 0, 0, FAIL)]
BY_HAND: dict[str, tuple[str, int, Steps, Known]] = {
    "printed: good at creation": ("printed", 4, [(0, 2, 2, 0.0)], [(0, 2, {2}, {2}, 0.0, 1)]),
    "printed: fails at creation": ("printed", 4, OPEN, [(0, 0, {1, 2, 3}, {0}, FAIL, 1)]),
    "printed: closed at birth with two actions": ("printed", 2, OPEN, [(0, 0, {1}, {0}, FAIL, 1)]),
    "printed: supremum": ("printed", 4, [*OPEN, (0, 0, 2, 1.0)], [(0, 0, {2}, {0, 2}, 1.0, 2)]),
    "printed: supremum by an action outside the candidates": (
        "printed", 4, [*OPEN, (0, 0, 0, 1.0)], [(0, 0, {0}, {0}, 1.0, 2)],
    ),
    "printed: better, other tested go": (
        "printed", 4, [*OPEN, (0, 0, 1, -0.5), (0, 0, 2, GOOD)], [(0, 0, {2, 3}, {0, 1, 2}, GOOD, 3)],
    ),
    "printed: better though failing": ("printed", 4, [*OPEN, (0, 0, 1, -0.5)], [(0, 0, {1, 2, 3}, {0, 1}, -0.5, 2)]),
    "printed: equal and good, other tested go": (
        "printed", 4, [*OPEN, (0, 0, 1, GOOD), (0, 0, 2, GOOD)], [(0, 0, {2, 3}, {0, 1, 2}, GOOD, 3)],
    ),
    "printed: equal and failing goes": ("printed", 4, [*OPEN, (0, 0, 1, FAIL)], [(0, 0, {2, 3}, {0, 1}, FAIL, 2)]),
    "printed: worse and failing goes": ("printed", 4, [*OPEN, (0, 0, 1, -2.0)], [(0, 0, {2, 3}, {0, 1}, FAIL, 2)]),
    "printed: worse but good changes nothing": (
        "printed", 4, [*OPEN, (0, 0, 1, GOOD), (0, 0, 2, 0.25)], [(0, 0, {1, 2, 3}, {0, 1, 2}, GOOD, 3)],
    ),
    "printed: closed by elimination": (
        "printed", 3, [*OPEN, (0, 0, 1, -0.5), (0, 0, 2, -0.25), (0, 0, 0, GOOD)],
        # step 3 leaves {2}: closed, so step 4 changes the tested actions only
        [(0, 0, {2}, {0, 1, 2}, -0.25, 4)],
    ),
    "printed: all candidates tested, then another action is better": (
        "printed", 3, [*OPEN, (0, 0, 1, GOOD), (0, 0, 2, 0.25), (0, 0, 0, 0.75)],
        # step 3 changes nothing, so {1, 2} are both tested; step 4 by 0 would remove both: they stay
        [(0, 0, {1, 2}, {0, 1, 2}, 0.75, 4)],
    ),
    "printed: closed ignores better, equal and supremum": (
        "printed", 2, [*OPEN, (0, 0, 1, FAIL), (0, 0, 1, GOOD), (0, 0, 1, 1.0)], [(0, 0, {1}, {0, 1}, FAIL, 4)],
    ),
    "printed: closed fails, creates the same action": (
        "printed", 2, [*OPEN, (3, 0, 1, -2.0)], [(0, 0, {1}, {0, 1}, FAIL, 2), (3, 0, {1}, {1}, -2.0, 1)],
    ),
    "printed: closed, worse but good": (
        "printed", 2, [(0, 0, 0, GOOD), (3, 0, 0, 0.0)], [(0, 0, {0}, {0}, GOOD, 2)],
    ),
    "printed: another wanted action at the same point is never found": (
        "printed", 3, [(0, 0, 0, FAIL), (0, 1, 1, GOOD), (0, 1, 1, FAIL)],
        [(0, 0, {1, 2}, {0}, FAIL, 1), (0, 1, {1}, {1}, GOOD, 1), (0, 1, {0, 2}, {1}, FAIL, 1)],
    ),
    "text: another wanted action at the same point is found": (
        "text", 3, [(0, 0, 0, FAIL), (0, 1, 1, FAIL), (0, 1, 0, GOOD)],
        [(0, 0, {1, 2}, {0}, FAIL, 1), (0, 1, {0, 2}, {0, 1}, GOOD, 2)],
    ),
    "text: better but failing goes, best stays": (
        "text", 4, [*OPEN, (0, 0, 1, -0.5)], [(0, 0, {2, 3}, {0, 1}, FAIL, 2)],
    ),
    "text: good but below best goes": (
        "text", 4, [*OPEN, (0, 0, 1, GOOD), (0, 0, 2, 0.25)], [(0, 0, {1, 3}, {0, 1, 2}, GOOD, 3)],
    ),
    "text: equal and good, other tested go": (
        "text", 4, [*OPEN, (0, 0, 1, GOOD), (0, 0, 2, GOOD)], [(0, 0, {2, 3}, {0, 1, 2}, GOOD, 3)],
    ),
    "text: closed fails, A without the wanted": (
        "text", 3, [*OPEN, (0, 0, 1, 1.0), (3, 0, 1, FAIL)],
        [(0, 0, {1}, {0, 1}, 1.0, 3), (3, 0, {1, 2}, {1}, FAIL, 1)],
    ),
    "text: closed, as bad as ever": ("text", 2, [*OPEN, (3, 0, 1, FAIL)], [(0, 0, {1}, {0, 1}, FAIL, 2)]),
    "revised: closed fails, A without the executed": (
        "revised", 2, [*OPEN, (3, 0, 1, -2.0)], [(0, 0, {1}, {0, 1}, FAIL, 2), (3, 0, {0}, {1}, -2.0, 1)],
    ),
    "revised: best of a closed one rises, then it can fail": (
        "revised", 2, [*OPEN, (3, 0, 1, GOOD), (4, 0, 1, FAIL)],
        [(0, 0, {1}, {0, 1}, GOOD, 3), (4, 0, {0}, {1}, FAIL, 1)],
    ),
    "revised: best of a closed one rises to the supremum": (
        "revised", 2, [*OPEN, (3, 0, 1, 1.0)], [(0, 0, {1}, {0, 1}, 1.0, 2)],
    ),
    "revised: creation as printed, whatever was executed": (
        "revised", 3, [(0, 0, 1, FAIL)], [(0, 0, {1, 2}, {1}, FAIL, 1)],
    ),
    "fallback: good at creation": ("fallback", 3, [(0, 1, 1, 0.0)], [(0, 1, {1}, {1}, 0.0, 1)]),
    "fallback: fails at creation": ("fallback", 3, OPEN, [(0, 0, {0, 1, 2}, {0}, FAIL, 1)]),
    "fallback: good enough closes": ("fallback", 3, [*OPEN, (0, 0, 2, 0.0)], [(0, 0, {2}, {0, 2}, 0.0, 2)]),
    "fallback: supremum closes": ("fallback", 3, [*OPEN, (0, 0, 2, 1.0)], [(0, 0, {2}, {0, 2}, 1.0, 2)]),
    "fallback: better but failing leads": (
        "fallback", 4, [*OPEN, (0, 0, 2, -0.5)], [(0, 0, {1, 2, 3}, {0, 2}, -0.5, 2)],
    ),
    "fallback: equal does not lead": ("fallback", 4, [*OPEN, (0, 0, 2, FAIL)], [(0, 0, {0, 1, 3}, {0, 2}, FAIL, 2)]),
    "fallback: all failed, the best one stays": (
        "fallback", 3, [*OPEN, (0, 0, 2, -0.5), (0, 0, 1, -2.0)], [(0, 0, {2}, {0, 1, 2}, -0.5, 3)],
    ),
    "fallback: all failed, back to the agent's own action": (
        "fallback", 2, [*OPEN, (0, 0, 1, -2.0)], [(0, 0, {0}, {0, 1}, FAIL, 2)],
    ),
    "fallback: closed fails, everything again": (
        "fallback", 2, [*OPEN, (0, 0, 1, GOOD), (3, 0, 1, FAIL)],
        [(0, 0, {1}, {0, 1}, GOOD, 3), (3, 0, {0, 1}, {1}, FAIL, 1)],
    ),
    "fallback: best of a closed one does not rise": (
        "fallback", 2, [*OPEN, (0, 0, 1, GOOD), (3, 0, 1, 1.0)], [(0, 0, {1}, {0, 1}, GOOD, 3)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BY_HAND.values(), ids=BY_HAND.keys())
def test_case_by_hand(case: tuple[str, int, Steps, Known]) -> None:
    rule, n_actions, steps, known = case
    trial = Trial(rule, n_actions)
    reference = PseudoCode(n_actions, rule)
    for at, wanted, executed, score in steps:
        trial.update(at, wanted, executed, score)
        reference.update((at,), wanted, executed, score, thre=0.0, sup=1.0)
    judged = [(p.site[0], p.wanted, p.candidates, p.tested, p.best, p.visits) for p in reference.principles]
    assert judged == known  # the pseudo-code gives the same values
    assert trial.known() == known
    assert trial.principles.n_open.tolist() == [sum(len(candidates) > 1 for _, _, candidates, *_ in known)]
