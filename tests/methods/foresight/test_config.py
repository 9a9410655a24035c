"""The settings of foresight: options of the method, documented in one table."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal

import nappingrl
from nappingrl.agents.base import Agent
from nappingrl.domains.cartpole import CartPole
from nappingrl.errors import NappingError
from nappingrl.methods.base import read_options
from nappingrl.methods.foresight import Foresight
from nappingrl.methods.foresight.config import ForesightConfig, read_config
from nappingrl.novelties.novelty import Novelty
from nappingrl.trials.spec import RunSpec

ROOT = Path(__file__).parents[3]
DEFAULTS = {name: option.default for name, option in Foresight.options.items()}


def test_every_setting_is_an_option() -> None:
    assert list(Foresight.options) == [field.name for field in fields(ForesightConfig)]
    assert all(option.description for option in Foresight.options.values())


def test_defaults_are_left_out_and_give_the_default_config() -> None:
    assert read_options("foresight", DEFAULTS) == {}
    assert read_config({}) == ForesightConfig()
    assert read_config(DEFAULTS) == ForesightConfig()


def test_values_are_read_as_the_type_of_their_setting() -> None:
    given = {"n_mutants": "7", "min_relative_gain": "0.1", "residual_gains": "-1, 2.5"}
    read = read_options("foresight", given)
    assert read == {"n_mutants": 7, "min_relative_gain": 0.1, "residual_gains": "-1,2.5"}
    config = read_config(read)
    assert (config.n_mutants, config.min_relative_gain, config.residual_gains) == (7, 0.1, (-1.0, 2.5))
    assert isinstance(config.n_mutants, int)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"min_relative_gian": 1}, "min_relative_gain"),
        ({"n_mutants": 2.5}, "whole number"),
        ({"n_rollouts": 0}, "range"),
        ({"residual_gains": "big"}, "list of numbers"),
    ],
)
def test_bad_options_are_refused_in_one_line(option: dict[str, Any], words: str) -> None:
    with pytest.raises(NappingError, match=words) as caught:
        read_options("foresight", option)
    assert "\n" not in str(caught.value)


def test_an_option_changes_what_foresight_does_and_its_default_does_not(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    hard = {"length": 3.5, "gravity": 38.0, "masscart": 1.5, "masspole": 0.7, "force": 53.0}
    novelty = Novelty("hard", {name: (value, value) for name, value in hard.items()})
    monkeypatch.setitem(CartPole.spec.novelties, "hard", novelty)

    def rows_of(options: dict[str, Any]) -> Any:
        run = nappingrl.run(
            "cartpole", agent, "foresight", novelty="hard", detector="given", trials=1, protocol="12+4", options=options
        )
        return run.rows.drop("trial")

    plain = rows_of({})
    assert_frame_equal(rows_of(DEFAULTS), plain)
    never = rows_of({"min_relative_gain": 1e9})
    assert plain["regions"].sum() > 0
    assert never["regions"].sum() == 0, "no gain is large enough"


def test_defaults_do_not_change_the_trial_id() -> None:
    plain, given = (
        RunSpec("cartpole", "ppo", "foresight", trials=1, options=options).complete()
        for options in ({}, {"n_mutants": 30})
    )
    assert plain.trial_specs() == given.trial_specs()


def table_of_settings() -> str:
    """The table in docs/methods/foresight.md."""
    rows = [f"| `{name}` | {option.default} | {option.description} |" for name, option in Foresight.options.items()]
    return "\n".join(["| option | default | meaning |", "|---|---|---|", *rows])


def test_the_docs_list_every_setting() -> None:
    page = (ROOT / "docs/methods/foresight.md").read_text(encoding="utf-8")
    assert table_of_settings() in page, "paste what table_of_settings() returns"
