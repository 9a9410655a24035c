"""Short runs for the tests of the commands."""

from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import Done, Napping


@pytest.fixture
def run_short(napping: Napping, agent_zip: Path) -> Callable[..., Done]:
    """`napping run cartpole` with few and short trials."""

    def call(*arguments: str | Path) -> Done:
        return napping(
            "run", "cartpole", "--agent", agent_zip, "--trials", "4", "--protocol", "2+7", "--workers", "1", *arguments
        )

    return call
