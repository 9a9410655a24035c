"""The few exceptions. Each message is one line: what came, what is allowed, the nearest match, what to do."""


class NappingError(Exception):
    """Base of all errors a user can cause; the command line prints it as one line and exits with status 2."""


class UnknownNameError(NappingError):
    """Raised when a domain, agent, method, novelty, score, rule or detector is asked for by a name nobody has."""


class BadAgentError(NappingError):
    """Raised when a file or object cannot serve as a frozen agent here."""


class BadObservationError(NappingError):
    """Raised when an observation has the wrong shape or holds NaN or infinity."""


class BadSpecError(NappingError):
    """Raised when an experiment is described by values outside their range."""


class BadRunError(NappingError):
    """Raised when a run folder belongs to another experiment or cannot be read."""


class MissingExtraError(NappingError):
    """Raised when an optional dependency is needed and not installed."""
