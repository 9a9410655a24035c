"""A tenth of the attack, as a part of the suite."""

from tests.attack.frames import attack


def test_hostile_frames_do_not_disturb_other_agents() -> None:
    outcome = attack(0.1, 5)
    assert outcome.failures == []
    assert outcome.tried == outcome.refused + outcome.survived == 1200
    assert min(outcome.refused, outcome.survived) > 100
