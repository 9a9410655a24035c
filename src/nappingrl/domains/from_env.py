"""Any gymnasium environment as a world: `domain_from_env("Acrobot-v1")` makes its class."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from math import inf
from typing import Any, ClassVar
from weakref import finalize

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from nappingrl.domains.base import Defaults, Domain, Solved
from nappingrl.domains.canvas import Canvas
from nappingrl.domains.swing_up_scores import ENERGIES
from nappingrl.errors import BadSpecError, check_name
from nappingrl.novelties.apply import change
from nappingrl.novelties.description import OTHER, Description, Subject, read_description
from nappingrl.novelties.novelty import Novelty
from nappingrl.novelties.subject import find_spec, make_env, subject_of
from nappingrl.novelties.verify import play, verify
from nappingrl.score import Score, reward_score
from nappingrl.types import Actions, DomainSpec, Flags, Floats, Observations, Rows

Env = gymnasium.Env[Any, Any]
UNBOUNDED = 1e6
"""Observations that may be larger are measured by what random play shows."""
NAMES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "Acrobot-v1": (
        ("cos(joint 1)", "sin(joint 1)", "cos(joint 2)", "sin(joint 2)", "speed of joint 1", "speed of joint 2"),
        ("torque -1", "no torque", "torque +1"),
    ),
    "CartPole-v1": (("cart position", "cart velocity", "pole angle", "pole angular velocity"), ("LEFT", "RIGHT")),
    "MountainCar-v0": (("position", "velocity"), ("LEFT", "COAST", "RIGHT")),
    "MountainCarContinuous-v0": (("position", "velocity"), ()),
    "Pendulum-v1": (("cos(angle)", "sin(angle)", "angular velocity"), ()),
    "LunarLander-v3": (
        ("x", "y", "x velocity", "y velocity", "angle", "angular velocity", "left leg down", "right leg down"),
        ("no engine", "left engine", "main engine", "right engine"),
    ),
}
"""Names of observations and actions where we know them."""


SURVIVE = Score(
    "terminal",
    lambda obs, action, obs2, reward, end: np.where(end, -1.0, 1.0),
    supremum=1.0,
    description="-1 when the episode ends before its time, else +1",
)


@dataclass(frozen=True, slots=True)
class Read:
    """A novelty of an environment: as trials draw it, as it is put in place, and what verification doubts."""

    novelty: Novelty
    description: Description
    doubts: tuple[str, ...]


class GymnasiumDomain(Domain):
    """n environments of one id, each made when it is first needed; a changed one is made anew.

    `domain_from_env` fills in the facts, `for_novelties` the parameters: the numbers that a run's novelties change.
    """

    spec: ClassVar[EnvSpec]
    subject: ClassVar[Subject]
    first_action: ClassVar[int]
    action_low: ClassVar[NDArray[np.float32]]
    action_high: ClassVar[NDArray[np.float32]]
    follows: ClassVar[frozenset[str]] = frozenset()
    """Attributes that are computed anew from those that a novelty changes."""
    other: ClassVar[str] = ""
    """Id of the environment that takes the place of this one."""
    parameters: ClassVar[Mapping[str, float]] = {}
    return_range = None
    n_reset_draws = 1

    def __init__(self, n: int) -> None:
        super().__init__(n)
        self._envs: list[Env | None] = [None] * n
        self._lengths = np.zeros(n, np.int64)
        self._observations = np.zeros((n, *self.observation_low.shape), np.float32)
        finalize(self, _close, self._envs)

    def apply(self, rows: Rows, changes: Mapping[str, float] | None) -> None:
        """Put a novelty in place: the environments of these rows are made anew with it."""
        super().apply(rows, changes)
        for row in rows.tolist():
            _close(self._envs, row)

    def reset(self, rows: Rows, uniforms: Floats) -> None:
        """Begin an episode by a seed that follows from the uniform number."""
        for row, seed in zip(rows.tolist(), (uniforms[:, 0] * 2**31).astype(np.int64).tolist(), strict=True):
            env = self._envs[row]
            if env is None:
                env = self._envs[row] = self._make(row)
            self._lengths[row] = 0
            self._observations[row], _ = env.reset(seed=seed)

    def observe(self, rows: Rows) -> Observations:
        """What the environments have shown last."""
        return self._observations[rows]

    def step(self, rows: Rows, actions: Actions) -> tuple[Floats, Flags]:
        """One step of each; an episode that the environment itself cuts before the time limit counts as ended."""
        rewards, ended = np.zeros(len(rows)), np.zeros(len(rows), np.bool_)
        for i, row in enumerate(rows.tolist()):
            env = self._envs[row]
            assert env is not None
            action = actions[i] + self.first_action if self.subject.n_actions else actions[i]
            self._observations[row], reward, terminated, truncated, _ = env.step(action)
            self._lengths[row] += 1
            rewards[i], ended[i] = float(reward), terminated or (truncated and self._lengths[row] < self.horizon)
        return rewards, ended

    def draw(self, row: int, canvas: Canvas) -> None:
        """Environments draw themselves."""
        raise BadSpecError(f"{self.name} draws itself: gymnasium.make('{self.name}', render_mode='rgb_array')")

    @classmethod
    def facts(cls) -> DomainSpec:
        """What is known from the spec and the spaces."""
        return DomainSpec(
            cls.observation_low,
            cls.observation_high,
            cls.subject.n_actions,
            cls.horizon,
            cls.action_low,
            cls.action_high,
            cls.observation_names,
            cls.action_names,
            cls.detector_limits,
        )

    @classmethod
    def novelty(cls, name: str) -> Novelty:
        """One of the named novelties, or a description such as "LINK_LENGTH_1=2.0; action-delay=1", verified."""
        return read_novelty(cls.name, name).novelty

    @classmethod
    def for_novelties(cls, names: Iterable[str]) -> type[Domain]:
        """The same world with the parameters that these novelties change."""
        return _narrowed(cls.name, tuple(name for name in names if name not in ("all", "none")))

    def _make(self, row: int) -> Env:
        values = dict(zip(self.parameters, self._parameters[row].tolist(), strict=True))
        make = partial(make_env, find_spec(self.other) if values.get(OTHER) else self.spec)
        return change(make(), make, values, self.follows, self.subject)


@lru_cache
def domain_from_env(env_id: str) -> type[GymnasiumDomain]:
    """The world of an environment id; one line of complaint where trials cannot be run in it."""
    spec, subject = find_spec(env_id), subject_of(env_id)
    if not spec.max_episode_steps:
        raise BadSpecError(
            f"{env_id} has no time limit, so that an episode may never end; register it with max_episode_steps=..., "
            "as gymnasium.register takes it"
        )
    env = make_env(spec)
    actions, observations = env.action_space, env.observation_space
    seen = np.array([shown for shown, *_ in play(env)], np.float64)
    env.close()
    assert isinstance(observations, Box)
    centre, scale = _measure(observations, seen)
    no_limits = np.zeros(0, np.float32)
    known = (ENERGIES[env_id],) if env_id in ENERGIES else ()
    body: dict[str, Any] = {
        "__doc__": f"{env_id} of gymnasium.",
        "name": env_id,
        "env_id": env_id,
        "title": env_id,
        "spec": spec,
        "subject": subject,
        "first_action": int(actions.start) if isinstance(actions, Discrete) else 0,
        "action_low": actions.low if isinstance(actions, Box) else no_limits,
        "action_high": actions.high if isinstance(actions, Box) else no_limits,
        "observation_low": observations.low.astype(np.float32),
        "observation_high": observations.high.astype(np.float32),
        "observation_centre": centre,
        "observation_scale": scale,
        "horizon": int(spec.max_episode_steps),
        "novelties": {
            name: _as_novelty(name, read_description(text, subject), subject)
            for name, text in _usual(subject, scale).items()
        },
        "scores": {score.name: score for score in (*known, reward_score(), SURVIVE)},
        "defaults": Defaults(
            agent="",
            novelty="action-remap" if subject.n_actions else "action-scale",
            score="energy" if known else "reward",
            rule="fallback",
            space="embedding",
            detector="given",
            protocol="40+40",
        ),
    }
    return type(env_id, (GymnasiumDomain,), body | _names_of(subject) | _success_of(spec.reward_threshold))


def _names_of(subject: Subject) -> dict[str, Any]:
    """What observations and actions are called."""
    observations, actions = NAMES.get(subject.id, ((), ()))
    names = observations or tuple(f"observation {i}" for i in range(subject.n_observations))
    return {
        "observation_names": names,
        "observation_words": tuple((f"{name} low", f"{name} high") for name in names),
        "action_names": actions or tuple(f"action {i}" for i in range(subject.n_actions)),
    }


def _success_of(threshold: float | None) -> dict[str, Any]:
    """When an episode is won and a trial solved, by the reward threshold; where there is none, nobody knows."""
    least = -inf if threshold is None else float(threshold)
    return {
        "solved": None if threshold is None else Solved("return", least),
        "detector_limits": (least, inf),
        "won": staticmethod(partial(_won, inf if threshold is None else least)),
    }


@lru_cache
def read_novelty(env_id: str, text: str) -> Read:
    """A named novelty or a description, verified; once in a process."""
    kind = domain_from_env(env_id)
    usual = _usual(kind.subject, kind.observation_scale)
    if "=" not in text:
        check_name(f"novelty of {env_id}", text, [*usual, "all", "none", "a description such as NAME=VALUE"])
    description = read_description(usual.get(text, text), kind.subject)
    name = text if text in usual else description.text
    make_other = partial(make_env, _check_other(kind, description.other)) if description.other else None
    doubts = verify(partial(make_env, kind.spec), description, kind.subject, make_other)
    return Read(_as_novelty(name, description, kind.subject), description, tuple(doubts))


@lru_cache
def _narrowed(env_id: str, names: tuple[str, ...]) -> type[GymnasiumDomain]:
    """The class whose parameters are what these novelties change."""
    kind = domain_from_env(env_id)
    found = [read_novelty(env_id, name) for name in names]
    parameters: dict[str, float] = {}
    for one in found:
        parameters |= one.description.neutral(kind.subject)
    body = {
        "__doc__": kind.__doc__,
        "parameters": parameters,
        "follows": frozenset(name for one in found for name in one.description.follows),
        "other": next((one.description.other for one in found if one.description.other), ""),
        "notes": tuple(doubt for one in found for doubt in one.doubts),
    }
    return type(env_id, (kind,), body)


def _as_novelty(name: str, description: Description, subject: Subject) -> Novelty:
    return Novelty(name, description.ranges, description.words(subject), whole=description.whole(subject))


def _usual(subject: Subject, scale: Floats) -> dict[str, str]:
    """Novelties that make sense anywhere, as descriptions."""
    n = subject.n_actions
    first = (
        {"action-remap": f"action-remap={','.join(map(str, reversed(range(n))))}"}
        if n
        else {"action-scale": "action-scale=-1"}
    )
    noise = ";".join(f"obs-noise[{i}]={0.1 * size:.3g}" for i, size in enumerate(scale.tolist()))
    return first | {"action-delay": "action-delay=1..3", "action-noise": "action-noise=0.25", "obs-noise": noise}


def _check_other(kind: type[GymnasiumDomain], env_id: str) -> EnvSpec:
    """The spec of an environment that takes the place of this one; refused where an agent could not go on in it."""
    other, spec = subject_of(env_id), find_spec(env_id)
    theirs, ours = (other.n_observations, other.n_actions), (kind.subject.n_observations, kind.subject.n_actions)
    if theirs != ours:
        raise BadSpecError(
            f"{OTHER}={env_id} has {theirs[0]} observations and {theirs[1]} actions, {kind.name} has {ours[0]} and "
            f"{ours[1]}: the agent could not go on in it (0 actions: they are continuous)"
        )
    return spec


def _measure(space: Box, seen: Floats) -> tuple[Floats, Floats]:
    """Centre and scale of observations: from the bounds, or from what was seen where there are none."""
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    is_known = (np.abs(low) < UNBOUNDED) & (np.abs(high) < UNBOUNDED) & (high > low)
    spread = np.maximum(seen.std(axis=0), 1e-3)
    with np.errstate(over="ignore", invalid="ignore"):
        centre, scale = (low + high) / 2, (high - low) / 2
    return np.where(is_known, centre, seen.mean(axis=0)), np.where(is_known, scale, spread)


def _won(threshold: float, lengths: Rows, terminated: Flags, returns: Floats) -> Flags:
    """An episode is a success where its return reaches the environment's reward threshold."""
    return returns >= threshold


def _close(envs: list[Env | None], row: int | None = None) -> None:
    """Close one environment, or all."""
    for i in range(len(envs)) if row is None else (row,):
        if (env := envs[i]) is not None:
            env.close()
            envs[i] = None
