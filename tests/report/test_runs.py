"""The record of a run: made, read back, summarised, compared."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from polars.testing import assert_frame_equal

import nappingrl
from nappingrl.agents.base import Agent
from nappingrl.errors import BadRunError, UnknownNameError
from nappingrl.report.runs import read_runs
from report.rows import make_run, steps


def test_a_run_is_read_back_as_it_was_returned(agent: Agent, tmp_path: Path) -> None:
    run = nappingrl.run("cartpole", agent, "frozen", trials=3, protocol="1+2", out=tmp_path / "run")
    again = nappingrl.read_run(tmp_path / "run")
    assert_frame_equal(again.rows, run.rows)
    assert again.manifest == run.manifest
    assert again.path == run.path == tmp_path / "run"
    assert again.summary() == run.summary()


def test_without_out_nothing_is_stored(agent: Agent) -> None:
    run = nappingrl.run("cartpole", agent, "frozen", trials=1, protocol="1+1")
    assert run.path is None
    with pytest.raises(BadRunError, match="was not stored; give `out`"):
        run.replay("0")


def test_a_run_says_what_it_is() -> None:
    run = make_run("cartpole", "ppo", "napping", [steps((200, 2), (100, 12)), steps((200, 2), (200, 12))])
    assert repr(run) == (
        "Run(cartpole ppo napping: 2 trials of physics, protocol 2+12; return of the last 10 episodes 150, solved 50%)"
    )


def test_runs_are_compared_by_pairs() -> None:
    ours, theirs = (
        make_run("cartpole", "ppo", method, [steps((200, 2), (level, 12)) for level in levels])
        for method, levels in (("napping", (100, 120, 140)), ("frozen", (50, 80, 110)))
    )
    comparison = ours.compare(theirs)
    assert comparison.other == "frozen"
    assert comparison.difference == pytest.approx(40)
    assert comparison.interval is not None
    assert comparison.interval.low == pytest.approx(40 - 4.302653 * 10 / np.sqrt(3), rel=1e-5)  # Student's t, 2 degrees
    assert ours.compare(replace(theirs, rows=theirs.rows.reverse())).difference == pytest.approx(40), "in any order"


def test_runs_of_other_draws_are_not_compared() -> None:
    ours = make_run("cartpole", "ppo", "napping", [steps((200, 14))])
    with pytest.raises(BadRunError, match="cannot be paired: seed is 0 in one and 1 in the other"):
        ours.compare(make_run("cartpole", "ppo", "frozen", [steps((200, 14))], seed=1))


def test_a_misspelt_argument_is_named() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown argument of nappingrl.run 'trails'.*Did you mean 'trials'"):
        nappingrl.run("cartpole", trails=2)  # type: ignore[arg-type]


def test_options_reach_the_method(agent: Agent) -> None:
    run = nappingrl.run("cartpole", agent, trials=1, protocol="1+1", options={"rule": "text", "choice": "preference"})
    assert run.spec["options"] == {"rule": "text", "space": "embedding", "choice": "preference"}


def test_several_runs_are_of_one_domain_and_have_labels_of_their_own(agent: Agent, tmp_path: Path) -> None:
    for seed in (0, 1):
        nappingrl.run("cartpole", agent, "frozen", trials=1, protocol="1+1", seed=seed, out=tmp_path / str(seed))
    runs = read_runs([tmp_path / "0", tmp_path / "1"])
    assert [run.label for run in runs] == ["cartpole balance frozen (seed 0)", "cartpole balance frozen (seed 1)"]


def test_a_report_of_runs_in_memory(tmp_path: Path) -> None:
    run = make_run("cartpole", "ppo", "frozen", [steps((200, 2), (100, 12))] * 3)
    page = nappingrl.write_report([run, replace(run)], tmp_path / "report")
    assert page == tmp_path / "report" / "report.html"
    assert (tmp_path / "report" / "curves.png").exists()
    assert "cartpole ppo frozen (run 2)" in page.read_text("utf-8")
