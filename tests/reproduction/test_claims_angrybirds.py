"""The claims on Angry Birds: judged on pass rates that are written down here."""

import pytest

from nappingrl.report.runs import Run
from nappingrl.reproduction.claims import CLAIMS
from nappingrl.reproduction.columns import OURS
from nappingrl.reproduction.judging import FAILS, HOLDS, NOT_JUDGED, UNDECIDED, Finding, judge
from report.rows import make_run, steps

KINDS = ("bone", "circumcircle", "bird-likes-pig")
EACH = 20
NOVELTIES = [kind for kind in KINDS for _ in range(EACH)]
N = len(NOVELTIES)


def birds(
    agent: str, method: str, before: int, after: int, ends: list[int], early: int = 0, novelties: list[str] = NOVELTIES
) -> Run:
    """So many are passed of twenty before the novelty, from episodes 0 and 5 on, and of the last ten of each trial."""
    start = steps((1, before), (0, 20 - before), (1, after), (0, 5 - after), (1, early), (0, 25 - early))
    returns = [start + steps((1, end), (0, 10 - end)) for end in ends]
    return make_run("angrybirds", agent, method, returns, pre=20, novelties=novelties)


def each(*ends: int) -> list[int]:
    """How many of the last ten are passed in the trials of each novelty."""
    return [end for end in ends for _ in range(EACH)]


def finding(text: str, *runs: Run) -> Finding:
    (claim,) = [claim for claim in CLAIMS if text in claim.text]
    found = {finding.column: finding for _, finding in judge([claim], list(runs))}
    return found[OURS] if claim.by_column else found[""]


def napping(dqn: list[int], rel: list[int], before: int = 20, after: int = 1) -> list[Run]:
    return [birds("dqn", "napping", before, after, dqn), birds("dqn-rel", "napping", before, after, rel)]


@pytest.mark.parametrize(
    ("text", "before", "after", "end", "expected"),
    [
        ("just above .9 before", 20, 1, 8, FAILS),
        ("just above .9 before", 18, 1, 8, FAILS),
        ("below .4 right after", 20, 1, 8, HOLDS),
        ("below .4 right after", 20, 2, 8, FAILS),
        ("end at about .8", 20, 1, 8, HOLDS),
        ("end at about .8", 20, 1, 6, FAILS),
        ("end at about .8", 20, 1, 10, FAILS),
    ],
)
def test_levels_of_both_agents(text: str, before: int, after: int, end: int, expected: str) -> None:
    runs = napping([end] * N, [8] * N, before, after)
    assert finding(text, *runs).status == expected
    assert finding(text, runs[0]).status == NOT_JUDGED


def test_just_above_is_a_range() -> None:
    """Half of the trials pass 18 of twenty before the novelty, half 19."""
    returns = [steps((1, 18 + i % 2), (0, 22 - i % 2), (1, 20)) for i in range(N)]
    runs = [make_run("angrybirds", a, "napping", returns, pre=20, novelties=NOVELTIES) for a in ("dqn", "dqn-rel")]
    assert finding("just above .9 before", *runs).status == HOLDS


def test_few_equal_trials_decide_nothing() -> None:
    runs = [
        make_run("angrybirds", a, "napping", [steps((1, 20), (0, 32), (1, 8))] * 2, pre=20, novelties=["bone"] * 2)
        for a in ("dqn", "dqn-rel")
    ]
    found = finding("end at about .8", *runs)
    assert (found.status, found.trials_needed) == (UNDECIDED, 20)


def test_back_at_the_old_level_but_for_bone() -> None:
    runs = napping(each(3, 10, 10), each(4, 10, 10))
    assert finding("all novelties but Bone", *runs).status == HOLDS
    found = finding("does not get back to its old level on Bone", *runs)
    assert found.status == HOLDS
    assert "dqn end minus before -0.70" in found.ours
    recovered = napping(each(10, 10, 10), each(10, 8, 10))
    assert finding("all novelties but Bone", *recovered).status == FAILS
    assert finding("does not get back to its old level on Bone", *recovered).status == FAILS


def test_the_relational_agent_must_lead_on_both_novelties_and_trail_elsewhere() -> None:
    text = "DQN-Rel is slightly ahead"
    ahead = napping(each(5, 5, 5), each(4, 9, 10))
    assert finding(text, *ahead).status == HOLDS
    assert finding("DQN-Rel is slightly worse elsewhere", *ahead).status == HOLDS
    assert finding(text, *napping(each(5, 5, 5), each(9, 9, 4))).status == FAILS


def test_strongest_and_lowest() -> None:
    scripted = [birds("datalab", "frozen", 6, 0, each(1, 1, 1)), birds("naive", "frozen", 20, 0, each(5, 6, 4))]
    runs = [*scripted, *napping(each(9, 9, 9), each(8, 9, 9))]
    assert finding("NAPPING is the strongest of all", *runs).status == HOLDS
    assert finding("DataLab is the lowest of all", *runs).status == HOLDS
    weaker = [*scripted, *napping(each(2, 2, 3), each(8, 9, 9))]
    assert finding("NAPPING is the strongest of all", *weaker).status == FAILS


def test_naive_adaptation() -> None:
    naive = birds("naive-adaptation", "frozen", 16, 0, each(9, 0, 9), early=4)
    runs = [naive, *napping([10] * N, [10] * N)]
    assert finding("ends lower than NAPPING", *runs).status == HOLDS
    assert finding("ends lower than NAPPING", naive, *napping([10] * N, each(9, 0, 9))).status == FAILS
    fast = finding("adapts fast", birds("naive-adaptation", "frozen", 16, 0, each(7, 7, 6), early=3))
    assert (fast.status, fast.ours.startswith("last ten minus episodes 5-9 0.07 (")) == (HOLDS, True)
    assert finding("adapts fast", birds("naive-adaptation", "frozen", 16, 0, [7] * N, early=2)).status == FAILS
    assert finding("crashes on Circumcircle", naive).status == HOLDS
    assert finding("fails Floating Wood", naive).status == NOT_JUDGED


def test_datalab() -> None:
    weak = birds("datalab", "frozen", 6, 0, [1] * N)
    assert finding("DataLab passes about .3", weak).status == HOLDS
    assert finding("DataLab passes below .2", weak).status == HOLDS
    strong = birds("datalab", "frozen", 20, 3, [10] * N)
    assert finding("DataLab passes about .3", strong).status == FAILS
    assert finding("DataLab passes below .2", strong).status == FAILS  # 13 of 40


def test_what_cannot_be_judged_says_why() -> None:
    found = finding("OpenMIND", birds("replanner", "frozen", 20, 0, [9] * N))
    assert found.status == NOT_JUDGED
    assert "closed source" in found.ours
    assert "our replanner 1.00 before, 0.90 at the end" in found.ours
    hydra = finding("HYDRA drops more", birds("hydra", "frozen", 18, 0, [4] * N))
    assert hydra.ours.endswith("our hydra 0.90 before, 0.40 at the end")


def test_pig_colour_is_harmless_where_the_frozen_agents_stay_at_their_level() -> None:
    rel, same, worse = (
        birds(agent, "frozen", 18, 5, [end] * EACH, novelties=["pig-color"] * EACH)
        for agent, end in (("dqn-rel", 9), ("dqn", 9), ("dqn", 2))
    )
    assert finding("Pig Color is harmless", same, rel).status == HOLDS
    assert finding("Pig Color is harmless", worse, rel).status == FAILS
    assert finding("Pig Color is harmless", birds("dqn", "frozen", 18, 5, [9] * N), rel).status == NOT_JUDGED
