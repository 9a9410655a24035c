"""The attack by bad numbers notices an agent that learns from them."""

import pytest

from nappingrl.transition_filter import TransitionFilter
from tests.attack.outcome import Outcome
from tests.attack.poisoned import poison


@pytest.mark.parametrize("is_filtered", [True, False])
def test_what_is_learnt_from_bad_numbers_is_noticed(is_filtered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_filtered:
        monkeypatch.setattr(TransitionFilter, "accept", lambda *_: None)
    outcome = Outcome("poisoned")
    poison("napping", "given", 100, 1, outcome)
    assert outcome.tried > 0
    assert bool(outcome.failures) != is_filtered
    assert outcome.survived == outcome.tried - len(outcome.failures)
