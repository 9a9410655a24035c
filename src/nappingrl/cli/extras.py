"""Optional dependencies, as the package's metadata lists them: which are installed, and which extra brings one."""

import re
from importlib.metadata import PackageNotFoundError, requires, version

_REQUIREMENT = re.compile(r"([\w.-]+)[^;]*;.*extra == ['\"]([\w-]+)['\"]")
_COLLECTIONS = ("all", "dev", "docs")
"""Extras that only name others, or are for developers."""
_DISTRIBUTIONS = {"pil": "pillow"}
"""Modules that are not called like their distribution."""


def extras() -> dict[str, list[str]]:
    """The distributions that each extra brings."""
    found: dict[str, list[str]] = {}
    for text in requires("nappingrl") or []:
        match = _REQUIREMENT.match(text)
        if match and match[2] not in _COLLECTIONS:
            found.setdefault(match[2], []).append(match[1])
    return found


def extra_of(module: str) -> str:
    """The extra that brings a module; empty: none does."""
    name = _plain(module.partition(".")[0])
    wanted = _DISTRIBUTIONS.get(name, name)
    return next((extra for extra, names in extras().items() if wanted in map(_plain, names)), "")


def version_of(distribution: str) -> str:
    """The installed version; empty: it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")
