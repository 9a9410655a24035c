"""Numbers far outside of what makes sense: one line, at once, before anything is written."""

from pathlib import Path
from typing import Any

import pytest

import nappingrl
from command_line import Napping
from nappingrl.agents.base import Agent
from nappingrl.errors import BadSpecError
from nappingrl.trials.limits import MAX_TRIALS

HUGE = ("-1", str(10**12), str(10**30))
COMMANDS = {
    ("run", "cartpole"): ("trials", "seed", "workers"),
    ("paper", "--out", "p"): ("seed", "workers"),
    ("bench",): ("regions", "rounds", "trials"),
    ("replay", "r", "0"): ("rules",),
    ("train", "cartpole", "ppo", "--out", "z"): ("seed", "steps"),
    ("birds", "serve", "--out", "o"): ("levels", "novel-levels", "port", "seed", "attempts", "report-step", "agents",
                                       "observer-port"),
    ("birds", "external", "--command", "true", "--out", "o"): ("count", "timeout", "restarts", "port", "levels",
                                                                  "observer-port"),
    ("birds", "levels", "l"): ("count", "number"),
    ("birds", "accept"): ("levels", "number"),
    ("birds", "play", "--headless", "--agent", "naive"): ("number", "levels", "seed"),
}  # fmt: skip
ALLOWED = {("seed", HUGE[1]), ("number", HUGE[1])}
"""Seeds and numbers of levels may have 18 digits."""


@pytest.mark.parametrize("value", HUGE)
@pytest.mark.parametrize(
    ("words", "option"), [(words, option) for words, options in COMMANDS.items() for option in options]
)
def test_numbers_out_of_range_are_refused(napping: Napping, words: tuple[str, ...], option: str, value: str) -> None:
    if (option, value) in ALLOWED and words[0] != "train":
        pytest.skip("allowed")
    done = napping(*words, f"--{option}={value}")
    assert done.status == 2
    assert done.out == ""
    assert done.err.count("\n") == 1, done.err
    assert done.err.startswith("napping: ")
    assert option.replace("-", "") in done.err.replace("-", "").replace("_", "")
    assert len(done.err) < 300
    assert not list(Path.cwd().iterdir()), "nothing is left behind"


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "", "0", "x", "1e400", "9" * 5000])
def test_texts_that_are_no_number_of_seconds(napping: Napping, value: str) -> None:
    done = napping("birds", "external", "--command", "true", "--out", "o", f"--timeout={value}")
    assert done.status == 2
    assert "Traceback" not in done.err


@pytest.mark.parametrize("protocol", ["99999999999+1", "1+99999999999", "9" * 5000 + "+1", "10000+1", "1..10000+1"])
def test_long_protocols_are_refused(napping: Napping, protocol: str) -> None:
    done = napping("run", "cartpole", "--protocol", protocol)
    assert (done.status, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert len(done.err) < 400
    assert "protocol" in done.err


@pytest.mark.parametrize(
    "options",
    [
        {"trials": 10**12}, {"trials": 0}, {"trials": 2.5}, {"trials": "7"}, {"trials": True}, {"trials": None},
        {"seed": -1}, {"seed": 10**30}, {"seed": 0.5}, {"strength": float("nan")}, {"strength": "1"}, {"strength": 2},
        {"protocol": 5}, {"protocol": "99999999999+1"}, {"workers": 10**9}, {"workers": 0}, {"method": None},
        {"novelty": "a\nb"}, {"score": 3}, {"detector": ["x"]}, {"method": "x" * 10**6},
        {"options": {"rule": 10**400}}, {"domain": 7},
    ],
)  # fmt: skip
def test_the_same_in_python(agent: Agent, options: dict[str, Any], tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"domain": "cartpole", "agent": agent, "out": tmp_path / "r"} | options
    with pytest.raises(nappingrl.NappingError) as caught:
        nappingrl.run(**arguments)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000
    assert not (tmp_path / "r").exists()


def test_ten_million_trials_are_allowed() -> None:
    from nappingrl.trials.spec import RunSpec

    assert MAX_TRIALS >= 10**7
    spec = RunSpec("cartpole", trials=MAX_TRIALS, protocol="1+1").complete()
    assert spec.n_trials == MAX_TRIALS
    assert [trial.number for trial in spec.trial_specs(MAX_TRIALS - 2)] == [MAX_TRIALS - 2, MAX_TRIALS - 1]
    assert spec.find_trial(str(MAX_TRIALS - 1)) == MAX_TRIALS - 1
    with pytest.raises(BadSpecError, match="30000000 trials of 3 novelties"):
        RunSpec("mountaincar", trials=MAX_TRIALS, novelty="all").complete()


def test_a_billion_environments_are_refused(agent: Agent) -> None:
    with pytest.raises(BadSpecError, match="n_envs=1000000000"):
        nappingrl.NappingAgent(agent, n_envs=10**9)
