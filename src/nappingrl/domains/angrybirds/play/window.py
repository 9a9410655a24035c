"""A window with mouse and keys, in real time."""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from nappingrl.domains.angrybirds.physics.scene import PIXELS
from nappingrl.domains.angrybirds.play.autoplay import Autoplay
from nappingrl.domains.angrybirds.play.play import Play
from nappingrl.domains.angrybirds.play.record import FRAMES_PER_SECOND, Recorder
from nappingrl.errors import MissingExtraError

SIZE = (960, 720)
"""Initial size; the window can be resized."""
LEFT_BUTTON = 1


class Window:
    """Shows a play until it is closed. An agent plays level after level.

    Args:
        play: The play to show.
        agent: Plays instead of the mouse.
        recorder: Records every frame.
        n_levels: Levels after which the window closes; 0: never.
    """

    def __init__(
        self, play: Play, agent: Autoplay | None = None, recorder: Recorder | None = None, n_levels: int = 0
    ) -> None:
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
        try:
            import pygame
        except ImportError as error:
            raise MissingExtraError('a window needs pygame: pip install "nappingrl[render]"') from error
        self._pygame = pygame
        self._play = play
        self._agent = agent
        self._recorder = recorder
        self._n_levels = n_levels
        pygame.display.init()
        self._screen = pygame.display.set_mode(SIZE, pygame.RESIZABLE)
        pygame.display.set_caption("Angry Birds - nappingrl")
        self._clock = pygame.time.Clock()
        self._frames: Iterator[None] | None = None
        self._begin_level()

    def run(self) -> None:
        """Show frames until the window is closed."""
        try:
            while self.turn():
                self._clock.tick(FRAMES_PER_SECOND)
        finally:
            self.close()

    def close(self) -> None:
        """Close the window."""
        self._pygame.display.quit()

    def turn(self) -> bool:
        """Handle events, advance and draw one frame. False when the window must close."""
        for event in self._pygame.event.get():
            if not self._handle(event):
                return False
        if self._frames is None:
            self._play.advance()
        elif next(self._frames, self) is self:  # the agent has finished the level
            if self._play.n_played == self._n_levels:
                return False
            self._play.next_level()
            self._begin_level()
        self._show()
        return True

    def _begin_level(self) -> None:
        """Let the agent, if there is one, begin the level."""
        self._frames = self._agent.play_level(self._play) if self._agent is not None else None

    def _show(self) -> None:
        pygame, frame = self._pygame, self._play.frame()
        if self._recorder is not None:
            self._recorder.add(lambda: frame)
        surface = pygame.surfarray.make_surface(np.transpose(frame, (1, 0, 2)))
        pygame.transform.smoothscale(surface, self._screen.get_size(), self._screen)
        pygame.display.flip()

    def _handle(self, event: Any) -> bool:
        """Handle one event. False if it closes the window."""
        pygame = self._pygame
        if event.type == pygame.QUIT:
            return False
        if event.type == pygame.KEYDOWN:
            return self._handle_key(event.key)
        if self._agent is None:
            self._handle_mouse(event)
        return True

    def _handle_key(self, key: int) -> bool:
        pygame = self._pygame
        if key == pygame.K_ESCAPE:
            return False
        if key in (pygame.K_r, pygame.K_n):
            (self._play.restart if key == pygame.K_r else self._play.next_level)()
            self._begin_level()
        elif key == pygame.K_SPACE and self._agent is None:
            self._play.world.tap()
        return True

    def _handle_mouse(self, event: Any) -> None:
        pygame, play = self._pygame, self._play
        if event.type == pygame.MOUSEMOTION:
            play.drag(self._pixel(event.pos))
        elif event.type == pygame.MOUSEBUTTONDOWN and event.button == LEFT_BUTTON:
            play.press(self._pixel(event.pos))
        elif event.type == pygame.MOUSEBUTTONUP and event.button == LEFT_BUTTON:
            play.drag(self._pixel(event.pos))
            play.let_go()

    def _pixel(self, place: tuple[int, int]) -> tuple[float, float]:
        """A position in the window as a pixel of the game's screen."""
        width, height = self._screen.get_size()
        return place[0] * PIXELS[0] / width, place[1] * PIXELS[1] / height
