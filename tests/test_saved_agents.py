"""Saved agents are untrusted: whatever a file holds, it is refused with one line that names the field, or used."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from nappingrl import NappingAgent
from nappingrl.errors import AdaptationWarning, BadAgentError, BadSpecError
from tests.attack.outcome import Outcome
from tests.attack.saved_agents import Saved, read, write

ROOT = Path(__file__).parents[1]
METHOD_OPTIONS: dict[str, dict[str, Any]] = {"napping": {"rule": "fallback"}, "napping-ucb": {}, "foresight": {}}


def make(method: str, detector: str, path: Path) -> Saved:
    """An agent that has learned something, saved."""
    agent = NappingAgent("ppo", domain="cartpole", method=method, detector=detector, **METHOD_OPTIONS[method])
    random = np.random.default_rng(0)
    with pytest.warns(AdaptationWarning, match="waits for an alarm"):
        agent.predict(np.zeros(4, np.float32))
    for step in range(125):
        observation, following = random.normal(0, 0.03, size=(2, 4)).astype(np.float32)
        action, _ = agent.predict(observation)
        agent.observe(observation, action, following, 1.0, step % 10 == 9)
        if step == 60:
            agent.switch_to("novelty 1")
    return read(agent.save(path))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Saved]:
    folder = tmp_path_factory.mktemp("saved")
    detectors = {"napping": "ks", "napping-ucb": "adwin", "foresight": "residual"}
    return {method: make(method, detector, folder / "a.zip") for method, detector in detectors.items()}


def refusal(saved: Saved, folder: Path) -> str:
    """The one line with which a file is refused."""
    path = folder / "tampered.zip"
    path.write_bytes(write(saved))
    with pytest.raises(BadAgentError) as caught:
        NappingAgent.load(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


LEARNED = "method/learned.0.1."
TRIAL = "method/foresight.trials.0."


@pytest.mark.parametrize(
    ("method", "name", "value"),
    [
        ("napping", LEARNED + "best_action", 10**6),  # a kernel wrote to this address
        ("napping", LEARNED + "best_action", -1),
        ("napping", LEARNED + "wanted", 2),
        ("napping", LEARNED + "candidates", False),
        ("napping", LEARNED + "site", np.nan),
        ("napping", LEARNED + "visits", 0),
        ("napping", "method/contexts", 7),
        ("napping", "detector/_points", np.nan),  # the search for the distance never ended
        ("napping", "detector/_counts", 10**9),
        ("napping", "detector/_filled", 51),
        ("napping-ucb", LEARNED + "wanted", -1),
        ("napping-ucb", LEARNED + "counts", 0),
        ("napping-ucb", LEARNED + "means", 1e308),
        ("napping-ucb", "method/calibration._episode_ends", 10**12),  # as many numbers were allocated
        ("napping-ucb", "detector/_n_kept", 10**9),
        ("foresight", TRIAL + "next_plan", 0),  # doubled for ever
        ("foresight", TRIAL + "starts.length", 0),
        ("foresight", TRIAL + "others.0.transitions.episodes", -(2**40)),
        ("foresight", "method/foresight.transitions.0.states", np.inf),
        ("foresight", "method/foresight.episodes.number", 2**62),
        ("foresight", "detector/context", -1),
        ("foresight", "detector/exchange.n_kept", 8),  # the next step was written behind the block
    ],
)
def test_a_tampered_array_is_refused_by_its_name(
    saved: dict[str, Saved], method: str, name: str, value: Any, tmp_path: Path
) -> None:
    arrays = dict(saved[method].arrays)
    arrays[name] = np.full_like(arrays[name], value)
    text = refusal(Saved(saved[method].settings, arrays), tmp_path)
    assert name.rpartition(".")[2].rpartition("/")[2] in text or "is not valid" in text


@pytest.mark.parametrize(
    ("name", "array"),
    [
        (LEARNED + "best_action", None),
        (LEARNED + "best_action", np.zeros(1, np.int64)),
        (LEARNED + "best_action", np.zeros((1, 1), np.int64)),
        (LEARNED + "wanted", np.zeros(1, np.float64)),
        ("method/streams", np.zeros((1, 3), np.uint64)),
        ("detector/context", np.zeros(2, np.int64)),
        ("method/learned.length", np.array(10**9)),
        ("method/learned.0.keys", np.array([0, 1, 5])),
    ],
)
def test_another_shape_or_type_is_refused(
    saved: dict[str, Saved], name: str, array: NDArray[Any] | None, tmp_path: Path
) -> None:
    arrays = {key: value for key, value in saved["napping"].arrays.items() if key != name}
    assert len(arrays) < len(saved["napping"].arrays)
    refusal(Saved(saved["napping"].settings, arrays if array is None else arrays | {name: array}), tmp_path)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("config.n_envs", 0), ("config.n_envs", 2), ("config.n_envs", 10**9), ("config.n_envs", "1"),
        ("config.seed", -1), ("config.seed", 2**64), ("config.seed", None), ("config.method", "oracle"),
        ("config.method", "random"), ("config.method", ["napping"]), ("config.domain", 3), ("config.guard", 1),
        ("config.options", {"model": "x"}), ("config.options", {"n_envs": 3}), ("config.options", {"rule": 0.5}),
        ("config.options", {"layer": 1e308}), ("config.options", []), ("config.score", "typo"),
        ("config.detector", ""), ("config.detector", "a\nb"), ("config.domain", "\n"), ("agent.model", "a\u2028b"),
        ("config.own_score", True), ("config.extra", 1), ("config.a\nb", 1), ("contexts", [0, 0]),
        ("contexts", [-1]), ("contexts", 0), ("episodes", [0.5]), ("episodes", [2**62]), ("returns", [1e308]),
        ("returns", ["0"]), ("names", [[0, "a"], [0, "b"]]), ("names", [[0, "a"], [1, "a"]]), ("names", [["0", "a"]]),
        ("names", {"0": "a"}), ("agent", None), ("agent.model", 7), ("agent.model", "nowhere.zip"),
        ("agent.sha256", "x"), ("agent.sha256", ""), ("format", "4"), ("format", 3), ("format", None),
    ],
)  # fmt: skip
def test_a_tampered_setting_is_refused(saved: dict[str, Saved], path: str, value: Any, tmp_path: Path) -> None:
    settings = json.loads(json.dumps(saved["napping"].settings))
    *parents, key = path.split(".")
    place = settings
    for parent in parents:
        place = place[parent]
    place[key] = value
    if value == "" and key == "detector":  # the default: the arrays are those of another
        settings["config"]["detector"] = "cusum"
    refusal(Saved(settings, saved["napping"].arrays), tmp_path)


def test_expensive_options_are_refused(saved: dict[str, Saved], tmp_path: Path) -> None:
    settings = json.loads(json.dumps(saved["foresight"].settings))
    for options in ({"n_rollouts": 10**9}, {"n_rollouts": 900, "n_initial_policies": 900}, {"residual_gains": "nan"}):
        settings["config"]["options"] = options
        refusal(Saved(settings, saved["foresight"].arrays), tmp_path)


def test_paths_that_are_no_files_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(2**40)
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "large", Path("/dev/zero")):
        with pytest.raises(BadAgentError, match="is not a saved NappingAgent"):
            NappingAgent.load(path)


def test_members_that_occur_twice_are_refused(saved: dict[str, Saved], tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(write(saved["napping"]))
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("adapter.json", "{}")
    with pytest.raises(BadAgentError, match="twice"):
        NappingAgent.load(path)


def test_an_agent_that_could_not_be_loaded_is_not_saved(tmp_path: Path) -> None:
    agent = NappingAgent("ppo", domain="cartpole")
    agent.switch_to("two\nlines")
    with pytest.raises(BadSpecError, match=r"the agent cannot be saved: .*names"):
        agent.save(tmp_path / "a.zip")
    assert list(tmp_path.iterdir()) == []


def test_an_agent_that_could_not_be_loaded_is_not_made() -> None:
    for arguments in ({"n_envs": 10**9}, {"seed": 2**64}):
        with pytest.raises(BadSpecError, match="allowed"):
            NappingAgent("ppo", domain="cartpole", **arguments)


def test_mutated_files_are_refused_or_used(request: pytest.FixtureRequest) -> None:
    """300 files, in a process whose kernels check every index; they are compiled into a separate folder."""
    code = (
        "import msgspec; from tests.attack.saved_agents import attack;"
        "print(msgspec.json.encode(attack(0.03, 1)).decode())"
    )
    command = [sys.executable, "-c", code]
    kernels = str(request.config.cache.mkdir("kernels-boundscheck"))
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": kernels}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr[-2000:]
    outcome = msgspec.json.decode(done.stdout.splitlines()[-1], type=Outcome)
    assert outcome.failures == []
    assert outcome.refused > 100
    assert outcome.survived > 50
    assert outcome.refused + outcome.survived == outcome.tried == 300
