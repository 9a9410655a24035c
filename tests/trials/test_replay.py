"""One trial again: the same rows, its principles on disk, its rules in words."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from nappingrl.cli import main
from nappingrl.trials.store import RunFolder

RUN = ["run", "cartpole", "--trials", "3", "--protocol", "2+8", "--detector", "given", "--workers", "1", "--out", "r"]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_replay_gives_the_stored_rows(capsys: pytest.CaptureFixture[str]) -> None:
    main(RUN)
    main(["replay", "r", "1", "--json"])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["same"]
    assert len(found["returns"]) == 10
    assert "pole" in found["rules"][0]
    assert "visits in" in found["rules"][0]
    with np.load(found["file"], allow_pickle=False) as table:
        assert len(table["site"]) == len(table["wanted"]) > 0
    main(["replay", "r", found["trial"]])
    assert "the same rows as stored" in capsys.readouterr().out


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_other_rows_than_stored_are_status_1(capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    main(RUN)
    folder = RunFolder.open(Path("r"))
    folder.write(0, folder.read().with_columns(pl.col("return") + 1))
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(["replay", "r", "0", *options])
    assert ended.value.code == 1
    out, err = capsys.readouterr()
    assert ("OTHER ROWS" in out) != bool(options)
    assert re.fullmatch(r"napping: trial cartpole/\S+ gave other rows than r has; .*\n", err)


def test_unknown_trial(capsys: pytest.CaptureFixture[str]) -> None:
    main(RUN)
    capsys.readouterr()
    with pytest.raises(SystemExit) as stopped:
        main(["replay", "r", "3"])
    assert stopped.value.code == 2
    assert capsys.readouterr().err.startswith(
        "napping: no trial '3' in r; allowed: 0 to 2, or an id like cartpole/ppo/"
    )
