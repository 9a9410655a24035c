"""`napping run`: what it prints and stores, and what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cli.results import SUMMARY, assert_refused, last_json
from command_line import Done, Napping
from nappingrl.agents import zoo_names
from nappingrl.domains.cartpole import CartPole
from nappingrl.registry import methods
from nappingrl.trials.store import RunFolder

ALL_METHODS = ", ".join(sorted(methods.names()))
NUMBERS = SUMMARY - {
    "domain", "agent", "method", "novelty", "trials", "seed", "seconds", "by_novelty", "ceiling", "role",
    "return_range", "diverged", "detector",
}  # fmt: skip


def test_run_json_has_the_documented_keys(run_short: Callable[..., Done], agent_zip: Path) -> None:
    done = run_short("--out", "r", "--seed", "7", "--json")
    found = last_json(done)
    assert done.out.count("\n") == 1
    assert set(found) == SUMMARY | {"notes"}
    assert found["notes"] == []
    assert {name: found[name] for name in ("domain", "agent", "method", "novelty", "trials", "seed")} == {
        "domain": "cartpole",
        "agent": str(agent_zip),
        "method": "napping",
        "novelty": "physics",
        "trials": 4,
        "seed": 7,
    }
    assert found["ceiling"] is None
    assert found["seconds"] > 0
    assert set(found["by_novelty"]) == {"physics"}
    assert set(found["by_novelty"]["physics"]) >= NUMBERS


def test_run_json_numbers_follow_from_the_rows(run_short: Callable[..., Done]) -> None:
    found = last_json(
        run_short("--out", "r", "--novelty", "all", "--detector", "given", "--protocol", "2+12", "--json")
    )
    rows = RunFolder.open(Path("r")).read()
    returns = rows["return"].to_numpy().reshape(-1, 14)
    post, last = returns[:, 2:], returns[:, -10:].mean(axis=1)
    regions = rows["regions"].to_numpy().reshape(-1, 14)[:, -1]
    assert len(returns) == 4 * len(CartPole.spec.novelties)
    assert found["median"] == pytest.approx(np.median(post, axis=0).tolist())
    assert found["mean"] == pytest.approx(post.mean(axis=0).tolist())
    assert found["pre_mean"] == pytest.approx(returns[:, :2].mean())
    assert found["last10_mean"] == pytest.approx(last.mean())
    assert found["solved"] == pytest.approx((last >= 195).mean())
    assert found["failed"] == (post <= 1).all(axis=1).sum()
    assert (found["regions_mean"], found["regions_max"]) == (pytest.approx(regions.mean()), regions.max())
    assert found["steps"] == rows["length"].sum()
    assert list(found["by_novelty"]) == list(CartPole.spec.novelties)
    gravity = rows.filter((pl.col("novelty") == "gravity") & (pl.col("episode") >= 2))
    assert found["by_novelty"]["gravity"]["last10_mean"] == pytest.approx(gravity["return"].mean())


def test_run_json_counts_failed_and_solved_in_mountaincar(
    napping: Napping, make_zip: Callable[..., Path], tmp_path: Path
) -> None:
    """A car that always coasts: failed are trials in which no post-novelty episode reaches the goal."""
    zero = [np.zeros(shape, np.float32) for shape in ((2, 4), (4,), (4, 3))]
    car = make_zip(tmp_path / "still.zip", [(zero[0], zero[1]), (zero[2], np.array([0, 1, 0], np.float32))])
    options = ("--agent", car, "--trials", "3", "--protocol", "1+2", "--workers", "1", "--json")
    frozen = last_json(napping("run", "mountaincar", "--method", "frozen", *options))
    assert (frozen["failed"], frozen["solved"], frozen["last10_mean"]) == (3, 0.0, -500.0)
    oracle = last_json(napping("run", "mountaincar", "--method", "oracle", *options))
    assert (oracle["failed"], oracle["solved"]) == (0, 1.0)
    assert oracle["ceiling"] == oracle["last10_mean"] > -500
    assert oracle["pre_mean"] == -500, "the trained agent before the novelty"
    # Adaptation begins with episode 5: until then no episode of any trial reaches the goal.
    learner = last_json(napping("run", "mountaincar", "--out", "r", *options, "--protocol", "0+8"))
    returns = RunFolder.open(Path("r")).read()["return"].to_numpy().reshape(3, 8)
    assert (returns[:, :5] == -500).all()
    assert learner["failed"] == (returns == -500).all(axis=1).sum() < 3


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["cartpole", "--detector", "never"], "in all 2 trials: detector 'never' raised no alarm"),
        (
            ["--env", "CartPole-v1", "--novelty", "gravity=30", "--detector", "given", "--method", "napping"],
            "no action has failed: score 'reward'",
        ),
    ],
)
def test_run_says_that_nothing_was_adapted(
    napping: Napping, agent_zip: Path, arguments: tuple[str, ...], text: str
) -> None:
    options = ("--agent", agent_zip, "--trials", "2", "--protocol", "1+2", "--workers", "1", "--json")
    done = napping("run", *arguments, *options)
    (note,) = json.loads(done.out)["notes"]
    assert note.startswith("napping acted as the frozen agent")
    assert text in note
    assert done.err == f"napping: {note}\n"


def test_run_without_a_first_phase_has_no_pre_mean(run_short: Callable[..., Done]) -> None:
    found = last_json(run_short("--protocol", "0+2", "--detector", "given", "--json"))
    assert found["pre_mean"] is None
    assert len(found["median"]) == len(found["mean"]) == 2


def test_run_prints_a_table_and_what_to_do_next(run_short: Callable[..., Done]) -> None:
    done = run_short("--out", "r")
    assert (done.status, done.err) == (0, "")
    assert "cartpole balance napping" in done.out
    assert "napping report r" in done.out
    assert (Path("r") / "manifest.json").exists()


def test_run_without_out_takes_a_fresh_folder(run_short: Callable[..., Done]) -> None:
    for _ in range(2):
        assert run_short("--protocol", "0+1").status == 0
    folders = sorted(Path("runs").iterdir())
    assert [folder.name for folder in folders] == ["cartpole-balance-napping-1", "cartpole-balance-napping-2"]
    assert all(len(RunFolder.open(folder).read()) == 4 for folder in folders)


def test_run_continues_and_recomputes_a_truncated_part(run_short: Callable[..., Done]) -> None:
    first = last_json(run_short("--out", "r", "--json"))
    part = Path("r") / "part-00000.parquet"
    whole = part.read_bytes()
    part.write_bytes(whole[:1000])
    done = run_short("--out", "r", "--json")
    assert done.status == 0
    assert done.err.count("\n") == 1
    assert "part-00000.parquet is damaged" in done.err
    assert "set aside as part-00000.parquet.damaged, recomputing" in done.err
    assert part.read_bytes() == whole
    assert json.loads(done.out) | {"seconds": 0} == first | {"seconds": 0}
    assert last_json(run_short("--out", "r", "--json")) | {"seconds": 0} == first | {"seconds": 0}


@pytest.mark.parametrize(
    "options", [("--rule", "printed"), ("--space", "raw"), ("--score", "terminal"),
                ("--option", "choice=preference"),
                ("--detector", "never"), ("--strength", "0.3"), ("--novelty", "none"), ("--seed", "8")]
)  # fmt: skip
def test_options_reach_the_manifest(run_short: Callable[..., Done], options: tuple[str, str]) -> None:
    assert run_short("--out", "r", "--protocol", "0+1", *options).status == 0
    spec = RunFolder.open(Path("r")).manifest.spec
    name, value = options[0].removeprefix("--"), options[1]
    if name == "option":
        name, value = value.split("=")
    assert str((spec | spec["options"])[name]) == value
    assert set(spec["options"]) <= {"rule", "space", name}


@pytest.mark.parametrize(
    ("options", "texts"),
    [
        (("--method", "naping"), ("unknown method 'naping'", ALL_METHODS, "Did you mean 'napping'?")),
        (("--novelty", "physix"), ("unknown novelty 'physix'", "all, ", "Did you mean 'physics'?")),
        (("--score", "termina"), ("unknown score 'termina'", "Did you mean 'terminal'?")),
        (("--rule", "reviced"), ("unknown rule 'reviced'", "Did you mean 'revised'?")),
        (("--space", "embeddng"), ("unknown space 'embeddng'", "Did you mean 'embedding'?")),
        (("--option", "choice=randm"), ("unknown choice 'randm'", "Did you mean 'random'?")),
        (("--detector", "rolling"), ("unknown detector 'rolling'", "Did you mean 'rolling-mean'?")),
        (("--trials", "0"), ("trials 0", "from 1 to 10000000")),
        (("--trials", "-2"), ("trials -2", "from 1 to 10000000")),
        (("--workers", "-1"), ("workers -1", "from 0 to 1024")),
        (("--strength", "0"), ("strength 0", "(0, 1]")),
        (("--strength", "nan"), ("strength nan", "(0, 1]")),
        (("--seed", "-1"), ("seed -1",)),
        (("--protocol", "forty"), ("unknown protocol 'forty'", "10+40")),
    ],
)
def test_bad_options(run_short: Callable[..., Done], options: tuple[str, ...], texts: tuple[str, ...]) -> None:
    assert_refused(run_short(*options), *texts)


def test_unknown_domain(napping: Napping, agent_zip: Path) -> None:
    for agent in ("ppo", agent_zip):
        done = napping("run", "cartpol", "--agent", agent)
        assert_refused(done, "unknown domain 'cartpol'", "mountaincar", "Did you mean 'cartpole'?")


def test_unknown_agent(napping: Napping) -> None:
    done = napping("run", "cartpole", "--agent", "pppo")
    assert_refused(done, "unknown agent 'pppo'")
    if "ppo" in zoo_names("cartpole"):
        assert "Did you mean 'ppo'?" in done.err


def test_agent_file_that_does_not_exist(napping: Napping) -> None:
    assert_refused(napping("run", "cartpole", "--agent", "nowhere/agent.zip"), "nowhere/agent.zip", "does not exist")


@pytest.mark.parametrize("name", ["notes.txt", "notes", "notes.zip"])
def test_a_text_file_given_as_agent(napping: Napping, name: str) -> None:
    Path(name).write_text("not an agent\n")
    assert_refused(napping("run", "cartpole", "--agent", name), name, "no zip file")


def test_agent_of_another_observation_shape(napping: Napping, agent_zip: Path) -> None:
    done = napping("run", "mountaincar", "--agent", agent_zip, "--trials", "1")
    assert_refused(done, "(4,)", "(2,)", "mountaincar")


def test_out_folder_of_another_experiment(run_short: Callable[..., Done]) -> None:
    assert run_short("--out", "r").status == 0
    assert_refused(run_short("--out", "r", "--seed", "1"), "r holds another run", "seed is 0 there and 1 here", "--out")
    refused = run_short("--out", "r", "--trials", "3")
    assert_refused(refused, "r holds another run", "trials is 4 there and 3 here, and a run can only grow")


def test_a_run_of_one_novelty_grows(napping: Napping, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finished trials keep their rows, and finished parts their bytes."""
    monkeypatch.setattr("nappingrl.trials.chunks.CHUNK", 2)

    def grow(trials: int, out: str) -> pl.DataFrame:
        words = ("--protocol", "1+2", "--workers", "1", "--out", out)
        assert napping("run", "cartpole", "--trials", str(trials), *words).status == 0
        return RunFolder.open(Path(out)).read()

    before = grow(3, "r")
    part = Path("r/part-00000.parquet").read_bytes()
    after = grow(5, "r")
    assert after.head(len(before)).equals(before)
    assert after["trial"].n_unique() == 5
    assert Path("r/part-00000.parquet").read_bytes() == part
    assert after.equals(grow(5, "whole"))


def test_a_run_of_all_novelties_does_not_grow(run_short: Callable[..., Done]) -> None:
    words = ("--novelty", "all", "--protocol", "0+1", "--out", "r")
    assert run_short(*words).status == 0
    assert_refused(run_short(*words, "--trials", "5"), "trials is 4 there and 5 here", "only a run of one novelty")


def test_a_piped_table_has_one_line_per_run(run_short: Callable[..., Done]) -> None:
    head, row, *others = run_short("--out", "r").out.splitlines()
    assert head.split()[0] == "run"
    assert head.rstrip().endswith("paired difference")
    assert row.startswith("cartpole balance napping")
    assert [line for line in others if "cartpole" in line] == []


def test_a_long_run_is_announced(napping: Napping, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nappingrl.cli.run.LONG", 0.0)
    words = ("--trials", "1", "--protocol", "0+1", "--workers", "1", "--out", "r")
    assert "minutes on 1 workers" in napping("run", "cartpole", "--method", "frozen", *words).err
    assert "minutes" not in napping("run", "cartpole", "--method", "frozen", *words).err, "it is finished"


def test_out_folder_of_something_else(run_short: Callable[..., Done]) -> None:
    Path("r").mkdir()
    Path("r/thesis.tex").write_text("x")
    assert_refused(run_short("--out", "r"), "not empty and holds no run")


@pytest.mark.parametrize("out", ["file", "file/run"])
def test_out_is_a_file(run_short: Callable[..., Done], out: str) -> None:
    Path("file").write_text("x")
    assert_refused(run_short("--out", out), "file")
    assert Path("file").read_text() == "x"
