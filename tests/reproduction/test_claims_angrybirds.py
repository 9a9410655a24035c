"""The claims on Angry Birds: judged on pass rates that are written down here."""

import pytest

from nappingrl.report.runs import Run
from nappingrl.reproduction.claims import CLAIMS
from nappingrl.reproduction.judging import FAILS, HOLDS, NOT_RUN, judge
from report.rows import make_run, steps

NOVELTIES = ["bone", "bone", "circumcircle", "circumcircle", "bird-likes-pig", "bird-likes-pig"]
N = len(NOVELTIES)


def birds(agent: str, method: str, before: int, after: int, ends: list[int], early: int = 0) -> Run:
    """So many are passed of ten before the novelty, from episodes 0 and 5 on, and of the last ten of each trial."""
    start = steps((1, before), (0, 10 - before), (1, after), (0, 5 - after), (1, early), (0, 25 - early))
    returns = [start + steps((1, end), (0, 10 - end)) for end in ends]
    return make_run("angrybirds", agent, method, returns, pre=10, novelties=NOVELTIES)


def finding(text: str, *runs: Run) -> tuple[str, str]:
    (claim,) = [claim for claim in CLAIMS if text in claim.text]
    ((_, found),) = judge([claim], list(runs))
    return found.status, found.ours


def napping(dqn: list[int], rel: list[int], before: int = 10, after: int = 1) -> list[Run]:
    return [birds("dqn", "napping", before, after, dqn), birds("dqn-rel", "napping", before, after, rel)]


@pytest.mark.parametrize(
    ("text", "before", "after", "end", "expected"),
    [
        ("just above .9 before", 10, 1, 8, HOLDS),
        ("just above .9 before", 9, 1, 8, FAILS),
        ("below .4 right after", 10, 1, 8, HOLDS),
        ("below .4 right after", 10, 2, 8, FAILS),
        ("end at about .8", 10, 1, 9, HOLDS),
        ("end at about .8", 10, 1, 6, FAILS),
        ("end at about .8", 10, 1, 10, FAILS),
    ],
)
def test_levels_of_both_agents(text: str, before: int, after: int, end: int, expected: str) -> None:
    runs = napping([end] * N, [8] * N, before, after)
    assert finding(text, *runs)[0] == expected
    assert finding(text, runs[0])[0] == NOT_RUN


def test_back_at_the_old_level_but_for_bone() -> None:
    runs = napping([3, 3, 10, 10, 10, 10], [2, 4, 10, 9, 10, 10])
    got, ours = finding("all novelties but Bone", *runs)
    assert got == HOLDS
    assert ours == "end minus before (DQN, DQN-Rel): circumcircle +0.00, -0.05; bird-likes-pig +0.00, +0.00"
    got, ours = finding("does not get back to its old level on Bone", *runs)
    assert got == HOLDS
    assert "dqn -0.70" in ours
    recovered = napping([10] * N, [10, 10, 8, 9, 10, 10])
    assert finding("all novelties but Bone", *recovered)[0] == FAILS
    assert finding("does not get back to its old level on Bone", *recovered)[0] == FAILS


def test_the_relational_agent_must_lead_on_both_novelties() -> None:
    text = "DQN-Rel is slightly ahead"
    assert finding(text, *napping([5, 5, 5, 5, 6, 5], [0, 0, 9, 9, 10, 9]))[0] == HOLDS
    assert finding(text, *napping([5, 5, 5, 5, 6, 5], [9, 9, 9, 9, 6, 5]))[0] == FAILS


def test_naive_adaptation() -> None:
    naive = birds("naive-adaptation", "frozen", 8, 0, [9, 8, 0, 0, 9, 9], early=4)
    runs = [naive, *napping([10] * N, [10] * N)]
    assert finding("ends lower than NAPPING", *runs)[0] == FAILS  # six trials: the interval reaches 0
    assert finding("ends lower than NAPPING", naive, *napping([10] * N, [10, 10, 4, 4, 10, 10]))[0] == FAILS
    even = birds("naive-adaptation", "frozen", 8, 0, [7, 7, 7, 7, 7, 6], early=3)
    assert finding("ends lower than NAPPING", even, *runs[1:])[0] == HOLDS
    assert finding("adapts fast", even) == (HOLDS, "last ten minus episodes 5-9: 0.08 (0.04 to 0.13)")
    assert finding("adapts fast", birds("naive-adaptation", "frozen", 8, 0, [7] * N, early=2))[0] == FAILS
    assert finding("crashes on Circumcircle", naive)[0] == HOLDS
    assert finding("crashes on Circumcircle", even)[0] == FAILS
    assert finding("fails Floating Wood", naive)[0] == NOT_RUN


def test_datalab() -> None:
    weak = birds("datalab", "frozen", 3, 0, [1] * N)
    assert finding("DataLab passes about .3", weak)[0] == HOLDS
    assert finding("DataLab passes below .2", weak)[0] == HOLDS
    strong = birds("datalab", "frozen", 10, 3, [10] * N)
    assert finding("DataLab passes about .3", strong)[0] == FAILS
    assert finding("DataLab passes below .2", strong)[0] == FAILS  # 13 of 40


def test_what_cannot_be_judged_says_why() -> None:
    got, ours = finding("OpenMIND", birds("replanner", "frozen", 10, 0, [9] * N))
    assert got == NOT_RUN
    assert "closed source" in ours
    assert "our replanner 1.00 before, 0.90 at the end" in ours
    assert finding("HYDRA drops more", birds("hydra", "frozen", 9, 0, [4] * N))[1].endswith(
        "our hydra 0.90 before, 0.40 at the end"
    )
    assert "no agent here reads labels" in finding("Pig Color is harmless")[1]
