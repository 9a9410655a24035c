"""`napping list`."""

import pytest

from cli.results import assert_refused, last_json
from command_line import Napping
from nappingrl import agents
from nappingrl.cli.catalogue import KINDS, list_kind
from nappingrl.domains.cartpole import CartPole
from nappingrl.methods.base import Method
from nappingrl.registry import detectors, domains, methods, register


def test_list_names_domains_methods_and_detectors(napping: Napping) -> None:
    done = napping("list")
    assert (done.status, done.err) == (0, "")
    for name in [*domains.names(), *methods.names(), *detectors.names()]:
        assert f" {name} " in done.out
    assert max(map(len, done.out.splitlines())) <= 80


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_listed_with_descriptions(napping: Napping, kind: str) -> None:
    done = napping("list", kind)
    assert (done.status, done.err) == (0, "")
    for name, about in list_kind(kind).items():
        assert name in done.out
        assert about
    assert max(map(len, done.out.splitlines())) <= 80


def test_list_of_one_thing(napping: Napping) -> None:
    words = napping("list", "cartpole").out.split()
    assert {*CartPole.spec.novelties, *CartPole.spec.scores, *CartPole.spec.parameters} <= set(words)
    assert {"choice", "search", "layer"} <= set(napping("list", "napping").out.split())
    both = napping("list", "auto").out
    assert "method auto" in both
    assert "detector auto" in both
    assert_refused(napping("list", "cartpol"), "unknown name 'cartpol'", "Did you mean 'cartpole'?")


def test_list_json(napping: Napping) -> None:
    found = last_json(napping("list", "--json"))
    assert set(found) == {"domains", "methods", "rules", "scores", "spaces", "detectors", "terms", "wrappers"}
    assert "flatten" in found["wrappers"]
    assert {"obs-remap", "action-delay"} <= set(found["terms"])
    assert found["domains"]["cartpole"].pop("parameters") == dict(CartPole.spec.parameters)
    assert list(found["domains"]) == domains.names()
    shown = {"title", "origin", "agents", "novelties", "options", "scores", "defaults"}
    assert set(found["domains"]["cartpole"]) == shown
    assert list(found["domains"]["cartpole"]["scores"]) == list(CartPole.spec.scores)
    assert found["domains"]["cartpole"]["agents"] == agents.agent_names("cartpole")
    assert list(found["methods"]) == methods.names()
    keys = {"title", "role", "origin", "about", "options"}
    assert all(set(entry) == keys and entry["about"] for entry in found["methods"].values())
    options = {"rule", "space", "choice", "search", "threshold", "layer", "max_regions"}
    assert set(found["methods"]["napping"]["options"]) == options
    assert "preference" in found["methods"]["napping"]["options"]["choice"]
    assert found["methods"]["frozen"]["options"] == found["methods"]["random"]["options"] == {}
    assert set(found["methods"]["replay-success"]["options"]) == {"epsilon"}
    assert "0.25" in found["methods"]["replay-success"]["options"]["epsilon"]


class Patient(Method):
    """Waits and hopes."""


def test_list_shows_what_a_user_registers(napping: Napping) -> None:
    entries = dict(methods._entries)
    try:
        register("method", "patient", Patient, title="Patience", role="control")
        done, listed = napping("list"), last_json(napping("list", "--json"))
    finally:
        methods._entries.clear()
        methods._entries.update(entries)
        methods._added.clear()
    origin = Patient.__module__.split(".")[0]
    line = next(line for line in done.out.splitlines() if "patient" in line)
    assert f"[control] Waits and hopes. (from {origin})" in line
    assert listed["methods"]["patient"]["title"] == "Patience"
    assert listed["methods"]["patient"]["origin"] == origin
