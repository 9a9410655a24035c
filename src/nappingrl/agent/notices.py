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
        notes = {about: self._note(about, env) for about in ("method", "detector", "dropped")}
        return {about: note for about, note in notes.items() if note}

    def _note(self, about: str, env: int) -> str:
        """What there is to say about one of them. Only this is computed: a method may read all that it learned."""
        adaptation, has_changed = self.adaptation, bool(self.adaptation.contexts[env])
        if about == "method" and has_changed and self._n_changed[env] >= FEW_STEPS:
            why = adaptation.method.status(env)
            return f"method '{self._method}' acts as the frozen agent: {why}" if why else ""
        if about == "detector" and not has_changed and adaptation.method.needs_alarm:
            why = adaptation.detector.status(env)
            waiting = f"method '{self._method}' waits for an alarm: detector '{self._detector}' {why}; "
            advice = (
                "calibrate(env) in the unchanged environment first, or use detector='given' if it has changed already"
            )
            if self._detector == "never":
                advice = "the agent stays frozen unless you choose another detector"
            return f"{waiting}{advice}" if why else ""
        if about == "dropped" and (count := int(adaptation.filter.n_dropped[env])):
            return f"{count} observed steps were left out: numbers that are not finite or absurdly large"
        return ""

    def count(self, rows: Rows) -> Rows:
        """Count one step of each row; returns those that are due for a look within their episode."""
        self._n_changed[rows] = np.where(self.adaptation.contexts[rows] > 0, self._n_changed[rows] + 1, 0)
        due: Rows = rows[self._n_changed[rows] == MANY_STEPS]
        return due

    def warn(self, about: str, rows: Rows) -> None:
        """Warn of what `notes` says about this in some environments, once, for the first one concerned."""
        if about in self._warned:
            return
        for env in rows.tolist():
            if note := self._note(about, env):
                self.warn_of(about, f"environment {env}: {note}" if self.adaptation.method.n > 1 else note)
                return

    def warn_of(self, about: str, text: str) -> None:
        """Warn with this text, unless something was said about this before."""
        if about not in self._warned:
            self._warned.add(about)
            warnings.warn(text, AdaptationWarning, stacklevel=4)
