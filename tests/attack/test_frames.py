"""A tenth of the attack, as a part of the suite."""

from tests.attack.frames import attack


def test_hostile_frames_and_bad_company_disturb_nobody() -> None:
    outcome = attack(0.1, 5)
    assert outcome.failures == []
    assert outcome.tried == outcome.refused + outcome.survived == 1200
    assert min(outcome.refused, outcome.survived) > 100
