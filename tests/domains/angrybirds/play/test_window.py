"""The window: mouse, keys, and an agent that plays in it."""

from collections.abc import Iterator
from math import hypot

import numpy as np
import pytest

from domains.angrybirds.play.plays import ONE_PIG, SHORT, make_play
from nappingrl.domains.angrybirds.play.autoplay import Autoplay
from nappingrl.domains.angrybirds.play.window import SIZE, Window
from nappingrl.scripted.naive import NaivePolicy


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    opened = Window(make_play())
    yield opened
    opened.close()


def at(x: float, y: float) -> tuple[int, int]:
    """A point of the world in the window, with the camera of most levels."""
    across, down = ONE_PIG.camera.to_pixels(x, y)
    return round(across * SIZE[0] / 640), round(down * SIZE[1] / 480)


def post(kind: str, **values: object) -> None:
    import pygame

    pygame.event.post(pygame.event.Event(getattr(pygame, kind), values))


def test_a_bird_flies_from_where_it_was_dragged(window: Window) -> None:
    play = window._play
    x, y = play.world.sling.origin
    post("MOUSEBUTTONDOWN", button=1, pos=at(x, y))
    post("MOUSEMOTION", pos=at(x - 3.0, y - 2.0), rel=(0, 0), buttons=(1, 0, 0))
    assert window.turn()
    assert play.pull == pytest.approx((x - 3.0, y - 2.0), abs=0.03)
    held = next(thing for thing in play._scene().things if thing.id == play.world.scene().next_bird)
    assert hypot(held.x - x, held.y - y) == pytest.approx(1.0), "shown at the end of the band"
    assert play.world.birds_left == 2
    post("MOUSEBUTTONUP", button=1, pos=at(x - 3.0, y - 4.0))
    assert window.turn()
    assert play.world.birds_left == 1
    (bird,) = play.world.flying
    fallen = 1.5 * 0.02 * 4.7088  # in two steps, of which half of one was given at the launch
    assert (bird.vy + fallen) / bird.vx == pytest.approx(4 / 3, abs=0.015)
    assert hypot(bird.vx, bird.vy + fallen) == pytest.approx(10.0, abs=0.01)


def test_clicks_that_are_no_shots(window: Window) -> None:
    x, y = window._play.world.sling.origin
    for press, release in (((x + 4, y), (x - 3, y)), ((x, y), (x, y))):
        post("MOUSEBUTTONDOWN", button=1, pos=at(*press))
        post("MOUSEBUTTONUP", button=1, pos=at(*release))
        assert window.turn()
    post("MOUSEBUTTONDOWN", button=3, pos=at(x, y))
    post("MOUSEBUTTONUP", button=3, pos=at(x - 3, y))
    assert window.turn()
    assert window._play.world.birds_left == 2


def test_keys(window: Window) -> None:
    import pygame

    play = window._play
    x, y = play.world.sling.origin
    play.press(ONE_PIG.camera.to_pixels(x, y))
    play.drag((0, 400))
    play.let_go()
    assert play.world.birds_left == 1
    post("KEYDOWN", key=pygame.K_r)
    assert window.turn()
    assert (play.number, play.world.birds_left) == (0, 2)
    post("KEYDOWN", key=pygame.K_n)
    assert window.turn()
    assert play.number == 1
    post("KEYDOWN", key=pygame.K_ESCAPE)
    assert not window.turn()
    post("QUIT")
    assert not window.turn()


def test_an_agent_in_a_window_stops_after_its_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    play = make_play(SHORT)
    monkeypatch.setattr(play, "frame", lambda: np.zeros((480, 640, 3), np.uint8))
    window = Window(play, Autoplay(NaivePolicy(np.random.default_rng(0))), n_levels=2)
    post("MOUSEBUTTONDOWN", button=1, pos=(1, 1))
    while window.turn():
        pass
    window.close()
    assert (play.n_played, play.number) == (2, 1)
