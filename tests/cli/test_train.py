"""`napping train`."""

from pathlib import Path

from cli.results import assert_refused
from command_line import Napping


def test_train_unknown_recipe(napping: Napping) -> None:
    assert_refused(napping("train", "cartpole", "pppo"), "pppo", "Did you mean")
    assert_refused(napping("train", "cartpol", "ppo"), "cartpol", "Did you mean")
    assert not Path("zoo").exists()
