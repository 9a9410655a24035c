"""How runs are labelled and drawn: one colour per method, one dash per agent."""

from nappingrl.report.looks import looks
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
