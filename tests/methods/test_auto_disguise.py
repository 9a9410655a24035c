"""No method reads the layout of an environment: disguised observations and actions change nothing."""

from argparse import Namespace
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from benchmark_scripts import load_benchmark


@pytest.fixture(scope="module")
def benchmark() -> Any:
    return load_benchmark("disguise")


@pytest.mark.parametrize("novelty", ["force_mag=-10", "obs"])
def test_auto_recovers_as_well_in_disguise(benchmark: Any, agent_zip: Path, novelty: str) -> None:
    """Sensor 2 negated is sensor k of the disguised environment; the force needs no translation."""
    ends = []
    for is_disguised in (False, True):
        text = novelty
        if novelty == "obs":
            order = benchmark.Disguise(gymnasium.make("CartPole-v1")).order.tolist()
            text = f"obs-scale[{order.index(2) if is_disguised else 2}]=-1"
        found = benchmark.returns(
            Namespace(
                env="CartPole-v1",
                domain="",
                agent=str(agent_zip),
                novelty=text,
                swap=[],
                trials=3,
                seed=7,
                protocol="10+6",
            ),
            is_disguised,
        )
        ends.append(found.mean())
    assert ends[0] > 300
    assert abs(ends[1] - ends[0]) < 0.1 * ends[0]
