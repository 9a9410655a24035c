"""When the original world is taken to be back."""

import numpy as np
import pytest

from nappingrl.detectors.residual import ResidualConfig
from nappingrl.detectors.residual.recognition import JUDGED_EVERY, MAX_JOINT, N_JUDGED_EACH, Recognition
from nappingrl.types import DomainSpec
from nappingrl.world_model.action_encoding import ActionEncoding

ROWS = np.arange(1)


def recognition(k: int) -> tuple[Recognition, ActionEncoding]:
    low, high = np.full(3, -np.inf), np.full(3, np.inf)
    encoding = ActionEncoding(
        DomainSpec(low, high, n_actions=0, horizon=10, action_low=-np.ones(k), action_high=np.ones(k))
    )
    made = Recognition(1, encoding, ResidualConfig())
    made.start(ROWS)
    return made, encoding


def play(made: Recognition, encoding: ActionEncoding, action: list[float], n: int, is_beyond: bool) -> bool:
    """Count steps with an action; returns whether the original world is back."""
    for _ in range(n):
        made.count(ROWS, encoding(np.array([action])), np.array([is_beyond]), np.array([True]))
    return bool(made.is_back(ROWS)[0])


@pytest.mark.parametrize("k", [1, 2, MAX_JOINT + 1])
def test_steps_that_leave_the_engine_off_do_not_speak_for_a_return(k: int) -> None:
    made, encoding = recognition(k)
    on, off = [1.0] + [0.0] * (k - 1), [0.1] + [0.0] * (k - 1)
    assert not play(made, encoding, on, 30, is_beyond=True)
    assert not play(made, encoding, off, 500, is_beyond=False)
    assert play(made, encoding, on, 28, is_beyond=False), "528 calm steps: judged every 16th"


def test_a_long_calm_stretch_is_judged_now_and_then() -> None:
    """Each judgement reads all steps since the alarm."""
    made, encoding = recognition(1)
    play(made, encoding, [1.0], 30, is_beyond=True)
    assert play(made, encoding, [1.0], N_JUDGED_EACH, is_beyond=False)
    due = [play(made, encoding, [1.0], 1, is_beyond=False) for _ in range(2 * JUDGED_EVERY)]
    assert sum(due) == 2
