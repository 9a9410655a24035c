"""The claims: judged on runs whose returns are written down here."""

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

from nappingrl.errors import BadRunError
from nappingrl.report.runs import Run
from nappingrl.reproduction.claims import CLAIMS
from nappingrl.reproduction.columns import BEYOND, COLUMNS, OURS, PRINTED
from nappingrl.reproduction.judging import FAILS, HOLDS, NOT_JUDGED, UNDECIDED, Claim, Finding, judge
from nappingrl.reproduction.outputs import claims_markdown, describe_verdict
from report.rows import make_run, steps

POST = 40
AGENTS = ("zoo-ppo", "zoo-dqn")


def finding(text: str, *runs: Run, column: str = OURS) -> Finding:
    (claim,) = [claim for claim in CLAIMS if text in claim.text]
    found = {finding.column: finding for _, finding in judge([claim], list(runs))}
    return found[column] if claim.by_column else found[""]


def status(text: str, *runs: Run) -> str:
    return finding(text, *runs).status


def flat(domain: str, agent: str, method: str, *levels: float, pre: float | None = None, **options: object) -> Run:
    """Trials that stay at one level after the novelty; `pre` is the level before it."""
    before = [] if pre is None else [(pre, 4)]
    returns = [steps(*before, (v, POST)) for v in levels]
    return make_run(domain, agent, method, returns, pre=len(before) and 4, **options)  # type: ignore[arg-type]


def spread(centre: float, n: int = 20, width: float = 2.0) -> list[float]:
    return (centre + width * np.linspace(-1, 1, n)).tolist()


def test_nothing_run_nothing_claimed() -> None:
    assert {found.status for _, found in judge(CLAIMS, [])} == {NOT_JUDGED}


def test_every_claim_says_when_it_holds() -> None:
    assert all(isinstance(claim, Claim) and claim.text and claim.criterion for claim in CLAIMS)
    assert len({claim.text for claim in CLAIMS}) == len(CLAIMS)


def test_claims_about_napping_are_judged_in_each_column() -> None:
    judged = judge(CLAIMS, [])
    assert len(judged) == sum(len(COLUMNS) if claim.by_column else 1 for claim in CLAIMS)
    literal = {"score": "reward", "options": {"rule": "printed", "space": "embedding"}}
    runs = [
        make_run("cartpole", "zoo-ppo", method, [steps((20, at), (200, POST - at))] * 20, pre=0, **setting)
        for method, at, setting in (("napping", 12, literal), ("napping", 6, {}), ("auto", 2, {}))
    ]
    found = {column: finding("PPO-NAPPING's median", *runs, column=column) for column in COLUMNS}
    assert [found[column].status for column in (PRINTED, OURS, BEYOND)] == [FAILS, HOLDS, HOLDS]
    assert found[PRINTED].setting == "NAPPING (rule printed, space embedding, score reward)"
    assert (found[OURS].ours, found[BEYOND].setting) == ("median 200 at episode 6 (6 to 6)", "Auto")


def test_one_run_serves_two_columns_where_they_are_the_same() -> None:
    """In Angry Birds our defaults are those of the paper."""
    runs = [flat("angrybirds", agent, "napping", *spread(0.8, width=0.01)) for agent in ("dqn", "dqn-rel")]
    variants: list[dict[str, Any]] = [
        {"options": {"rule": "text"}},
        {"options": {"threshold": "auto"}},
        {"score": "goal"},
    ]
    runs += [flat("angrybirds", agent, "napping", 0, **variant) for agent in ("dqn", "dqn-rel") for variant in variants]
    found = {column: finding("NAPPING agents end at about .8", *runs, column=column) for column in COLUMNS}
    assert found[PRINTED] == replace(found[OURS], column=PRINTED)
    assert (found[OURS].status, found[BEYOND].status) == (HOLDS, NOT_JUDGED)
    assert found[OURS].setting == "NAPPING (rule printed, space embedding, score paper)"
    with pytest.raises(BadRunError, match=r"more than one run of 'angrybirds dqn napping.*\(as printed\)"):
        judge(CLAIMS, [runs[0], flat("angrybirds", "dqn", "napping", *spread(0.7))])


def test_no_adaptation_needs_the_upper_end_of_the_interval() -> None:
    still = [flat("cartpole", agent, "frozen", 20, 30, 25) for agent in AGENTS]
    assert status("frozen agents show no adaptation", *still) == UNDECIDED  # three equal gains of 0
    many = [flat("cartpole", agent, "frozen", *spread(25)) for agent in AGENTS]
    assert status("frozen agents show no adaptation", *many) == HOLDS
    rising = make_run("cartpole", "zoo-dqn", "frozen", [steps((20, 5), (150 + i, 35)) for i in range(3)], pre=0)
    found = finding("frozen agents show no adaptation", many[0], rising)
    assert found.status == FAILS
    assert "zoo-dqn gains 131.0" in found.ours  # 151 - 20
    assert (found.setting, found.n) == ("Frozen", 3)
    wide = make_run("cartpole", "zoo-dqn", "frozen", [steps((20, 5), (20 + 15 * i, 35)) for i in range(4)], pre=0)
    assert status("frozen agents show no adaptation", many[0], wide) == UNDECIDED
    assert "was not run" in finding("frozen agents show no adaptation", many[0]).ours


def test_an_undecided_claim_says_how_many_trials_would_decide_it() -> None:
    """Four gains of mean 22.5 against a limit of 19.9: the half-width must shrink from 30.8 to 2.6."""
    runs = [
        make_run("cartpole", agent, "frozen", [steps((20, 5), (20 + 15 * i, 35)) for i in range(4)], pre=0)
        for agent in AGENTS
    ]
    (claim,) = [claim for claim in CLAIMS if claim.text == "frozen agents show no adaptation"]
    ((_, found),) = judge([claim], runs, lambda run: 60.0)
    half = 3.182446 * np.std([0, 15, 30, 45], ddof=1) / 2
    factor = (half / (22.5 - 19.9)) ** 2
    assert found.trials_needed == pytest.approx(4 * factor, abs=1)
    assert found.cpu_hours == pytest.approx(factor * 2 / 60, rel=1e-3)


def test_an_estimate_on_its_bound_is_decided_by_no_number_of_trials() -> None:
    """Gains of mean 19.9, but for rounding, against a limit of 19.9."""
    gains = [4.9, 14.9, 24.9, 34.9 + 1e-9]
    runs = [
        make_run("cartpole", agent, "frozen", [steps((20, 5), (20 + gain, 35)) for gain in gains], pre=0)
        for agent in AGENTS
    ]
    (claim,) = [claim for claim in CLAIMS if claim.text == "frozen agents show no adaptation"]
    ((_, found),) = judge([claim], runs, lambda run: 60.0)
    assert (found.status, found.trials_needed, found.cpu_hours) == (UNDECIDED, None, None)
    assert "no number of trials would decide it" in describe_verdict(asdict(found))


def test_one_part_outside_its_range_is_enough_to_refute_a_claim() -> None:
    """zoo-dqn's gain of 22.5 is beyond 19.9; deciding it decides the claim, whatever zoo-ppo's 19.5 would need."""
    gains = {"zoo-ppo": [0, 13, 26, 39], "zoo-dqn": [0, 15, 30, 45]}
    runs = [
        make_run("cartpole", agent, "frozen", [steps((20, 5), (20 + gain, 35)) for gain in each], pre=0)
        for agent, each in gains.items()
    ]
    (claim,) = [claim for claim in CLAIMS if claim.text == "frozen agents show no adaptation"]
    ((_, found),) = judge([claim], runs)
    half = 3.182446 * np.std(gains["zoo-dqn"], ddof=1) / 2
    assert found.trials_needed == pytest.approx(4 * (half / (22.5 - 19.9)) ** 2, abs=1)


def test_episodes_that_were_not_run_claim_nothing() -> None:
    short = [make_run("cartpole", agent, "frozen", [[20.0] * 8], pre=0) for agent in AGENTS]
    assert status("frozen agents show no adaptation", *short) == NOT_JUDGED


def test_one_trial_has_no_other_draws_to_fail_at() -> None:
    runs = [flat("cartpole", agent, "napping", 20, params={"length": [0.3]}) for agent in AGENTS]
    assert status("NAPPING fails at very short poles", *runs) == NOT_JUDGED


def test_two_runs_of_the_same_kind_are_refused() -> None:
    runs = [flat("cartpole", "ppo", "frozen", level) for level in (20, 30)]
    with pytest.raises(BadRunError, match="more than one run of 'cartpole ppo frozen'"):
        judge(CLAIMS, runs)


def test_the_same_returns_twice_are_judged_once() -> None:
    runs = [flat("cartpole", agent, "frozen", *spread(25)) for agent in (*AGENTS, *AGENTS)]
    assert finding("frozen agents show no adaptation", *runs).n == 20


@pytest.mark.parametrize(("key", "value"), [("seed", 1), ("strength", 0.5)])
def test_runs_of_other_draws_are_not_compared(key: str, value: float) -> None:
    runs = [flat("cartpole", "zoo-ppo", method, 20) for method in ("frozen", "napping")]
    other = replace(runs[1], manifest=replace(runs[1].manifest, spec=runs[1].spec | {key: value}))
    with pytest.raises(BadRunError, match=f"{key} is .* give runs with the same {key}"):
        judge(CLAIMS, [runs[0], other])


def test_the_larger_of_two_runs_with_the_same_settings_is_judged() -> None:
    few, many = [[flat("cartpole", agent, "frozen", *spread(25, n=n)) for agent in AGENTS] for n in (3, 30)]
    for runs in (few + many, many + few):
        assert finding("frozen agents show no adaptation", *runs).n == 30
    other = [flat("cartpole", agent, "frozen", *spread(25, n=40), seed=1) for agent in AGENTS]
    with pytest.raises(BadRunError, match="more than one run of 'cartpole zoo-ppo frozen'"):
        judge(CLAIMS, few + other)


def test_a_finished_run_comes_before_a_larger_unfinished_one() -> None:
    """Trials of several novelties lie novelty by novelty: the unfinished one has only the first."""
    whole, cut = ([flat("cartpole", agent, "frozen", *spread(25, n=n)) for agent in AGENTS] for n in (30, 50))
    cut = [replace(run, gap="50 of 90 trials") for run in cut]
    for runs in (whole + cut, cut + whole):
        assert finding("frozen agents show no adaptation", *runs).n == 30
    assert finding("frozen agents show no adaptation", *cut).n == 50


@pytest.mark.parametrize(("at", "expected"), [(9, HOLDS), (10, FAILS)])
def test_fast_ppo(at: int, expected: str) -> None:
    run = make_run("cartpole", "zoo-ppo", "napping", [steps((20, at), (200, POST - at))] * 20, pre=0)
    assert status("PPO-NAPPING's median is 200", run) == expected


def test_slower_dqn() -> None:
    at = {k: [steps((20, k), (200, POST - k))] * 20 for k in (5, 8)}
    ppo, dqn = (make_run("cartpole", agent, "napping", at[5], pre=0) for agent in AGENTS)
    assert status("DQN-NAPPING adapts more slowly", ppo, dqn) == FAILS
    slow = make_run("cartpole", "zoo-dqn", "napping", at[8], pre=0)
    found = finding("DQN-NAPPING adapts more slowly", ppo, slow)
    assert (found.status, found.ours.endswith("DQN later by 3 (3 to 3)")) == (HOLDS, True)


def test_frozen_agents_in_easier_draws() -> None:
    params = {"gravity": [0.001] * 3 + [0.01], "force": [0.01] * 4}
    runs = [flat("cartpole", agent, "frozen", 20, 30, 40, 200, pre=200, params=params) for agent in AGENTS]
    found = finding("drop even where", *runs)
    assert found.status == HOLDS
    assert "zoo-ppo after minus before -170" in found.ours  # the fourth draw is no easier and does not count
    assert status("solve the task before", *runs) == UNDECIDED  # four equal values are too few


def test_almost_all_novelties() -> None:
    runs = []
    for agent in AGENTS:
        runs += [
            flat("cartpole", agent, "oracle", *[200] * 60, *[50] * 20),
            flat("cartpole", agent, "napping", *[200] * 60, *[20] * 20),
        ]
    assert status("almost all novelties (of all draws)", *runs) == FAILS
    assert status("almost all novelties (of those that can be solved)", *runs) == HOLDS


def test_fails_at_short_poles() -> None:
    lengths = [0.1, 0.2, *[1 + 0.1 * i for i in range(18)]]
    levels = [20.0, 22.0, *[190.0 + i % 3 for i in range(18)]]
    runs = [flat("cartpole", agent, "napping", *levels, params={"length": lengths}) for agent in AGENTS]
    assert status("very short poles", *runs) == HOLDS
    even = [flat("cartpole", a, "napping", *([150.0, 151.0] * 10), params={"length": lengths}) for a in AGENTS]
    assert status("very short poles", *even) == UNDECIDED


def test_failed_tasks_cut_in_both_readings() -> None:
    frozen = flat("mountaincar", "dqn", "frozen", *[-500] * 100, *[-100] * 20)
    napping = flat("mountaincar", "dqn", "napping", *[-90] * 90, *[-500] * 10, *[-90] * 20)
    share = finding("71.45 % (DQN), as a share of the failures", frozen, napping)
    points = finding("71.45 % (DQN), as points of all trials", frozen, napping)
    assert share.ours.startswith("100 -> 10 of 120 failed: cut by 0.900 (")
    assert points.ours.startswith("100 -> 10 of 120 failed: cut by 0.750 (")
    assert (share.status, points.status) == (HOLDS, UNDECIDED)
    solvable = flat("mountaincar", "dqn", "frozen", *spread(-100))
    found = finding("71.45 % (DQN), as a share", solvable, flat("mountaincar", "dqn", "napping", *spread(-90)))
    assert found.status == NOT_JUDGED
    assert found.ours == "nothing failed: the frozen dqn reaches the goal in each of 20 trials"


def test_ends_below_both() -> None:
    better = [flat("mountaincar", agent, "napping", -50, -52, -54) for agent in ("dqn", "ppo-strong")]
    weak = flat("mountaincar", "ppo-weak", "napping", -80, -85, -90)
    assert status("PPO-Weak-NAPPING ends below both", *better, weak) == HOLDS
    strong = flat("mountaincar", "ppo-weak", "napping", -20, -21, -22)
    assert status("PPO-Weak-NAPPING ends below both", *better, strong) == FAILS


@pytest.mark.parametrize(("strong", "expected"), [(-55, HOLDS), (-70, FAILS), (-61, UNDECIDED)])
def test_converging_is_an_equivalence(strong: float, expected: str) -> None:
    dqn = flat("mountaincar", "dqn", "napping", *spread(-52, width=3))
    others = [flat("mountaincar", "ppo-strong", m, *spread(strong, width=-3)) for m in ("napping", "frozen")]
    assert status("DQN-NAPPING converges", dqn, *others) == expected
    assert status("DQN-NAPPING converges", dqn, others[0]) == NOT_JUDGED  # the frozen agent counts too


def test_better_before_and_worse_after() -> None:
    dqn = flat("mountaincar", "dqn", "frozen", *spread(-150, width=9), pre=-100)
    strong = flat("mountaincar", "ppo-strong", "frozen", *spread(-60), pre=-110)
    assert status("the frozen DQN is better than PPO-Strong before", dqn, strong) == HOLDS
    worse = flat("mountaincar", "dqn", "frozen", *spread(-150, width=9), pre=-120)
    assert status("the frozen DQN is better than PPO-Strong before", worse, strong) == FAILS


def test_jump_at_episode_five() -> None:
    def run(agent: str, after: float) -> Run:
        returns = [steps((-300 - i, 5), (after - 2 * i, 35)) for i in range(3)]
        return make_run("mountaincar", agent, "napping", returns, pre=0)

    names = ("dqn", "ppo-strong", "ppo-weak")
    assert status("jump at episode 5", *(run(name, -60) for name in names)) == HOLDS
    assert status("jump at episode 5", run("dqn", -60), run("ppo-strong", -400), run("ppo-weak", -60)) == FAILS


def test_easier_worlds() -> None:
    params = {"force": [0.01, 0.01, 0.01, 0.0005], "gravity": [0.001, 0.001, 0.001, 0.004]}
    runs = []
    for agent in ("dqn", "ppo-strong", "ppo-weak"):
        runs.append(flat("mountaincar", agent, "frozen", -80, -90, -85, -100, params=params))
        runs.append(flat("mountaincar", agent, "napping", -40, -41, -45, -400, params=params))
    found = finding("easier domains gain too", *runs)
    assert found.status == HOLDS  # the fourth, harder world got worse and does not count
    assert "dqn minus frozen 43.0" in found.ours  # (40 + 49 + 40) / 3


def test_crossroad_leads_are_judged_per_novelty() -> None:
    names = ["new-speeds"] * 3 + ["shift-speeds"] * 3 + ["super-slow"] * 3
    dqn = flat("crossroad", "sb3-dqn", "napping", 1, 0.8, 1, -1, -0.8, -1, -1, -1, -0.8, novelties=names)
    ppo = flat("crossroad", "sb3-ppo", "napping", -1, -1, -1, 1, 1, 1, 0.8, 1, 1, novelties=names)
    assert status("DQN is better on New Speeds", dqn, ppo) == HOLDS
    assert status("PPO is much better on Shift Speeds and Super Slow", dqn, ppo) == HOLDS
    assert status("DQN ends slightly higher", dqn, ppo) == UNDECIDED
    assert status("PPO is slightly better on All to the Right", dqn, ppo) == NOT_JUDGED


def test_crossroad_levels() -> None:
    runs = [
        flat("crossroad", a, m, -1, -0.8, -1) for a in ("sb3-dqn", "sb3-ppo") for m in ("frozen", "online", "finetune")
    ]
    assert status("frozen, Online and FineTune fail", *runs) == HOLDS
    half = [flat("crossroad", agent, "napping", *spread(0.05, width=0.2)) for agent in ("sb3-dqn", "sb3-ppo")]
    assert status("about 0 mean reward", *half) == HOLDS
    full = [flat("crossroad", agent, "napping", *spread(0.8, width=0.2)) for agent in ("sb3-dqn", "sb3-ppo")]
    assert status("about 0 mean reward", *full) == FAILS
    robust = flat("crossroad", "sb3-ppo", "frozen", -0.2, -0.1, -0.3)
    assert status("PPO is more robust when frozen", runs[0], robust) == HOLDS


def test_columns_with_the_same_findings_are_merged_in_the_table() -> None:
    def entry(column: str, ours: str) -> dict[str, Any]:
        return {"domain": "angrybirds", "text": "it ends at .8", "criterion": "within .1", "column": column,
                "status": HOLDS, "ours": ours, "n": 40}  # fmt: skip

    table = claims_markdown([entry(PRINTED, "0.8"), entry(OURS, "0.8"), entry(BEYOND, "0.9")])
    assert "### Angry Birds: NAPPING\n\n| claim | holds if | as printed and ours | beyond |" in table
    assert "| it ends at .8 | within .1 | **holds**: 0.8 [n 40] | **holds**: 0.9 [n 40] |" in table
