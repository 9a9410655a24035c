"""The runner itself: what counts as a failure, and what is printed."""

import json

import pytest

import tests.attack.__main__ as runner
from tests.attack.outcome import Outcome


def test_an_attack_that_dies_is_a_failure() -> None:
    outcome = runner.run_apart("outcome", 0.1, 7)  # a module without an attack
    assert outcome.name == "outcome"
    (failure,) = outcome.failures
    assert "status 1; seed 7" in failure
    assert "has no attribute 'attack'" in failure


@pytest.mark.parametrize(("failures", "status"), [([], 0), (["lost a row; seed 1"], 1)])
def test_any_failure_fails_the_command(
    failures: list[str], status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "find_attacks", lambda: {"one": None, "two": None})
    outcomes = {"one": Outcome("one", tried=3, survived=3), "two": Outcome("two", tried=1, failures=failures)}
    monkeypatch.setattr(runner, "run_apart", lambda name, budget, seed: outcomes[name])
    assert runner.main([]) == status
    out = capsys.readouterr().out
    assert ("two FAILED: lost a row; seed 1" in out) == bool(failures)
    assert runner.main(["--only", "one", "--json"]) == 0
    (only,) = json.loads(capsys.readouterr().out)
    assert only["name"] == "one"


def test_an_unknown_attack_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        runner.main(["--only", "typo"])
    assert "unknown attack typo; there are: " in capsys.readouterr().err
