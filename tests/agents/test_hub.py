"""Agents of the Hugging Face Hub, in a local cache: nothing here reaches the network."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import nappingrl
from cli.results import assert_refused
from command_line import Napping
from nappingrl.agents import load, load_agent
from nappingrl.errors import BadAgentError, MissingExtraError
from nappingrl.trials.store import RunFolder

huggingface_hub = pytest.importorskip("huggingface_hub")
NAME = "hf:someone/balance"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def asked(agent_zip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """A local cache of the Hub with one agent; returns which files were asked for, and whether with the network."""
    folder = tmp_path / "hub" / "models--someone--balance"
    snapshot = folder / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    shutil.copy(agent_zip, snapshot / "balance.zip")
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(COMMIT)
    original, calls = huggingface_hub.hf_hub_download, []

    def from_cache(repository: str, file: str, local_files_only: bool = False) -> Any:
        calls.append((file, not local_files_only))
        return original(repository, file, cache_dir=tmp_path / "hub", local_files_only=True)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", from_cache)
    return calls


def test_an_agent_of_the_hub_is_that_of_its_zip(asked: list[tuple[str, bool]], agent_zip: Path) -> None:
    agent, same = load_agent(NAME), load_agent(agent_zip)
    assert agent.sha256 == same.sha256
    assert asked[0] == ("balance.zip", True)
    assert load_agent(f"{NAME}/balance.zip").sha256 == same.sha256
    assert nappingrl.NappingAgent(NAME, method="napping").agent.sha256 == same.sha256


def test_a_name_in_a_file_starts_no_download(asked: list[tuple[str, bool]], napping: Napping) -> None:
    short = ("--trials", "1", "--protocol", "1+1", "--workers", "1", "--out", "r")
    assert napping("run", "cartpole", "--agent", NAME, *short).status == 0
    assert asked.count(("balance.zip", True)) == 1
    asked.clear()
    assert napping("replay", "r", "0").status == 0
    assert asked
    assert not any(with_network for _, with_network in asked)
    manifest = Path("r/manifest.json")
    content = json.loads(manifest.read_text())
    assert content["spec"]["agent"] == NAME
    content["spec"]["agent"] = "hf:evil/agent"
    manifest.write_text(json.dumps(content))
    asked.clear()
    done = napping("replay", "r", "0")
    assert done.status == 2
    assert not any(with_network for _, with_network in asked)
    assert RunFolder.open(Path("r")).manifest.spec["agent"] == "hf:evil/agent"


def test_a_saved_agent_starts_no_download(asked: list[tuple[str, bool]], tmp_path: Path) -> None:
    agent = nappingrl.NappingAgent(NAME, method="napping", detector="given")
    path = agent.save(tmp_path / "saved")
    asked.clear()
    shutil.rmtree(tmp_path / "hub")
    with pytest.raises(BadAgentError, match="a file starts no download"):
        nappingrl.NappingAgent.load(path)
    assert asked == [("balance.zip", False)]


@pytest.mark.parametrize("name", ["hf:", "hf:one", "hf:a/b/c.pkl", "hf:a/../b/c.zip", "hf:a b/c"])
def test_bad_names(name: str, asked: list[tuple[str, bool]]) -> None:
    with pytest.raises(BadAgentError, match="is not of the form hf:OWNER/NAME"):
        load(name)
    assert asked == []


def test_without_the_extra(napping: Napping, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert_refused(napping("run", "cartpole", "--agent", NAME), "huggingface_hub", 'pip install "nappingrl[hub]"')
    with pytest.raises(MissingExtraError):
        load(NAME)


def test_what_cannot_be_fetched_is_one_line(asked: list[tuple[str, bool]], napping: Napping) -> None:
    assert_refused(napping("run", "cartpole", "--agent", "hf:no/body"), "hf:no/body", "body.zip cannot be fetched")
