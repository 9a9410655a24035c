"""Experiments: exchanges of actions that are tried in new episodes, and judged by their first steps."""

import numpy as np
import pytest

from methods.reground.linear_worlds import CONTINUOUS, START, World, make_reference
from nappingrl.methods.reground.maps import ContinuousMap
from nappingrl.methods.reground.trial import RegroundTrial
from nappingrl.types import Floats
from nappingrl.world_model.action_encoding import ActionEncoding
from nappingrl.world_model.reference import Reference
from nappingrl.world_model.transitions import Transitions

N_STEPS = 70
ENCODING = ActionEncoding(CONTINUOUS)


@pytest.fixture(scope="module")
def reference() -> Reference:
    return make_reference(CONTINUOUS)


class Episodes:
    """Plays episodes of a changed world by what a trial has in force, and shows them to it."""

    def __init__(self, reference: Reference, signs: Floats) -> None:
        self.reference, self.signs = reference, signs
        self.world, self.trial = World(CONTINUOUS, seed=3), RegroundTrial(CONTINUOUS, ENCODING)
        self.trial.enter(1)
        self.steps: list[tuple[Floats, Floats, Floats, float, bool, int]] = []
        self.n_episodes = 0

    def current(self) -> Transitions:
        return Transitions(*(np.array(column) for column in zip(*self.steps, strict=True)))

    def play(self) -> None:
        """One episode; only experiments adapt in it."""
        state = START.copy()
        self.trial.begin_episode(state)
        for step in range(N_STEPS):
            wanted = np.asarray(self.world.action(), np.float64)[None]
            actions = None if self.trial.in_force is None else self.trial.in_force.actions
            executed = (actions.executed(wanted) if isinstance(actions, ContinuousMap) else wanted)[0]
            after = self.world.step(state, executed * self.signs)
            self.steps.append((state, ENCODING(executed[None])[0], after, 0.0, False, self.n_episodes))
            state, is_end = after, step == N_STEPS - 1
            self.trial.step_is_due(is_end)
            if self.trial.start_is_due(is_end):
                self.trial.judge_start(self.reference, self.current(), is_end)
        self.n_episodes += 1

    def experiment(self) -> bool:
        """An episode with the next experiment; returns whether there was one."""
        has_begun = self.trial.begin_experiment(self.reference, self.current())
        self.play()
        return has_begun


@pytest.mark.parametrize("signs", [(-1.0, 1.0), (1.0, -1.0), (-1.0, -1.0)], ids=str)
def test_the_true_exchange_passes_within_a_few_episodes(reference: Reference, signs: tuple[float, float]) -> None:
    episodes = Episodes(reference, np.array(signs))
    episodes.play()
    for _ in range(4):
        if not episodes.trial.has_grounding:
            assert episodes.experiment()
    grounding = episodes.trial.grounding
    assert grounding is not None
    assert isinstance(grounding.actions, ContinuousMap)
    assert grounding.actions.gain.tolist() == list(signs)
    assert episodes.trial.is_tested


def test_a_search_leaves_what_has_passed_alone(reference: Reference) -> None:
    episodes = Episodes(reference, np.array([-1.0, 1.0]))
    episodes.play()
    episodes.experiment()
    grounding = episodes.trial.grounding
    episodes.trial.search(reference, World(CONTINUOUS, seed=4).record(3))  # an unchanged world speaks against it
    assert episodes.trial.grounding is grounding


def test_nothing_is_tried_where_first_steps_are_as_they_were(reference: Reference) -> None:
    episodes = Episodes(reference, np.ones(2))
    episodes.play()
    assert not episodes.experiment()


def test_nothing_is_tried_before_an_episode_has_begun(reference: Reference) -> None:
    trial = RegroundTrial(CONTINUOUS, ENCODING)
    trial.enter(1)
    assert not trial.begin_experiment(reference, World(CONTINUOUS, seed=5).record(2))


def test_what_passed_but_earns_less_is_refuted_and_another_exchange_is_tried(reference: Reference) -> None:
    episodes = Episodes(reference, np.array([-1.0, 1.0]))
    episodes.play()
    episodes.experiment()
    passed = episodes.trial.grounding
    assert passed is not None
    assert episodes.trial.is_tested
    episodes.trial.begin_experiment(reference, episodes.current())  # as the arbiter asks for
    experiment = episodes.trial.experiment
    assert not episodes.trial.has_grounding
    assert experiment is None or experiment.signature != passed.signature


def test_in_another_context_what_has_passed_is_tried_first(reference: Reference) -> None:
    episodes = Episodes(reference, np.array([-1.0, -1.0]))
    episodes.play()
    while not episodes.trial.has_grounding:
        assert episodes.experiment()
    episodes.trial.enter(2)
    episodes.play()
    assert episodes.trial.begin_experiment(reference, episodes.current())
    experiment = episodes.trial.experiment
    assert experiment is not None
    assert isinstance(experiment.actions, ContinuousMap)
    assert experiment.actions.gain.tolist() == [-1.0, -1.0]


def test_experiments_are_saved(reference: Reference) -> None:
    episodes = Episodes(reference, np.array([-1.0, 1.0]))
    episodes.play()
    episodes.trial.begin_experiment(reference, episodes.current())
    restored = RegroundTrial(CONTINUOUS, ENCODING)
    restored.restore(episodes.trial.state())
    assert restored.experiment is not None
    assert episodes.trial.experiment is not None
    assert restored.experiment.is_same(episodes.trial.experiment)
    assert restored.strange_starts == episodes.trial.strange_starts
