"""A share of the attack on manifests, in every test run."""

import json
from pathlib import Path

import pytest

import nappingrl
from nappingrl.agents.base import Agent
from nappingrl.errors import BadRunError
from tests.attack.manifests import VALUES, attack, paths_of


def test_mutated_manifests_are_refused_in_one_line_or_used() -> None:
    outcome = attack(0.06, seed=0)
    assert outcome.failures == []
    assert outcome.tried == 300
    assert outcome.refused > 100
    assert outcome.survived > 10


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("n_trials", 10**12, "Expected `int` <= 10000000 - at `$.n_trials`"),
        ("n_trials", 3, "n_trials is 3, but its spec has 2 trials"),
        ("chunk", 0, "Expected `int` >= 1 - at `$.chunk`"),
        ("n_episodes", 10**12, "at `$.n_episodes`"),
        ("n_episodes", 7, "n_episodes is 7, but protocol 1+2 has 3"),
        ("return_range", [5, 5], "the first number must be the smaller one"),
        ("solved_level", None, "go together"),
        ("role", "boss", "unknown role 'boss'"),
        ("spec", {"domain": "cartpole"}, "its spec has no 'agent'"),
        ("notes", ["a\nb"], "matching regex"),
    ],
)
def test_fields_of_a_manifest_are_checked(agent: Agent, tmp_path: Path, field: str, value: object, text: str) -> None:
    nappingrl.run("cartpole", agent, "frozen", trials=2, protocol="1+2", out=tmp_path)
    file = tmp_path / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {field: value}))
    with pytest.raises(BadRunError, match=r"manifest\.json cannot be read") as caught:
        nappingrl.read_run(tmp_path)
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_missing_field_is_named(agent: Agent, tmp_path: Path) -> None:
    nappingrl.run("cartpole", agent, "frozen", trials=2, protocol="1+2", out=tmp_path)
    file = tmp_path / "manifest.json"
    whole = json.loads(file.read_text())
    needed = ["version", "source_sha256", "agent_sha256", "chunk", "n_trials", "n_episodes", "spec"]
    for path in [(name,) for name in needed] + [("spec", name) for name in whole["spec"]]:
        manifest = json.loads(json.dumps(whole))
        place = manifest if len(path) == 1 else manifest["spec"]
        del place[path[-1]]
        file.write_text(json.dumps(manifest))
        with pytest.raises(BadRunError, match=path[-1]):
            nappingrl.read_run(tmp_path)


def test_the_mutators_reach_every_field() -> None:
    assert list(paths_of({"a": [1, {"b": 2}]})) == [("a",), ("a", 0), ("a", 1), ("a", 1, "b")]
    assert len(VALUES) > 30
