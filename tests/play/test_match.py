"""Two panes in lock step: the same worlds, the same resets, and the episodes of `napping run`."""

import shlex
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control.cartpole import CartPoleEnv

import nappingrl
from nappingrl.cli import main
from nappingrl.errors import BadSpecError, UnknownNameError
from nappingrl.play.copies import as_command, as_python
from nappingrl.play.match import YOU, Match, MatchSpec
from nappingrl.play.pane import ROW
from nappingrl.play.world import World
from nappingrl.types import Floats, Rows

REVERSED = {"action-remap[0]": 1.0, "action-remap[1]": 0.0}


def play(match: Match, n_episodes: int) -> None:
    """Until both panes have ended this many episodes."""
    while min(len([e for e in pane.episodes if e.number >= 0]) for pane in match.panes) < n_episodes:
        match.step()


def totals(match: Match) -> tuple[list[float], list[float]]:
    """Returns of both panes since the match began."""
    frozen, adapting = ([e.total for e in pane.episodes if e.number >= 0] for pane in match.panes)
    return frozen, adapting


@pytest.fixture(scope="module")
def match() -> Match:
    match = Match(MatchSpec("cartpole", method="auto", changes=REVERSED, n_before=10))
    play(match, 4)
    return match


def test_episodes_begin_alike_in_both_panes() -> None:
    match = Match(MatchSpec("cartpole", method="frozen", n_before=2))
    begins: list[list[np.ndarray]] = [[], []]
    while min(map(len, begins)) < 3:
        for pane, seen in zip(match.panes, begins, strict=True):
            if pane.step_number == 0 and len(seen) == pane.episode:
                seen.append(pane.observations)
        match.step()
    np.testing.assert_array_equal(begins[0][:3], begins[1][:3])
    assert not np.array_equal(begins[0][0], begins[0][1])


def test_the_adapting_agent_notices_and_recovers_and_the_frozen_one_does_not(match: Match) -> None:
    frozen, adapting = totals(match)
    assert max(frozen) < 30
    assert adapting[1:4] == [200.0] * 3
    alarm = match.adapting.alarms[0]
    assert (alarm.episode, alarm.after) == (0, alarm.step)
    assert 0 < alarm.after <= 10
    assert match.adapting.status.state == "changed"
    assert match.adapting.status.rule == "LEFT <-> RIGHT"
    assert not match.frozen.is_overriding


def test_an_override_is_an_action_that_the_trained_agent_did_not_want(match: Match) -> None:
    pane = match.adapting
    for _ in range(5):
        before = pane.observations
        match.step()
        assert pane.wanted is not None
        assert pane.executed is not None
        assert pane.wanted.actions[0] == match.agent.forward(before).actions[0]
        assert pane.is_overriding == (pane.executed[0] != pane.wanted.actions[0])
        assert pane.is_overriding


@pytest.mark.parametrize("changes", [{}, {"gravity": 30.0, "force": -10.0}, REVERSED])
def test_a_match_gives_the_episodes_of_napping_run(changes: dict[str, float]) -> None:
    match = Match(MatchSpec("cartpole", method="napping", seed=3, changes=changes, n_before=6))
    play(match, 6)
    for method, ours in zip(("frozen", "napping"), totals(match), strict=True):
        run = nappingrl.run("cartpole", "ppo", method, novelty=match.novelty, protocol="6+6", trials=1, seed=3)
        theirs = run.rows.filter(run.rows["episode"] >= 0)["return"].to_list()
        assert ours[:6] == theirs


@pytest.mark.parametrize(
    ("spec", "folder"),
    [
        (MatchSpec("mountaincar", method="frozen", changes={"gravity": 0.003}, n_before=2), "mountaincar-dqn-frozen-1"),
        (MatchSpec("cartpole", method="napping/text", changes={"gravity": 30.0}, n_before=2), "cartpole-ppo-napping-1"),
    ],
)
def test_copies_run_and_give_the_same_episodes(
    spec: MatchSpec, folder: str, tmp_path: object, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(str(tmp_path))
    match = Match(spec)
    play(match, 3)
    exec(as_python(match), {})
    printed = capsys.readouterr().out.splitlines()
    assert [float(x) for x in printed[0].strip("[]").split(",")][2:5] == totals(match)[0][:3]
    main(shlex.split(as_command(match))[1:])
    rows = nappingrl.read_run(f"runs/{folder}").rows
    assert rows.filter(rows["episode"] >= 0)["return"].to_list()[:3] == totals(match)[1][:3]


def test_the_world_changes_in_the_middle_of_an_episode() -> None:
    match = Match(MatchSpec("cartpole", method="frozen", n_before=1))
    for _ in range(7):
        match.step()
    match.change_world({"gravity": 50.0})
    for pane in match.panes:
        assert pane.step_number == 7
        assert pane.domain.parameters_of(ROW)[0, 1] == 50.0
    match.step()
    assert [pane.step_number for pane in match.panes] == [8, 8]
    match.change_world({})
    assert match.frozen.domain.parameters_of(ROW)[0, 1] == 9.8


def test_an_environment_of_gymnasium_changes_within_an_episode_and_is_drawn() -> None:
    from stable_baselines3 import PPO

    from nappingrl.agents import load

    agent = load(PPO("MlpPolicy", "Acrobot-v1", seed=0, device="cpu"))
    match = Match(MatchSpec("Acrobot-v1", method="frozen", n_before=0), agent=agent)
    match.step()
    match.change_world({"LINK_LENGTH_1": 2.0})
    match.step()
    env = match.frozen.domain._inner._envs[0].unwrapped  # type: ignore[attr-defined]
    assert env.LINK_LENGTH_1 == 2.0
    assert match.frozen.step_number == 2
    picture = match.frozen.sketch().picture
    assert picture is not None
    assert picture.shape == (500, 500, 3)


class Windy(CartPoleEnv):
    """Made without wind, it cannot be given some while it runs."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.has_wind, self.wind_power = False, 15.0


def test_flags_of_an_environment_are_no_sliders() -> None:
    gymnasium.register("Windy-v0", Windy, max_episode_steps=200)
    names = {slider.name for slider in World("Windy-v0").sliders}
    gymnasium.registry.pop("Windy-v0")
    assert names >= {"wind_power", "gravity"}
    assert "has_wind" not in names


def test_worlds_are_remembered_only_where_an_episode_ended() -> None:
    match = Match(MatchSpec("cartpole", method="frozen", n_before=1))
    for gravity in (20.0, 21.0, 22.0):
        match.change_world({"gravity": gravity, **REVERSED})
    assert len(match.worlds) == 2
    play(match, 1)
    match.change_world({"gravity": 40.0})
    assert [world.get("gravity") for world in match.worlds] == [None, 22.0, 40.0]


def test_a_slider_on_its_way_does_not_make_the_oracle_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan takes tens of milliseconds; a change must be shown sooner."""
    match = Match(MatchSpec("cartpole", method="frozen", n_before=0))
    assert match.oracle is not None
    planned: list[float] = []
    reveal = match.oracle.adaptation.method.reveal

    def count(rows: Rows, parameters: Floats) -> None:
        planned.append(float(parameters[0, 1]))
        reveal(rows, parameters)

    monkeypatch.setattr(match.oracle.adaptation.method, "reveal", count)
    for gravity in (20.0, 30.0, 40.0):
        match.change_world({"gravity": gravity})
        match.step()
    assert planned == []
    while not match.oracle.episodes:
        match.step()
    assert planned == [40.0]
    assert match.oracle_level == match.oracle.episodes[0].total
    match.change_world({"gravity": 41.0})
    assert match.oracle_level is None


def test_the_oracle_has_a_level_where_it_knows_the_world() -> None:
    match = Match(MatchSpec("mountaincar", method="frozen", changes={"gravity": 0.003}, n_before=1))
    play(match, 2)
    assert match.oracle_level is not None
    assert match.oracle_level > -150
    match.change_world({"action-delay": 2.0})
    assert match.oracle_level is None


def test_a_person_plays() -> None:
    match = Match(MatchSpec("cartpole", method=YOU, n_before=0))
    match.adapting.human = 1
    match.step()
    assert match.adapting.executed is not None
    assert match.adapting.executed.tolist() == [1]
    play(match, 1)
    assert match.adapting.episodes[0].total < 20 < match.frozen.episodes[0].total


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (MatchSpec("cartpole", method="autos"), UnknownNameError),
        (MatchSpec("cartpole", changes={"gravitas": 1.0}), UnknownNameError),
        (MatchSpec("cartpole", changes={"length": -1.0}), BadSpecError),
        (MatchSpec("cartpole", changes={"action-remap[0]": 7.0}), BadSpecError),
        (MatchSpec("cartpole", changes={"gravity": float("nan")}), BadSpecError),
        (MatchSpec("cartpole", seed=-1), BadSpecError),
    ],
)
def test_mistakes_are_one_line(spec: MatchSpec, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        Match(spec)
    assert "\n" not in str(caught.value)


def test_a_shot_is_shown_as_it_happens_and_a_person_can_shoot() -> None:
    match = Match(MatchSpec("angrybirds", "naive", YOU))
    assert match.waits_for_you
    assert match.advance() == []
    match.adapting.release = (70.0, 270.0)
    match.advance()
    n_pictures = len(match.adapting.reel)
    assert n_pictures > 10
    assert match.frames_per_second == 25
    first = match.adapting.sketch().picture
    for _ in range(n_pictures // 2):
        match.advance()
    later = match.adapting.sketch().picture
    assert first is not None
    assert later is not None
    assert (first != later).any(), "the bird flies"
    while match.adapting.reel or match.frozen.reel:
        match.advance()
    assert match.waits_for_you
    assert match.adapting.step_number == 1 or match.adapting.episode == 1


@pytest.mark.parametrize("name", ["cartpole", "mountaincar", "crossroad", "Acrobot-v1", "Pendulum-v1"])
def test_a_switch_names_only_what_it_changes(name: str) -> None:
    world = World(name)
    assert world.switches
    for switch in world.switches:
        assert world.check(switch.values) == switch.values  # otherwise it would go off by itself
