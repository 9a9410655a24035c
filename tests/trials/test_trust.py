"""A manifest never gets a module imported: names module:id count only if the caller gives them."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import nappingrl
from command_line import Napping
from nappingrl.errors import BadRunError
from nappingrl.trials.store import RunFolder

MODULE = """
from pathlib import Path
import gymnasium
Path("imported").touch()
if "HostileEnv-v0" not in gymnasium.registry:
    gymnasium.register("HostileEnv-v0", "gymnasium.envs.classic_control:CartPoleEnv", max_episode_steps=20)
"""
ENV = "hostile_module:HostileEnv-v0"
OTHER = "other-env=hostile_module:HostileEnv-v0"


@pytest.fixture
def tampered(napping: Napping, agent_zip: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """A run whose manifest and rows someone has given another domain or novelty, beside a module of that name."""
    Path("hostile_module.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(Path.cwd()))

    def make(field: str, value: str) -> Path:
        nappingrl.run("cartpole", agent_zip, trials=3, protocol="1+2", detector="given", out="r")
        rows, file = RunFolder.open(Path("r")).read(), Path("r/manifest.json")
        manifest = json.loads(file.read_text())
        manifest["spec"][field] = value
        file.write_text(json.dumps(manifest))
        folder = RunFolder.open(Path("r"))
        spec = folder.manifest.record
        ids = dict(zip(rows["trial"].unique(maintain_order=True), spec.trial_ids((spec.novelty, i) for i in range(3)),
                       strict=True))  # fmt: skip
        folder.write(
            0,
            rows.with_columns(
                trial=rows["trial"].replace(ids), novelty=rows["novelty"].replace("physics", spec.novelty)
            ),
        )
        return folder.path

    return make


@pytest.mark.parametrize(("field", "value"), [("domain", ENV), ("novelty", OTHER), ("novelty", f"x=1; {OTHER}")])
def test_no_command_imports_what_a_manifest_names(
    napping: Napping, tampered: Callable[[str, str], Path], field: str, value: str
) -> None:
    run = tampered(field, value)
    for words in (
        ("replay", run, "0"), ("report", run, "--out", "o", "--trial", "0"), ("figure", "embedding-map", run),
    ):  # fmt: skip
        done = napping(*words)
        assert done.status == 2
        assert (
            "which imports hostile_module; if you trust that code, add --env hostile_module:HostileEnv-v0" in done.err
        )
        assert done.err.count("\n") == 1
    assert napping("report", run, "--out", "o").status == 0
    assert "add --env hostile_module:HostileEnv-v0" in Path("o/report.html").read_text()
    assert napping("export", run, "--format", "wsu", "--out", "e").status == 0
    assert napping("claims", run).status == 0
    with pytest.raises(BadRunError, match="if you trust that code"):
        nappingrl.read_run(run).replay("0")
    with pytest.raises(BadRunError, match="if you trust that code"):
        nappingrl.read_run(run).read_rules({})
    assert not Path("imported").exists()
    assert "hostile_module" not in sys.modules


def test_a_name_that_the_caller_gives_is_imported(
    napping: Napping, agent_zip: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("hostile_module.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(Path.cwd()))
    try:
        words = ("--agent", agent_zip, "--method", "frozen", "--trials", "2", "--protocol", "1+1", "--workers", "1")
        assert napping("run", "--env", ENV, *words, "--out", "r").status == 0
        assert Path("imported").exists()
        assert "add --env" in napping("replay", "r", "0").err
        assert "the same rows as stored" in napping("replay", "r", "0", "--env", ENV).out
        made = nappingrl.run(ENV, agent_zip, "frozen", trials=2, protocol="1+1", out="s")
        assert made.replay("1").is_same, "the caller typed the name"
        assert nappingrl.read_run("s", env=ENV).replay("1").is_same
    finally:
        sys.modules.pop("hostile_module", None)
