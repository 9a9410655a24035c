"""Why an agent does not adapt, and what it left out: notes to read, and one warning each."""

import warnings

import numpy as np

from nappingrl.adaptation import Adaptation
from nappingrl.errors import AdaptationWarning
from nappingrl.types import Rows

FEW_STEPS, MANY_STEPS = 20, 200
"""Steps in a changed context after which an idle method is worth a warning: at an episode's end, and within one."""


class Notices:
    """What a user should know of an adaptation while it runs; each kind of note is a warning once."""

    def __init__(self, adaptation: Adaptation, method: str, detector: str) -> None:
        self.adaptation, self._method, self._detector = adaptation, method, detector
        self._n_changed = np.zeros(adaptation.method.n, np.int64)
        """Steps observed in a changed context."""
        self._warned: set[str] = set()

    def notes(self, env: int) -> dict[str, str]:
        """What there is to say of an environment, by who it is about: detector, method, dropped steps."""
        notes, adaptation = {}, self.adaptation
        if adaptation.contexts[env]:
            if self._n_changed[env] >= FEW_STEPS and (why := adaptation.method.status(env)):
                notes["method"] = f"method '{self._method}' acts as the frozen agent: {why}"
        elif adaptation.method.needs_alarm and (why := adaptation.detector.status(env)):
            notes["detector"] = (
                f"method '{self._method}' waits for an alarm: detector '{self._detector}' {why}; "
                "if the environment has changed already, use detector='given'"
            )
        if count := int(adaptation.filter.n_dropped[env]):
            notes["dropped"] = f"{count} observed steps were left out: numbers that are not finite or absurdly large"
        return notes

    def count(self, rows: Rows) -> bool:
        """Count one step of each row; returns whether one of them is due for a look within its episode."""
        self._n_changed[rows] = np.where(self.adaptation.contexts[rows] > 0, self._n_changed[rows] + 1, 0)
        return bool((self._n_changed[rows] == MANY_STEPS).any())

    def warn(self, about: str) -> None:
        """Warn of what `notes` says about this, once, for the first environment concerned."""
        if about in self._warned:
            return
        n = self.adaptation.method.n
        for env in range(n):
            if note := self.notes(env).get(about):
                self.warn_of(about, f"environment {env}: {note}" if n > 1 else note)
                return

    def warn_of(self, about: str, text: str) -> None:
        """Warn with this text, unless something was said about this before."""
        if about not in self._warned:
            self._warned.add(about)
            warnings.warn(text, AdaptationWarning, stacklevel=4)
