"""What entries that no action controls say of the risk of an action."""

import numpy as np

from methods.facts.worlds import record
from nappingrl.methods.facts.records import Places
from nappingrl.methods.facts.signs import Signs

GO, STAY = 0, 1


def learned(n_deaths: int = 3) -> Signs:
    """Entry 0 is the position, entry 1 shows a car ahead, entry 2 one behind; with a car ahead, going is deadly."""
    places = Places(3)
    steps = [(t, (t, 0.5, -1), GO, (t + 1, -1, -1), -1.0, True) for t in range(n_deaths)]
    steps += [(t, (t, -1, -1), GO, (t + 1, -1, -1), 0.0, False) for t in range(20)]
    steps += [(t, (t, -1, 0.7), GO, (t + 1, -1, -1), 0.0, False) for t in range(5)]
    steps += [(t, (t, 0.5, -1), STAY, (t, -1, -1), 0.0, False) for t in range(5)]
    facts = record(places, steps).facts()
    signs = Signs(places.observations, np.array([True, False, False]), 2)
    shown = signs.shown(places.observations)
    for action in (GO, STAY):
        signs.count(shown, facts, facts.terminated, action, action)
    return signs


def risks(signs: Signs, *observation: float, before: float = 0.15) -> list[float]:
    shown = signs.shown(np.array([observation], np.float32))
    found: list[float] = signs.risks(shown, np.full((1, 2), before))[0].tolist()
    return found


def test_a_sign_warns_of_one_action_and_not_of_another() -> None:
    go, stay = risks(learned(), 40.0, 0.5, -1.0)
    assert go > 0.75
    assert stay < 0.05


def test_a_sign_that_never_did_harm_does_not_warn() -> None:
    assert risks(learned(), 40.0, -1.0, 0.7)[GO] < 0.05
    assert risks(learned(), 40.0, -1.0, -1.0)[GO] < 0.05


def test_the_worst_of_several_signs_counts() -> None:
    assert risks(learned(), 40.0, 0.5, 0.7)[GO] == risks(learned(), 40.0, 0.5, -1.0)[GO]


def test_without_a_step_the_risk_is_as_before() -> None:
    signs = Signs(np.zeros((4, 3), np.float32), np.array([True, False, False]), 2)
    assert risks(signs, 1.0, 0.5, -1.0, before=0.3) == [0.3, 0.3]
    none = Signs(np.zeros((4, 1), np.float32), np.array([True]), 2)
    assert risks(none, 1.0, before=0.3) == [0.3, 0.3]


def test_units_do_not_matter() -> None:
    """A sign is any value but the usual one, whatever its size."""
    assert risks(learned(), 40.0, 1e6, -1.0) == risks(learned(), 40.0, 0.5, -1.0)
