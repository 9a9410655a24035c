"""How many trials a worker takes at a time."""

import pytest

from nappingrl.errors import BadSpecError
from nappingrl.trials.chunks import chunk_size, n_chunks
from nappingrl.trials.spec import RunSpec


@pytest.mark.parametrize(
    ("domain", "method", "size"),
    [
        ("cartpole", "frozen", 128),
        ("cartpole", "napping", 128),
        ("cartpole", "foresight", 128),
        ("cartpole", "finetune", 32),
        ("mountaincar", "online", 32),
        ("crossroad", "napping", 128),
        ("crossroad", "online", 32),
        ("angrybirds", "frozen", 8),
        ("Acrobot-v1", "frozen", 16),
    ],
)
def test_a_table_says_how_large_chunks_are(domain: str, method: str, size: int) -> None:
    spec = RunSpec(domain, "agent", method, trials=1000)
    assert chunk_size(spec) == size
    assert n_chunks(spec) == -(-1000 // size)


@pytest.mark.parametrize(("trials", "size"), [(1023, 32), (1024, 128)])
def test_long_runs_of_costly_methods_have_large_chunks(trials: int, size: int) -> None:
    assert chunk_size(RunSpec("mountaincar", "agent", "auto", trials=trials)) == size


@pytest.mark.parametrize(
    ("domain", "method", "size"),
    [("cartpole", "auto", 6), ("mountaincar", "online", 6), ("crossroad", "online", 32), ("cartpole", "napping", 128)],
)
def test_a_few_long_trials_keep_several_workers_busy(domain: str, method: str, size: int) -> None:
    assert chunk_size(RunSpec(domain, "agent", method, trials=63)) == size
    assert chunk_size(RunSpec(domain, "agent", method, trials=64)) == max(size, 32)


def test_a_run_of_too_many_parts_is_refused() -> None:
    with pytest.raises(BadSpecError, match="at most 100000 are stored"):
        n_chunks(RunSpec("cartpole", "ppo", "online", trials=20_000_000))
