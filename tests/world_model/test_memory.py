"""The shared store of transitions."""

import io
from typing import Any

import numpy as np
import pytest

from nappingrl import load_agent
from nappingrl.adaptation import AdaptationSpec
from nappingrl.detectors.base import Detector
from nappingrl.domains import find_domain
from nappingrl.errors import BadAgentError
from nappingrl.methods.frozen import Frozen
from nappingrl.types import Decision, DomainSpec, Transition
from nappingrl.world_model.memory import MAX_CURRENT, N_BEFORE_ALARM, TransitionMemory

DOMAIN = DomainSpec(np.full(2, -np.inf), np.full(2, np.inf), n_actions=2, horizon=10)


def step(values: Any) -> Transition:
    """A step of each row, told apart by its first observation."""
    values = np.asarray(values, np.float32)
    n = len(values)
    states = np.column_stack([values, np.sin(values)]).astype(np.float32)
    actions = values.astype(np.int64) % 2
    decision = Decision(actions, np.zeros((n, 1), np.float32), np.zeros((n, 2), np.float32))
    nexts = (0.9 * states + 0.1 * actions[:, None]).astype(np.float32)
    return Transition(states, decision, actions, nexts, np.ones(n), np.zeros(n, np.bool_), np.zeros(n, np.bool_))


def play(memory: TransitionMemory, row: int, times: range, is_changed: bool = False) -> None:
    for time in times:
        memory.add(np.array([row]), step([time]), np.array([is_changed]))


def times(transitions: Any) -> list[int]:
    return [int(value) for value in transitions.states[:, 0]]


def test_steps_before_and_since_the_change_are_apart() -> None:
    memory, row = TransitionMemory(2, DOMAIN), np.array([1])
    play(memory, 1, range(5))
    assert times(memory.current(1)) == [0, 1, 2, 3, 4]
    memory.end_episode(row)
    play(memory, 1, range(5, 8))
    assert times(memory.before(1)) == list(range(8))
    assert times(memory.current(1)) == [5, 6, 7]
    memory.enter(row, np.array([1]))
    assert times(memory.before(1)) == list(range(5))
    assert memory.is_sealed(row).all()
    play(memory, 1, range(8, 10), is_changed=True)
    memory.end_episode(row)
    play(memory, 1, range(10, 11), is_changed=True)
    assert times(memory.current(1)) == [5, 6, 7, 8, 9, 10]
    assert memory.current(1).episodes.tolist() == [1, 1, 1, 1, 1, 2]
    memory.enter(row, np.array([2]))
    assert times(memory.current(1)) == []
    memory.enter(row, np.array([0]))
    play(memory, 1, range(11, 13))
    assert times(memory.before(1)) == list(range(5))
    assert times(memory.current(1)) == [11, 12]
    assert memory.before(0).n == memory.current(0).n == 0


def test_after_sealing_no_step_joins_those_before() -> None:
    memory = TransitionMemory(1, DOMAIN)
    play(memory, 0, range(3))
    memory.seal(0)
    play(memory, 0, range(3, 6))
    assert times(memory.before(0)) == [0, 1, 2]
    memory.enter(np.array([0]), np.array([1]))
    assert times(memory.before(0)) == [0, 1, 2]


def test_an_alarm_takes_only_the_latest_steps_of_a_long_episode() -> None:
    memory = TransitionMemory(1, DOMAIN)
    play(memory, 0, range(N_BEFORE_ALARM + 50))
    memory.enter(np.array([0]), np.array([1]))
    assert times(memory.current(0)) == list(range(50, N_BEFORE_ALARM + 50))


def test_an_alarm_between_episodes_starts_empty() -> None:
    memory = TransitionMemory(1, DOMAIN)
    play(memory, 0, range(4))
    memory.end_episode(np.array([0]))
    memory.enter(np.array([0]), np.array([1]))
    assert times(memory.before(0)) == [0, 1, 2, 3]
    assert memory.current(0).n == 0


def test_its_size_is_bounded_and_the_first_steps_are_kept() -> None:
    memory = TransitionMemory(1, DOMAIN, max_before=30)
    play(memory, 0, range(MAX_CURRENT + 10))
    assert times(memory.before(0)) == list(range(30))
    assert memory.current(0).n <= MAX_CURRENT


def test_a_cut_episode_counts_only_if_it_has_begun() -> None:
    memory, row = TransitionMemory(1, DOMAIN), np.array([0])
    memory.discard_episode(row)
    play(memory, 0, range(2))
    memory.discard_episode(row)
    memory.discard_episode(row)
    play(memory, 0, range(1))
    assert memory.before(0).episodes.tolist() == [0, 0, 1]


def test_a_new_trial_begins_empty() -> None:
    memory, row = TransitionMemory(1, DOMAIN), np.array([0])
    play(memory, 0, range(60))
    memory.enter(row, np.array([1]))
    memory.seal(0)
    assert memory.why_not(0)
    memory.start(row)
    assert memory.before(0).n == memory.current(0).n == 0
    play(memory, 0, range(1))
    assert times(memory.before(0)) == [0]


def test_the_reference_is_fitted_once_to_the_sealed_steps() -> None:
    memory = TransitionMemory(2, DOMAIN)
    play(memory, 0, range(80))
    assert memory.reference(0) is None
    assert "still being recorded: 80 steps" in memory.why_not(0)
    memory.seal(0)
    reference = memory.reference(0)
    assert reference is not None
    assert memory.reference(0) is reference
    assert memory.why_not(0) == ""
    play(memory, 1, range(5))
    memory.seal(1)
    assert memory.reference(1) is None
    assert "usable steps" in memory.why_not(1)


def test_restored_it_goes_on_identically() -> None:
    going, restored = TransitionMemory(2, DOMAIN), TransitionMemory(2, DOMAIN)
    play(going, 0, range(70))
    going.end_episode(np.array([0]))
    play(going, 0, range(70, 75))
    going.enter(np.array([0]), np.array([1]))
    play(going, 1, range(9))
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **going.state())
    file.seek(0)
    restored.restore(dict(np.load(file, allow_pickle=False)))
    for memory in (going, restored):
        play(memory, 0, range(75, 80), is_changed=True)
        memory.enter(np.array([1]), np.array([3]))
    for name, value in going.state().items():
        np.testing.assert_array_equal(value, restored.state()[name])
    first, second = going.reference(0), restored.reference(0)
    assert first is not None
    assert second is not None
    states = np.ones((1, 2))
    np.testing.assert_array_equal(first.predict(states, np.eye(2)[:1]), second.predict(states, np.eye(2)[:1]))


@pytest.mark.parametrize(("name", "value"), [("_contexts", -1), ("_episodes", -1)])
def test_bad_saved_numbers_are_refused(name: str, value: int) -> None:
    state = TransitionMemory(1, DOMAIN).state()
    state[name] = np.full(1, value)
    with pytest.raises(BadAgentError, match=name):
        TransitionMemory(1, DOMAIN).restore(state)


class Watching(Detector):
    """Uses the memory, and alarms at the third step of the second episode."""

    uses_memory = True

    def connect(self, memory: TransitionMemory, agent: object) -> None:
        self.memory = memory

    def step(self, rows: Any, transition: Transition) -> None:
        is_third = (self.memory.n_before(rows) == 7) & (self.memory.n_current(rows) == 3)
        self.context[rows[is_third]] = 1


def test_the_adaptation_fills_it_for_those_who_use_it() -> None:
    domain, agent = find_domain("cartpole"), load_agent("ppo", "cartpole")
    spec = AdaptationSpec("frozen", detector="given").resolve(domain)
    assert spec.build(agent, domain, 2).memory is None
    adaptation = spec.build(agent, domain, 2, detector=Watching(2))
    memory, rows = adaptation.memory, np.arange(2)
    assert memory is not None
    assert isinstance(adaptation.method, Frozen)
    assert adaptation.method.info.memory is memory
    adaptation.start(rows, np.zeros(2, np.uint64), -2)
    observations = np.zeros((2, 4), np.float32)
    alarmed = []
    for episode, n_steps in ((-2, 4), (-1, 5)):
        for _ in range(n_steps):
            actions, decision = adaptation.act(rows, observations)
            no = np.zeros(2, np.bool_)
            alarmed.append(
                adaptation.observe(
                    rows, Transition(observations, decision, actions, observations + 0.01, np.ones(2), no, no)
                ).tolist()
            )
        adaptation.end_episode(rows, np.full(2, episode + 1))
    assert alarmed == [[]] * 6 + [[0, 1]] + [[]] * 2
    assert memory.before(0).n == 4
    assert memory.current(1).n == 5
    state = adaptation.state()
    assert "memory/before.0.states" in state
    other = spec.build(agent, domain, 2, detector=Watching(2))
    other.restore(state)
    assert other.memory is not None
    assert other.memory.current(1).n == 5


def test_steps_of_all_rows_are_judged_as_by_each_reference() -> None:
    memory, random = TransitionMemory(3, DOMAIN), np.random.default_rng(3)
    rows = np.arange(3)
    for episode in range(12):
        for _ in range(20):
            memory.add(rows, step(random.uniform(-5, 5, 3) * (1 + rows)), np.zeros(3, np.bool_))
        memory.end_episode(rows[: 2 if episode else 3])
    for row in (0, 2):
        memory.seal(row)
    memory.add(rows, step(random.uniform(-5, 5, 3)), np.zeros(3, np.bool_))
    latest = memory.latest
    assert latest is not None
    residuals, modes, is_main = memory.judge(rows, latest)
    assert modes.tolist() == [0, -1, 0], "row 1 is still being recorded"
    assert is_main.tolist() == [True, False, True]
    for row in (0, 2):
        reference = memory.reference(row)
        assert reference is not None
        assert residuals[row] == pytest.approx(reference.residuals(latest.at(slice(row, row + 1)))[0][0])
        assert np.abs(residuals[row]).max() > 0
    memory.seal(1)
    assert (memory.judge(rows, latest)[1] == 0).all()
    memory.start(np.array([0]))
    assert memory.judge(rows, latest)[1].tolist() == [-1, 0, 0], "a new trial has no reference"
