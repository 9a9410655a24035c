"""Names, lazily imported things, did-you-mean."""

import math

import pytest

from nappingrl.domains import find_domain
from nappingrl.errors import NappingError, UnknownNameError, check_name
from nappingrl.registry import Registry, detectors, domains, methods

REGISTRIES = [domains, methods, detectors]


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.kind)
def test_every_entry_can_be_imported(registry: Registry) -> None:
    assert registry.names()
    assert all(isinstance(registry.get(name), type) for name in registry.names())


def test_the_documented_names_are_there() -> None:
    assert {"cartpole", "mountaincar"} <= set(domains.names())
    assert {"frozen", "napping", "oracle"} <= set(methods.names())
    assert {"rolling-mean", "given", "never"} <= set(detectors.names())


@pytest.mark.parametrize(
    ("registry", "name", "near"),
    [
        (domains, "cartpol", "cartpole"),
        (domains, "CARTPOLE", "cartpole"),
        (domains, "mountain-car", "mountaincar"),
        (methods, "naping", "napping"),
        (methods, "Oracel", "oracle"),
        (detectors, "rolling_mean", "rolling-mean"),
    ],
)
def test_did_you_mean(registry: Registry, name: str, near: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        registry.get(name)
    text = str(caught.value)
    assert text.startswith(f"unknown {registry.kind} '{name}'; allowed: ")
    assert all(allowed in text for allowed in registry.names())
    assert text.endswith(f"Did you mean '{near}'?")
    assert "\n" not in text


def test_nothing_near_gives_no_hint() -> None:
    with pytest.raises(UnknownNameError) as caught:
        check_name("fruit", "xyzzy", ["apple", "pear"])
    assert str(caught.value) == "unknown fruit 'xyzzy'; allowed: apple, pear."


def test_check_name_returns_what_is_allowed() -> None:
    assert check_name("fruit", "pear", {"apple": 1, "pear": 2}) == "pear"


def test_the_empty_name_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="unknown domain ''"):
        find_domain("")


def test_an_unknown_name_is_an_error_of_the_user() -> None:
    assert issubclass(UnknownNameError, NappingError)


def test_a_thing_of_your_own_can_be_added() -> None:
    registry = Registry("number", {})
    registry.add("pi", "math:pi")
    assert registry.names() == ["pi"]
    assert registry.get("pi") == math.pi
