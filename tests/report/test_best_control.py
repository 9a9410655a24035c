"""A method stands beside its best control, paired, and cannot look better than it is."""

import math

import pytest

from nappingrl.report.best_control import best_control
from nappingrl.report.runs import Run
from nappingrl.report.table import HEAD, Result, runs_table, summarise_runs
from report.rows import make_run, steps

METHOD = make_run("cartpole", "ppo", "napping", [steps((200, 2), (v, 12)) for v in (100, 120, 140, 160)])


def control(method: str, *levels: float, **options: object) -> Run:
    returns = [steps((200, 2), (v, 12)) for v in levels]
    return make_run("cartpole", "ppo", method, returns, role="control", **options)  # type: ignore[arg-type]


def test_the_control_with_the_highest_level_is_the_one_it_is_measured_against() -> None:
    weak, strong = control("random", 10, 10, 10, 10), control("controller", 90, 100, 150, 140)
    found = best_control(METHOD, [METHOD, weak, strong])
    assert found is not None
    assert found.other == "controller"
    differences = [10, 20, -10, 20]
    assert found.difference == pytest.approx(sum(differences) / 4)
    assert found.interval is not None
    spread = math.sqrt(sum((d - 10) ** 2 for d in differences) / 3) / 2
    assert found.interval.high - 10 == pytest.approx(3.182446 * spread, rel=1e-5)  # Student's t, 3 degrees of freedom
    assert not found.is_better
    assert "NOT better than controller" in found.describe(1)


def test_a_clear_lead_counts() -> None:
    found = best_control(METHOD, [control("random", 10, 12, 14, 16)])
    assert found is not None
    assert found.is_better
    assert found.describe(0).endswith("better than random")
    assert "NOT" not in found.describe(0)


def test_controls_on_other_draws_or_of_another_agent_do_not_count() -> None:
    other_agent = make_run("cartpole", "dqn", "random", [steps((200, 14))] * 4, role="control")
    assert best_control(METHOD, [control("random", 1, 1, 1, 1, seed=1), other_agent, METHOD]) is None


def test_one_trial_has_no_interval_and_is_never_better() -> None:
    alone = make_run("cartpole", "ppo", "napping", [steps((200, 14))])
    found = best_control(alone, [control("random", 10)])
    assert found is not None
    assert found.interval is None
    assert not found.is_better
    assert "no interval" in found.describe(1)


def test_the_table_says_what_a_run_is_and_whether_a_control_stands_beside_it() -> None:
    oracle = make_run("cartpole", "ppo", "oracle", [steps((200, 14))] * 4, role="oracle")
    runs = [METHOD, control("random", 10, 12, 14, 16), oracle]
    cells = [row[-1] for row in runs_table(summarise_runs(runs))]
    assert cells[0].endswith("better than random")
    assert cells[1:] == ["control", "oracle"]
    assert runs_table([Result("x", METHOD.summary())])[0][-1] == "no control or frozen run beside it"


def test_without_a_control_the_table_compares_with_the_frozen_agent() -> None:
    """Its detector does not matter, and it heeds no alarm."""
    frozen = make_run(
        "cartpole", "ppo", "frozen", [steps((200, 2), (v, 12)) for v in (10, 12, 14, 16)], role="baseline",
        detector="given",
    )  # fmt: skip
    adapted, baseline = runs_table(summarise_runs([METHOD, frozen]))
    assert adapted[-1].endswith("better than frozen")
    assert adapted[-1].startswith("+117.0 (")
    assert baseline[-1] == "baseline"
    assert baseline[HEAD.index("alarms")] == "-"
    beside_both = runs_table(summarise_runs([METHOD, frozen, control("random", 90, 91, 92, 93)]))
    assert beside_both[0][-1].endswith("better than random")
