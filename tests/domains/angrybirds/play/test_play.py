"""Frames of a play."""

from domains.angrybirds.play.plays import ONE_PIG, make_play
from nappingrl.domains.angrybirds.play.live_world import LiveWorld
from nappingrl.domains.angrybirds.play.play import HAND_KEYS, Play


def test_the_bar_shows_score_and_keys() -> None:
    play, silent = make_play(), Play(lambda _: ONE_PIG, LiveWorld, keys="")
    assert "tap" in HAND_KEYS
    frame, other = play.frame(), silent.frame()
    assert frame.shape == (480, 640, 3)
    assert (frame[40:] == other[40:]).all(), "only the bar differs"
    assert not (frame[:40] == other[:40]).all()
