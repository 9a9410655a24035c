"""A short attack with model files in every run of the suite; `make attack` runs the long one."""

from tests.attack.model_files import attack


def test_mutated_model_files_are_refused_or_used() -> None:
    outcome = attack(0.03, seed=0)
    assert outcome.failures == []
    assert outcome.tried >= 180
    assert outcome.refused > 50
    assert outcome.survived > 20
