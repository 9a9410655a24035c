"""Run folders: complete parts or none, and never rows of two experiments."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import nappingrl
from nappingrl._build import source_sha256
from nappingrl.agents.base import Agent
from nappingrl.errors import BadRunError
from nappingrl.trials.manifest import make_manifest
from nappingrl.trials.manifest_record import Manifest
from nappingrl.trials.spec import RunSpec
from nappingrl.trials.store import RunFolder

N_EPISODES, CHUNK = 2, 3
SPEC = RunSpec("cartpole", "a/b.zip", "napping", "physics", trials=5, seed=1, protocol="1+1")


@pytest.fixture
def manifest() -> Manifest:
    """A run of five trials in two parts."""
    return Manifest(
        spec=msgspec.to_builtins(SPEC),
        version="1.0",
        source_sha256="s" * 64,
        agent_sha256="a" * 64,
        chunk=CHUNK,
        n_trials=5,
        n_episodes=N_EPISODES,
        return_range=(1.0, 200.0),
        solved_column="return",
        solved_level=195.0,
        command="napping run",
        versions={"python": "3"},
    )


@pytest.fixture
def folder(tmp_path: Path, manifest: Manifest) -> RunFolder:
    """Such a run, finished."""
    made = RunFolder.create(tmp_path / "run", manifest)
    for chunk in range(2):
        made.write(chunk, rows(chunk))
    return made


def rows(chunk: int, spec: RunSpec = SPEC) -> pl.DataFrame:
    trials = [trial for trial in range(chunk * CHUNK, min(5, (chunk + 1) * CHUNK)) for _ in range(N_EPISODES)]
    n = len(trials)
    return pl.DataFrame(
        {
            "trial": spec.trial_ids([("physics", trial) for trial in trials]),
            "novelty": ["physics"] * n,
            "number": pl.Series(trials, dtype=pl.Int32),
            "episode": pl.Series([-1, 0] * (n // 2), dtype=pl.Int32),
            "return": [float(trial) for trial in trials],
            "length": pl.Series([1] * n, dtype=pl.Int32),
            "won": [False] * n,
            "detected": [False] * n,
            "regions": pl.Series([0] * n, dtype=pl.Int32),
            "status": ["ok"] * n,
        }
    )


def listing(folder: RunFolder) -> list[str]:
    return sorted(file.name for file in folder.path.iterdir())


def test_manifest_comes_back_as_it_was(tmp_path: Path, manifest: Manifest) -> None:
    made = RunFolder.create(tmp_path / "deep" / "run", manifest)
    assert listing(made) == ["manifest.json"]
    assert RunFolder.open(made.path).manifest == manifest
    text = (made.path / "manifest.json").read_text()
    assert json.loads(text)["spec"]["method"] == "napping"
    assert "\n" in text, "for people"
    assert manifest.n_chunks == 2
    assert manifest.label == "cartpole b napping"


def test_manifest_of_a_run(agent: Agent) -> None:
    spec = RunSpec("mountaincar", "x", trials=130, novelty="all", protocol="1+2").complete()
    made = make_manifest(spec, agent.sha256, "the command")
    assert made.spec == {
        "domain": "mountaincar", "agent": "x", "method": "napping", "novelty": "all", "trials": 130, "seed": 0,
        "strength": 1.0, "score": "from-rest-right", "detector": "rolling-mean",
        "protocol": "1+2", "options": {"rule": "fallback", "space": "raw"}, "guard": False,
        "domain_options": {},
    }  # fmt: skip
    assert (made.n_trials, made.n_episodes) == (390, 3)
    assert made.n_chunks == 4
    assert made.version == nappingrl.__version__
    assert made.agent_sha256 == agent.sha256
    assert made.source_sha256 == source_sha256()
    assert made.command == "the command"
    assert {"python", "numpy", "numba", "gymnasium", "polars"} <= set(made.versions)


def test_rows_come_back_in_the_order_of_the_trials(tmp_path: Path, manifest: Manifest) -> None:
    made = RunFolder.create(tmp_path / "run", manifest)
    made.write(1, rows(1))
    assert made.pending() == [0]
    made.write(0, rows(0))
    assert made.pending() == []
    assert_frame_equal(made.read(), pl.concat([rows(0), rows(1)]))
    parts = [f"part-0000{i}.parquet{end}" for i in (0, 1) for end in ("", ".sha256")]
    assert listing(made) == ["manifest.json", *parts]


def test_the_same_run_is_continued(folder: RunFolder, manifest: Manifest) -> None:
    again = RunFolder.create(folder.path, replace(manifest, command="another", versions={}))
    assert again.pending() == []
    assert again.manifest.command == "napping run", "how it was started first"
    assert_frame_equal(again.read(), folder.read())


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"spec": msgspec.to_builtins(replace(SPEC, seed=2))}, "seed is 1 there and 2 here"),
        ({"agent_sha256": "b" * 64}, "agent has changed"),
        ({"source_sha256": "t" * 64}, "source has changed"),
        ({"version": "2.0"}, "version is '1.0' there and '2.0' here"),
        ({"n_trials": 6}, "n_trials is 5 there and 6 here"),
        ({"chunk": 4}, "chunk is 3 there and 4 here"),
    ],
)
def test_another_experiment_is_refused(
    folder: RunFolder, manifest: Manifest, change: dict[str, Any], text: str
) -> None:
    before = {file: file.read_bytes() for file in folder.path.iterdir()}
    with pytest.raises(BadRunError, match=r"holds another run: .*; use another --out") as caught:
        RunFolder.create(folder.path, replace(manifest, **change))
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)
    assert {file: file.read_bytes() for file in folder.path.iterdir()} == before


def test_a_file_is_refused(tmp_path: Path, manifest: Manifest) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(BadRunError, match="is a file; --out takes a folder"):
        RunFolder.create(tmp_path / "file", manifest)


def test_a_folder_below_a_file_is_refused(tmp_path: Path, manifest: Manifest) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(BadRunError):
        RunFolder.create(tmp_path / "file" / "run", manifest)


def test_a_folder_of_something_else_is_refused(tmp_path: Path, manifest: Manifest) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(BadRunError, match="not empty and holds no run"):
        RunFolder.create(tmp_path, manifest)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_an_empty_folder_is_taken(tmp_path: Path, manifest: Manifest) -> None:
    assert RunFolder.create(tmp_path, manifest).pending() == [0, 1]


def test_a_run_that_was_killed_before_its_manifest_was_whole_begins_again(tmp_path: Path, manifest: Manifest) -> None:
    (tmp_path / "manifest.json.tmp").write_text('{"spec"')
    assert RunFolder.create(tmp_path, manifest).pending() == [0, 1]


def test_no_run_no_rows_and_damaged_manifest(tmp_path: Path, manifest: Manifest) -> None:
    with pytest.raises(BadRunError, match=r"manifest\.json is missing"):
        RunFolder.open(tmp_path)
    with pytest.raises(BadRunError, match=r"manifest\.json is missing"):
        RunFolder.open(tmp_path / "nowhere")
    made = RunFolder.create(tmp_path, manifest)
    with pytest.raises(BadRunError, match="no rows yet"):
        made.read()
    for text in ("{", "[]", '{"spec": {}}', "\xff"):
        (tmp_path / "manifest.json").write_bytes(text.encode("latin-1"))
        with pytest.raises(BadRunError, match=r"manifest\.json cannot be read") as caught:
            RunFolder.open(tmp_path)
        assert "\n" not in str(caught.value)


def truncate(file: Path, share: float = 0.5) -> None:
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * share)])


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_damaged_part_is_named_set_aside_and_missing(
    folder: RunFolder, share: float, capsys: pytest.CaptureFixture[str]
) -> None:
    part = folder.part(1)
    truncate(part, share)
    damaged = part.read_bytes()
    assert folder.pending() == [1]
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert part.name in err
    assert "damaged" in err
    (aside,) = [file for file in folder.path.iterdir() if "damaged" in file.name]
    assert aside.read_bytes() == damaged
    assert not aside.name.endswith(".parquet")
    assert not part.exists()
    folder.write(1, rows(1))
    assert folder.pending() == []
    assert capsys.readouterr().err == ""
    assert_frame_equal(folder.read(), pl.concat([rows(0), rows(1)]))


def test_a_part_with_too_few_rows_is_damaged(folder: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.write(0, rows(0).head(5))
    assert folder.pending() == [0]
    assert "5 rows instead of 6" in capsys.readouterr().err


def test_reading_a_damaged_part_names_it(folder: RunFolder) -> None:
    truncate(folder.part(1))
    with pytest.raises(BadRunError, match=r"is damaged \(its checksum.*\); delete it and run the command") as caught:
        folder.read()
    assert "part-00001.parquet" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_temporary_files_are_never_read(folder: RunFolder) -> None:
    """What a killed writer leaves behind does not end in .parquet."""
    for name in ("part-00000.123.tmp", "part-00007.9.tmp", "manifest.json.tmp", "part-00001.parquet.damaged"):
        (folder.path / name).write_bytes(b"half a file")
    assert folder.pending() == []
    assert_frame_equal(RunFolder.open(folder.path).read(), pl.concat([rows(0), rows(1)]))


def test_a_part_appears_whole_or_not_at_all(
    tmp_path: Path, manifest: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = RunFolder.create(tmp_path, manifest)

    def die(self: Path, target: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", die)
        with pytest.raises(KeyboardInterrupt):
            made.write(0, rows(0))
    assert not made.part(0).exists()
    assert made.pending() == [0, 1]
    made.write(0, rows(0))
    assert made.pending() == [1]


@pytest.mark.parametrize("place", range(0, 1200, 97))
def test_no_flipped_bit_is_read(folder: RunFolder, place: int) -> None:
    """Parquet itself reads many a flipped bit as another number."""
    content = bytearray(folder.part(0).read_bytes())
    content[place % len(content)] ^= 4
    folder.part(0).write_bytes(content)
    with pytest.raises(BadRunError, match="part-00000"):
        folder.read()
    assert folder.pending() == [0]
