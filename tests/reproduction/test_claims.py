"""The claims: judged on runs whose returns are written down here."""

import pytest

from nappingrl.errors import BadRunError
from nappingrl.report.runs import Run
from nappingrl.reproduction.claims import CLAIMS
from nappingrl.reproduction.judging import FAILS, HOLDS, NOT_RUN, Claim, judge
from report.rows import make_run, steps

POST = 40


def status(text: str, *runs: Run) -> str:
    return finding(text, *runs)[0]


def finding(text: str, *runs: Run) -> tuple[str, str]:
    (claim,) = [claim for claim in CLAIMS if text in claim.text]
    ((_, found),) = judge([claim], list(runs))
    return found.status, found.ours


def flat(domain: str, agent: str, method: str, *levels: float, **options: object) -> Run:
    """Trials that stay at one level after the novelty."""
    return make_run(domain, agent, method, [steps((v, POST)) for v in levels], pre=0, **options)  # type: ignore[arg-type]


def test_nothing_run_nothing_claimed() -> None:
    assert {found.status for _, found in judge(CLAIMS, [])} == {NOT_RUN}


def test_every_claim_says_when_it_holds() -> None:
    assert all(isinstance(claim, Claim) and claim.text and claim.criterion for claim in CLAIMS)
    assert len({claim.text for claim in CLAIMS}) == len(CLAIMS)


def test_no_adaptation() -> None:
    still = [flat("cartpole", agent, "frozen", 20, 30, 25) for agent in ("ppo", "dqn")]
    assert status("frozen agents show no adaptation", *still) == HOLDS
    rising = make_run("cartpole", "dqn", "frozen", [steps((20, 5), (150 + i, 35)) for i in range(3)], pre=0)
    got, ours = finding("frozen agents show no adaptation", still[0], rising)
    assert got == FAILS
    assert "dqn gains 131.00" in ours  # 151 - 20
    assert status("frozen agents show no adaptation", still[0]) == NOT_RUN


def test_episodes_that_were_not_run_claim_nothing() -> None:
    short = [make_run("cartpole", agent, "frozen", [[20.0] * 8], pre=0) for agent in ("ppo", "dqn")]
    assert status("frozen agents show no adaptation", *short) == NOT_RUN


def test_one_trial_has_no_other_draws_to_fail_at() -> None:
    runs = [flat("cartpole", agent, "napping", 20, params={"length": [0.3]}) for agent in ("ppo", "dqn")]
    assert status("NAPPING fails at very short poles", *runs) == NOT_RUN


def test_two_runs_of_the_same_kind_are_refused() -> None:
    run = flat("cartpole", "ppo", "frozen", 20)
    with pytest.raises(BadRunError, match="more than one run of 'cartpole ppo frozen'"):
        judge(CLAIMS, [run, run])


@pytest.mark.parametrize(("at", "expected"), [(9, HOLDS), (10, FAILS)])
def test_fast_ppo(at: int, expected: str) -> None:
    run = make_run("cartpole", "ppo", "napping", [steps((20, at), (200, POST - at))] * 3, pre=0)
    assert status("PPO-NAPPING's median is 200", run) == expected


def test_slower_dqn() -> None:
    at = {k: [steps((20, k), (200, POST - k))] * 3 for k in (5, 8)}
    ppo, dqn = (make_run("cartpole", agent, "napping", at[5], pre=0) for agent in ("ppo", "dqn"))
    assert status("DQN-NAPPING adapts more slowly", ppo, dqn) == FAILS
    slow = make_run("cartpole", "dqn", "napping", at[8], pre=0)
    assert finding("DQN-NAPPING adapts more slowly", ppo, slow) == (HOLDS, "median 200 at episode 5 (PPO), 8 (DQN)")


def test_frozen_agents_in_draws_that_can_be_solved() -> None:
    runs = []
    for agent in ("ppo", "dqn"):
        runs += [
            flat("cartpole", agent, "oracle", 200, 200, 200, 50),
            flat("cartpole", agent, "frozen", 20, 30, 40, 200),
        ]
    got, ours = finding("drop even where", *runs)
    assert got == HOLDS
    assert "ppo -170" in ours  # the fourth draw, which cannot be solved, does not count


def test_fails_at_short_poles() -> None:
    lengths = [0.1, 0.2, *[1 + 0.1 * i for i in range(18)]]
    levels = [20.0, 22.0, *[190.0 + i % 3 for i in range(18)]]
    runs = [flat("cartpole", agent, "napping", *levels, params={"length": lengths}) for agent in ("ppo", "dqn")]
    assert status("very short poles", *runs) == HOLDS
    even = [flat("cartpole", a, "napping", *([150.0, 151.0] * 10), params={"length": lengths}) for a in ("ppo", "dqn")]
    assert status("very short poles", *even) == FAILS


def test_failed_tasks_cut() -> None:
    frozen = flat("mountaincar", "dqn", "frozen", *[-500] * 10, -100, -100)
    for cured, expected in ((7, FAILS), (8, HOLDS)):
        napping = flat("mountaincar", "dqn", "napping", *[-90] * cured, *[-500] * (10 - cured), -90, -90)
        got, ours = finding("71.45 % (DQN)", frozen, napping)
        assert (got, ours) == (expected, f"10 -> {10 - cured} failed: cut by {cured * 10}.0%")


def test_ends_below_both() -> None:
    better = [flat("mountaincar", agent, "napping", -50, -52, -54) for agent in ("dqn", "ppo-strong")]
    weak = flat("mountaincar", "ppo-weak", "napping", -80, -85, -90)
    assert status("PPO-Weak-NAPPING ends below both", *better, weak) == HOLDS
    assert status("DQN-NAPPING converges", *better) == HOLDS
    strong = flat("mountaincar", "ppo-weak", "napping", -20, -21, -22)
    assert status("PPO-Weak-NAPPING ends below both", *better, strong) == FAILS


def test_jump_at_episode_five() -> None:
    def run(agent: str, after: float) -> Run:
        returns = [steps((-300 - i, 5), (after - 2 * i, 35)) for i in range(3)]
        return make_run("mountaincar", agent, "napping", returns, pre=0)

    names = ("dqn", "ppo-strong", "ppo-weak")
    assert status("jump at episode 5", *(run(name, -60) for name in names)) == HOLDS
    assert status("jump at episode 5", run("dqn", -60), run("ppo-strong", -300), run("ppo-weak", -60)) == FAILS


def test_easier_worlds() -> None:
    params = {"force": [0.01, 0.01, 0.01, 0.0005], "gravity": [0.001, 0.001, 0.001, 0.004]}
    runs = []
    for agent in ("dqn", "ppo-strong", "ppo-weak"):
        runs.append(flat("mountaincar", agent, "frozen", -80, -90, -85, -100, params=params))
        runs.append(flat("mountaincar", agent, "napping", -40, -41, -45, -400, params=params))
    got, ours = finding("easier domains gain too", *runs)
    assert got == HOLDS  # the fourth, harder world got worse and does not count
    assert "dqn 43.0" in ours  # (40 + 49 + 40) / 3


def test_crossroad_leads_are_judged_per_novelty() -> None:
    names = ["new-speeds"] * 3 + ["shift-speeds"] * 3 + ["super-slow"] * 3
    dqn = flat("crossroad", "dqn", "napping", 1, 0.8, 1, -1, -0.8, -1, -1, -1, -0.8, novelties=names)
    ppo = flat("crossroad", "ppo", "napping", -1, -1, -1, 1, 1, 1, 0.8, 1, 1, novelties=names)
    assert status("DQN is better on New Speeds", dqn, ppo) == HOLDS
    assert status("PPO is much better on Shift Speeds and Super Slow", dqn, ppo) == HOLDS
    assert status("DQN ends slightly higher", dqn, ppo) == FAILS
    assert status("PPO is slightly better on All to the Right", dqn, ppo) == NOT_RUN


def test_crossroad_levels() -> None:
    runs = [flat("crossroad", a, m, -1, -0.8, -1) for a in ("dqn", "ppo") for m in ("frozen", "online", "finetune")]
    assert status("frozen, Online and FineTune fail", *runs) == HOLDS
    half = [flat("crossroad", agent, "napping", -1, 1, 0.2) for agent in ("dqn", "ppo")]
    assert status("about 0 mean reward", *half) == HOLDS
    full = [flat("crossroad", agent, "napping", 1, 1, 0.2) for agent in ("dqn", "ppo")]
    assert status("about 0 mean reward", *full) == FAILS
