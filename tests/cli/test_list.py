"""`napping list`."""

from cli.results import last_json
from command_line import Napping
from nappingrl import agents
from nappingrl.domains.cartpole import CartPole
from nappingrl.methods.base import Method
from nappingrl.registry import detectors, domains, methods, register


def test_list_names_everything(napping: Napping) -> None:
    done = napping("list")
    assert (done.status, done.err) == (0, "")
    for name in [
        *domains.names(),
        *methods.names(),
        *detectors.names(),
        *CartPole.spec.novelties,
        *CartPole.spec.scores,
    ]:
        assert name in done.out
    for name in ("printed", "text", "revised", "fallback", "embedding", "raw", "choice", "search", "layer", "epsilon"):
        assert name in done.out


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
    assert "control" in line
    assert f"Waits and hopes. (from {origin})" in line
    assert listed["methods"]["patient"]["title"] == "Patience"
    assert listed["methods"]["patient"]["origin"] == origin
