"""The contract of a detector."""

import io

import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.base import Agent
from nappingrl.detectors.base import Detector
from nappingrl.domains.base import Domain
from nappingrl.registry import detectors
from nappingrl.testing.toys import HORIZON, Corridor, make_walker
from nappingrl.types import DomainSpec, Transition

_PRE, _POST = 12, 4


def check_detector(detector: str | type[Detector]) -> None:
    """Check a registered detector by name, or a class.

    Raises:
        AssertionError: with what the contract asks and what came instead.
    """
    detector_class: type[Detector] = detectors.get(detector) if isinstance(detector, str) else detector
    beliefs = _play(_make(detector_class, 5), np.array([4, 0, 2]), _PRE + _POST)
    assert (beliefs >= 0).all(), "a context is a number from 0 on"
    several = _make(detector_class, 5)
    several.start(np.array([1, 3]), -_PRE)
    _play(several, np.array([4, 0, 2]), _PRE + _POST)
    assert not several.context[[1, 3]].any(), "a call changed `context` of rows that it was not given"
    for i in range(3):
        alone = _play(_make(detector_class, 1), np.array([0]), _PRE + _POST, first_trial=i)
        assert np.array_equal(alone[:, 0], beliefs[:, i]), "a trial's beliefs depend on the trials beside it"
    used = _make(detector_class, 3)
    _play(used, np.arange(3), _PRE + _POST, first_trial=7)
    _play(used, np.arange(3), 1, first_trial=8, n_steps=3, starts=False)  # a trial that stops within an episode
    again, fresh = (_play(d, np.arange(3), _PRE + _POST) for d in (used, _make(detector_class, 3)))
    assert np.array_equal(again, fresh), "start() does not forget the trial before"
    _check_restore(detector_class)


def _make(detector_class: type[Detector], n: int) -> Detector:
    return detector_class.for_domain(n, Corridor.spec)


def _check_restore(detector_class: type[Detector]) -> None:
    rows = np.arange(3)
    for cut in (3, _PRE + 1):
        going, restored = _make(detector_class, 3), _make(detector_class, 3)
        _play(going, rows, cut)
        file = io.BytesIO()
        np.savez(file, allow_pickle=False, **going.state())
        file.seek(0)
        restored.start(rows, 0)
        restored.restore(dict(np.load(file, allow_pickle=False)))
        a, b = (_play(d, rows, _PRE + _POST, first_episode=cut, starts=False) for d in (going, restored))
        assert np.array_equal(a, b), "restore() does not continue where state() was taken"


def _play(
    detector: Detector, rows: NDArray[np.int64], episodes: int, first_trial: int = 0, first_episode: int = 0,
    starts: bool = True, n_steps: int = HORIZON,
) -> NDArray[np.int64]:  # fmt: skip
    """What the detector believes after each episode, (episodes, rows)."""
    spec, agent = Corridor.spec, make_walker()
    n = max(detector.n, int(rows.max()) + 1)
    domain = spec.make(n)
    if starts:
        detector.start(rows, -_PRE)
    beliefs = []
    for episode in range(first_episode, episodes):
        is_novel = episode >= _PRE
        if episode in (0, _PRE):
            detector.begin_phase(rows, is_novel)
        domain.apply(rows, {"step": -0.8} if is_novel else None)
        starts_at = [
            np.random.default_rng([first_trial + i, episode]).random(spec.n_reset_draws) for i in range(len(rows))
        ]
        domain.reset(rows, np.array(starts_at))
        returns = np.zeros(n)
        running = rows
        for step in range(n_steps):
            transition = _step(spec, domain, agent, running, step)
            detector.step(running, transition)
            returns[running] += transition.rewards
            running = running[~transition.terminated]
            if not len(running):
                break
        if n_steps < HORIZON:
            break
        detector.end_episode(rows, returns[rows], np.full(len(rows), episode + 1 - _PRE))
        beliefs.append(detector.context[rows].copy())
    return np.array(beliefs, np.int64).reshape(-1, len(rows))


def _step(spec: DomainSpec, domain: Domain, agent: Agent, rows: NDArray[np.int64], step: int) -> Transition:
    observations = domain.observe(rows)
    decision = agent.forward(observations)
    rewards, terminated = domain.step(rows, decision.actions)
    truncated = ~terminated & (step + 1 == spec.horizon)
    return Transition(observations, decision, decision.actions, domain.observe(rows), rewards, terminated, truncated)
