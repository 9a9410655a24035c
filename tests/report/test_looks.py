"""How runs are labelled and drawn: one colour per method, one dash per agent."""

import pytest

from nappingrl.domains.cartpole import CartPole
from nappingrl.methods.frozen import Frozen
from nappingrl.registry import agents, domains, methods
from nappingrl.report.looks import NOT_INSTALLED, domain_title, looks, method_look
from report.figures.drawn import Runs, with_spec


def test_a_method_has_one_colour_and_an_agent_one_dash(runs: Runs) -> None:
    frozen, napping = runs["cartpole"]
    a, b, c, d = looks(
        [with_spec(run, agent=agent) for agent in ("dqn", "zoo/cartpole-ppo.zip") for run in (frozen, napping)]
    )
    assert [look.label for look in (a, b, c, d)] == ["DQN Frozen", "DQN NAPPING", "PPO Frozen", "PPO NAPPING"]
    assert (a.colour, b.colour, a.dash, c.dash) == (c.colour, d.colour, b.dash, d.dash)
    assert a.colour != b.colour
    assert a.marker != b.marker
    assert a.dash != c.dash
    alone = looks([with_spec(napping, agent="ppo")])
    assert (alone[0].colour, alone[0].dash) == (d.colour, d.dash)


def test_what_differs_is_named(runs: Runs) -> None:
    frozen, napping = runs["cartpole"]
    found = looks([frozen, napping, with_spec(napping, options=napping.spec["options"] | {"rule": "printed"})])
    assert [look.label for look in found[:2]] == ["balance Frozen", "balance NAPPING (rule=revised)"]
    assert found[2].label == "balance NAPPING (rule=printed)"
    assert found[1].dash != found[2].dash
    assert [look.label for look in looks([frozen, with_spec(napping, seed=9)])] == [
        "balance Frozen (seed 3)", "balance NAPPING (seed 9)",
    ]  # fmt: skip


def test_a_detector_is_named_where_it_is_not_a_matter_of_the_method(runs: Runs) -> None:
    frozen, napping = (with_spec(run, detector="rolling-mean") for run in runs["cartpole"])
    auto = with_spec(napping, method="auto", detector="auto", score="")
    assert [look.variant for look in looks([frozen, auto])] == ["Frozen", "Auto"]
    told = with_spec(napping, detector="given")
    assert [look.variant for look in looks([napping, told])] == ["NAPPING (rolling-mean)", "NAPPING (given)"]
    assert [look.variant for look in looks([auto, told])] == ["Auto (detector auto)", "NAPPING (given)"]
    given = with_spec(frozen, detector="given")
    assert [look.variant for look in looks([given, told, auto])] == ["Frozen", "NAPPING", "Auto (detector auto)"]
    assert [look.variant for look in looks([frozen, told, auto])] == ["Frozen", "NAPPING (given)", "Auto"]


def test_every_method_has_its_own_look() -> None:
    shown = {entry.name: (entry.title, entry.colour, entry.marker) for entry in methods.entries()}
    assert {name: method_look(name) for name in methods} == shown
    assert all(title and colour and marker for title, colour, marker in shown.values())
    assert len({(colour, marker) for _, colour, marker in shown.values()}) == len(shown)


def test_a_method_that_is_not_installed_is_grey(runs: Runs) -> None:
    (look,) = looks([with_spec(runs["cartpole"][1], method="gone")])
    assert (look.label, look.colour, look.marker) == ("balance gone", *NOT_INSTALLED)


def test_what_is_registered_has_a_title_at_once(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    for registry in (methods, domains, agents):
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))
        monkeypatch.setattr(registry, "_added", list(registry._added))
    methods.add("lazy", Frozen, title="Lazy", colour="#123456")
    domains.add("toy", CartPole)
    agents.add("cartpole-still", Frozen, title="Still", is_stateful=True)
    run = runs["cartpole"][0]
    lazy, still = looks([with_spec(run, method="lazy"), with_spec(run, agent="still")])
    assert (lazy.label, lazy.colour) == ("balance Lazy", "#123456")
    assert still.label == "Still"
    assert (domain_title("toy"), domain_title("unknown-v0")) == ("toy", "unknown-v0")
