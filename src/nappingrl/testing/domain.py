"""The contract of a domain."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from nappingrl.domains import find_domain
from nappingrl.domains.base import Domain
from nappingrl.errors import NappingError
from nappingrl.novelties.novelty import Novelty
from nappingrl.registry import detectors
from nappingrl.score import Score
from nappingrl.types import Actions, DomainSpec, Flags, Floats, Observations, Rows

Step = tuple[Observations, Actions, Observations, Floats, Flags]
_SEED = 7


def check_domain(domain: str | DomainSpec | type[Domain], steps: int = 40, hidden: Collection[str] = ()) -> None:
    """Check a registered domain by name, a spec, or a class: its tables, its simulator, its novelties, its scores.

    `hidden`: novelties that observations need not show, such as a colour that is not among them.

    Raises:
        AssertionError: with what the contract asks and what came instead.
    """
    spec = find_domain(domain) if isinstance(domain, str) else getattr(domain, "spec", domain)
    assert isinstance(spec, DomainSpec), f"{domain!r} has no `spec`, a DomainSpec"
    _check_tables(spec)
    _check_steps(spec, steps)
    _check_reset(spec)
    _check_independence(spec, steps)
    _check_parameters(spec)
    for name in spec.novelties:
        _check_novelty(spec, name, steps, is_hidden=name in hidden)
    for name in spec.scores:
        _check_score(spec, name, steps)


def rollout(spec: DomainSpec, m: int, steps: int, changes: Mapping[str, float] | None = None) -> list[Step]:
    """Random play of m copies; ended episodes begin anew."""
    rng, rows = np.random.default_rng(_SEED), np.arange(m)
    domain = spec.make(m)
    domain.apply(rows, changes)
    domain.reset(rows, rng.random((m, spec.n_reset_draws)))
    played = []
    for _ in range(steps):
        observations, actions = domain.observe(rows), _random_actions(spec, rng, m)
        outcome = domain.step(rows, actions)
        assert isinstance(outcome, tuple) and len(outcome) == 2, (  # noqa: PT018
            "step() must return (rewards, terminated); truncation at the horizon is not its business"
        )
        rewards, terminated = outcome
        for name, array in (("rewards", rewards), ("terminated", terminated)):
            assert isinstance(array, np.ndarray) and array.shape == (m,), (  # noqa: PT018
                f"step() must return {name} as an array with one entry per row, ({m},)"
            )
        assert terminated.dtype == np.bool_, f"step() returned terminated as {terminated.dtype}, not bool"
        played.append((observations, actions, domain.observe(rows), rewards, terminated))
        ended = rows[terminated]
        domain.reset(ended, rng.random((len(ended), spec.n_reset_draws)))
    return played


def _random_actions(spec: DomainSpec, rng: np.random.Generator, m: int) -> Actions:
    if spec.is_continuous:
        return rng.uniform(spec.action_low, spec.action_high, (m, len(spec.action_low))).astype(np.float32)
    return rng.integers(spec.n_actions, size=m)


def _check_tables(spec: DomainSpec) -> None:
    for name in ("observation_low", "observation_high"):
        assert isinstance(getattr(spec, name), np.ndarray), f"{name} must be an array, not {getattr(spec, name)!r}"
    shape = spec.observation_low.shape
    for name in ("observation_high", "centre", "scale"):
        assert getattr(spec, name).shape == shape, f"{name} has another shape than observation_low, {shape}"
    assert (spec.observation_low < spec.observation_high).all(), "observation_low must be below observation_high"
    assert (spec.scale > 0).all(), "observation_scale must be positive"
    assert len(spec.observation_names) in (0, shape[0]), "one observation name per number, or none"
    assert len(spec.observation_words) in (0, shape[0]), "one pair of observation words per number, or none"
    assert len(spec.action_names) in (0, spec.n_actions), "one action name per action, or none"
    assert spec.horizon > 0, "horizon must be positive"
    defaults = spec.defaults
    for kind, default, table in (
        ("novelty", defaults.novelty, [*spec.novelties, "none"]),
        ("score", defaults.score, spec.scores),
        ("detector", defaults.detector, detectors.names()),
    ):
        assert not default or default in table, f"the default {kind} '{default}' is not among {list(table)}"
    entries: list[tuple[str, Novelty | Score]] = [*spec.novelties.items(), *spec.scores.items()]
    for name, entry in entries:
        assert entry.name == name, f"'{entry.name}' is listed as '{name}'"
        assert entry.description, f"'{name}' has no description"
    assert not {"all", "none"} & set(spec.novelties), "'all' and 'none' are reserved names of novelties"
    if spec.return_range is not None:
        assert spec.return_range[0] < spec.return_range[1], "return_range must be (least, greatest)"
    if spec.solved is not None:
        assert spec.solved.column in ("return", "won"), "solved.column must be 'return' or 'won'"


def _check_steps(spec: DomainSpec, steps: int) -> None:
    for observations, _, following, rewards, _ in rollout(spec, 4, steps):
        for name, array in (("observe", observations), ("observe", following)):
            assert array.shape == (4, *spec.observation_low.shape), f"{name}() gave shape {array.shape}"
            assert array.dtype == np.float32, f"{name}() gave {array.dtype}, not float32"
        inside = (spec.observation_low <= following) & (following <= spec.observation_high)
        assert inside.all(), f"an observation is outside its bounds: {following[~inside.all(axis=1)][:1]}"
        assert np.isfinite(rewards).all(), "step() gave a reward that is not finite"
        assert spec.describe(following[0]), "describe() gave no words"
    if spec.won is not None:
        won = spec.won(np.array([1, spec.horizon]), np.array([True, False]), np.zeros(2))
        assert won.shape == (2,), "won() must give one flag per episode"
        assert won.dtype == np.bool_, "won() must give flags"


def _check_reset(spec: DomainSpec) -> None:
    draws = np.random.default_rng(_SEED).random((3, spec.n_reset_draws))
    domain, rows = spec.make(3), np.arange(3)
    domain.reset(rows, draws)
    first = domain.observe(rows)
    kept = first.copy()
    first[:] = np.nan
    assert np.array_equal(domain.observe(rows), kept), "observe() must give a copy"
    domain.step(rows, _random_actions(spec, np.random.default_rng(1), 3))
    domain.reset(rows, draws)
    assert np.array_equal(domain.observe(rows), kept), "the same uniform numbers must give the same start"
    domain.reset(rows[1:2], draws[:1])
    assert np.array_equal(domain.observe(rows[[0, 2]]), kept[[0, 2]]), "reset() touched rows that were not named"


def _check_independence(spec: DomainSpec, steps: int) -> None:
    """A copy alone equals the same copy at any row of a batch."""
    rng = np.random.default_rng(_SEED)
    draws = rng.random((3, spec.n_reset_draws))
    actions = [_random_actions(spec, rng, 3) for _ in range(steps)]

    def play(domain: Domain, rows: Rows, trials: Rows) -> list[list[Any]]:
        domain.reset(rows, draws[trials])
        log: list[list[Any]] = [[] for _ in trials]
        running = np.ones(len(rows), np.bool_)
        for step in actions:
            at = np.flatnonzero(running)
            if not len(at):
                break
            rewards, terminated = domain.step(rows[at], step[trials[at]])
            for i, reward, end, observation in zip(at, rewards, terminated, domain.observe(rows[at]), strict=True):
                log[i].append((float(reward), bool(end), observation.tolist()))
            running[at] = ~terminated
        return log

    together = play(spec.make(5), np.array([4, 0, 2]), np.arange(3))
    for trial in range(3):
        alone = play(spec.make(1), np.array([0]), np.array([trial]))
        assert alone[0] == together[trial], "a copy behaves differently beside others than alone"


def _check_parameters(spec: DomainSpec) -> None:
    domain, rows = spec.make(2), np.arange(2)
    values = list(spec.parameters.values())
    assert domain.parameters_of(rows).tolist() == [values] * 2, "parameters_of() must give the defaults at first"
    try:
        domain.apply(rows, {"no such parameter": 1.0})
    except NappingError:
        pass
    else:
        raise AssertionError("apply() must refuse an unknown parameter: call the base class's")
    if values:
        name = next(iter(spec.parameters))
        domain.apply(rows[:1], {name: spec.parameters[name]})
        domain.apply(rows, None)
        assert domain.parameters_of(rows).tolist() == [values] * 2, "apply(rows, None) must restore the defaults"


def _check_novelty(spec: DomainSpec, name: str, steps: int, is_hidden: bool = False) -> None:
    novelty = spec.novelty(name)
    domain = spec.for_novelties([name])
    unknown = set(novelty.ranges) - set(domain.parameters)
    assert not unknown, f"novelty '{name}' changes unknown parameters: {sorted(unknown)}"
    for parameter, span in novelty.ranges.items():
        is_range = isinstance(span, tuple) and len(span) == 2 and span[0] <= span[1]
        assert is_range, f"novelty '{name}': the range of {parameter} must be (low, high), not {span!r}"
    before = dict(domain.parameters) | dict(novelty.setting)
    for seed in range(5):
        drawn = novelty.sample(np.random.default_rng(seed), domain.parameters)
        for parameter, (low, high) in novelty.ranges.items():
            assert low <= drawn[parameter] <= high, f"novelty '{name}' drew {parameter}={drawn[parameter]}"
        plain, changed = rollout(domain, 2, steps, before), rollout(domain, 2, steps, drawn)
        if any(not np.array_equal(a[i], b[i]) for a, b in zip(plain, changed, strict=True) for i in (0, 2, 3, 4)):
            return
    assert is_hidden, f"novelty '{name}' changes nothing in {steps} steps of random play"


def _check_score(spec: DomainSpec, name: str, steps: int) -> None:
    score = spec.scores[name]
    for observations, actions, following, rewards, terminated in rollout(spec, 4, steps):
        scores = score(observations, actions, following, rewards, terminated)  # raises where it is not one number each
        assert np.isfinite(scores).all(), f"score '{name}' gave {scores}"
        suprema = np.broadcast_to(score.suprema(observations), scores.shape)
        assert (scores <= suprema).all(), f"score '{name}' exceeds its supremum"
