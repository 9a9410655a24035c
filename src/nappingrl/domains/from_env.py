"""Any gymnasium environment as a domain: `domain_from_env("Acrobot-v1")`."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache, partial
from math import inf
from typing import Any
from weakref import finalize

import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray
from typing_extensions import override

from nappingrl.domains.base import Domain
from nappingrl.domains.canvas import Canvas
from nappingrl.domains.described import ALSO, VerifiedNovelty, as_novelty
from nappingrl.domains.names import find_names
from nappingrl.domains.scheduled import with_schedules
from nappingrl.domains.swing_up_scores import CONTROLLERS, ENERGIES
from nappingrl.domains.transformed import with_transforms
from nappingrl.errors import BadSpecError, check_name
from nappingrl.novelties.apply import change
from nappingrl.novelties.attributes import Env, set_attributes
from nappingrl.novelties.description import Description, read_description
from nappingrl.novelties.novelty import Novelty
from nappingrl.novelties.subject import find_spec, make_env, read_env_by_id
from nappingrl.novelties.terms import OTHER, transforms_of
from nappingrl.novelties.verify import play, verify
from nappingrl.score import Score, reward_score
from nappingrl.types import Actions, Defaults, DomainSpec, Flags, Floats, Observations, Rows, Solved

UNBOUNDED = 1e6
"""Observations that may be larger are scaled by their spread in random play."""
MANY_ENTRIES = 16
"""Observations with more entries of one scale, such as one-hot ones, share one number of noise."""
SURVIVE = Score(
    "terminal",
    lambda obs, action, obs2, reward, end: np.where(end, -1.0, 1.0),
    supremum=1.0,
    description="-1 when the episode ends before its time limit, else +1",
)


class GymnasiumDomain(Domain):
    """N environments of one id, each made when it is first needed; a changed one is made anew for its next episode."""

    render_mode: str | None = None
    """As gymnasium.make takes it."""

    def __init__(self, n: int, spec: DomainSpec | None = None) -> None:
        super().__init__(n, spec)
        self._env_spec = find_spec(self.spec.name)
        self._other_id, self._follows = _other_and_follows(self.spec)
        self._first_action = 0  # discrete actions may start at another number
        self._envs: list[Env | None] = [None] * n
        self._is_changed = np.zeros(n, np.bool_)
        self._lengths = np.zeros(n, np.int64)
        self._observations = np.zeros((n, *self.spec.observation_low.shape), np.float32)
        finalize(self, _close, self._envs)

    def apply(self, rows: Rows, changes: Mapping[str, float] | None) -> None:
        """Change parameters, also of an episode under way; the next one begins in an environment made anew."""
        super().apply(rows, changes)
        self._is_changed[rows] = True
        for row in rows.tolist():
            env, values = self._envs[row], self._values(row)
            if env is not None and OTHER not in values:
                set_attributes(env, values)

    def reset(self, rows: Rows, uniforms: Floats) -> None:
        """Begin an episode; the seed derives from the uniform number."""
        for row, seed in zip(rows.tolist(), (uniforms[:, 0] * 2**31).astype(np.int64).tolist(), strict=True):
            if self._is_changed[row]:
                _close(self._envs, row)
                self._is_changed[row] = False
            env = self._envs[row]
            if env is None:
                env = self._envs[row] = self._make(row)
            self._lengths[row] = 0
            self._observations[row], _ = env.reset(seed=seed)

    def observe(self, rows: Rows) -> Observations:
        """The latest observations."""
        return self._observations[rows]

    def step(self, rows: Rows, actions: Actions) -> tuple[Floats, Flags]:
        """One step of each; an episode that the environment truncates before the time limit counts as terminated."""
        rewards, ended = np.zeros(len(rows)), np.zeros(len(rows), np.bool_)
        for i, row in enumerate(rows.tolist()):
            env = self._envs[row]
            assert env is not None
            action = actions[i] if self.spec.is_continuous else actions[i] + self._first_action
            self._observations[row], reward, terminated, truncated, _ = env.step(action)
            self._lengths[row] += 1
            rewards[i] = float(reward)
            ended[i] = terminated or (truncated and self._lengths[row] < self.spec.horizon)
        return rewards, ended

    def _values(self, row: int) -> dict[str, float]:
        return dict(zip(self.spec.parameters, self._parameters[row].tolist(), strict=True))

    def _make(self, row: int) -> Env:
        values = self._values(row)
        env_spec = find_spec(self._other_id) if values.get(OTHER) else self._env_spec
        make = partial(make_env, env_spec, self.render_mode)
        env = make()
        self._first_action = int(env.action_space.start) if isinstance(env.action_space, Discrete) else 0
        return change(env, make, values, self._follows, self.spec)


class DrawnGymnasiumDomain(GymnasiumDomain):
    """The same, with environments that draw pictures."""

    render_mode = "rgb_array"

    @override
    def draw(self, row: int, canvas: Canvas) -> None:
        env = self._envs[row]
        picture = None if env is None else env.render()
        if isinstance(picture, np.ndarray):
            canvas.image(picture)


@lru_cache
def domain_from_env(env_id: str) -> DomainSpec:
    """The domain of an environment id; one line of complaint where trials cannot run in it."""
    env_spec, bare = find_spec(env_id), read_env_by_id(env_id)
    if not bare.horizon:
        raise BadSpecError(
            f"{env_id} has no time limit, so that an episode may never end; register it with max_episode_steps=..., "
            "as gymnasium.register takes it"
        )
    env = make_env(env_spec)
    visited = np.array([observation for observation, *_ in play(env)], np.float64)
    space, is_one_hot = env.observation_space, isinstance(env.unwrapped.observation_space, Discrete)
    env.close()
    assert isinstance(space, Box)
    centre, scale = _measure(space, visited)
    energies = (ENERGIES[env_id],) if env_id in ENERGIES else ()
    observation_names, action_names = find_names(env_id, len(bare.observation_low), bare.n_actions)
    threshold = env_spec.reward_threshold
    least = -inf if threshold is None else float(threshold)
    return replace(
        bare,
        name=env_id,
        title=env_id,
        env_id=env_id,
        observation_centre=centre,
        observation_scale=scale,
        observation_names=observation_names,
        observation_words=tuple((f"{name} low", f"{name} high") for name in observation_names),
        split_words={i: (f"not in state {i}", f"in state {i}") for i in range(len(centre))} if is_one_hot else {},
        describe_state=_describe_one_hot if is_one_hot else None,
        action_names=action_names,
        won=partial(_won, inf if threshold is None else least),
        solved=None if threshold is None else Solved("return", least),
        return_limits=(least, inf),
        n_reset_draws=1,
        novelties={
            name: as_novelty(name, read_description(text, bare), bare)
            for name, text in default_novelties(bare, scale).items()
        },
        read_novelty=partial(_read_novelty, env_id),
        narrow=partial(_with_novelties, env_id),
        scores={score.name: score for score in (*energies, reward_score(), SURVIVE)},
        controllers={"energy": CONTROLLERS[env_id]} if env_id in CONTROLLERS else {},
        defaults=Defaults(
            method="auto" if bare.observation_low.ndim == 1 else "napping",
            novelty="action-remap" if bare.n_actions else "action-scale",
            score="energy" if energies else "reward",
            options={"rule": "fallback", "space": "embedding"},
        ),
        simulator=GymnasiumDomain,
    )


def _describe_one_hot(observation: NDArray[np.floating[Any]]) -> str:
    """The whole number that a one-hot observation encodes."""
    return f"state {int(np.argmax(observation))}"


@lru_cache
def verified_novelty(env_id: str, text: str) -> VerifiedNovelty:
    """A named novelty or a description, verified; once in a process."""
    domain = domain_from_env(env_id)
    usual = default_novelties(domain, domain.scale)
    if "=" not in text:
        check_name(f"novelty of {env_id}", text, [*usual, *ALSO])
    description = read_description(usual.get(text, text), domain)
    name = text if text in usual else description.text
    make_other = partial(make_env, _check_other(domain, description.other)) if description.other else None
    doubts = verify(partial(make_env, find_spec(env_id)), description, domain, make_other)
    return VerifiedNovelty(as_novelty(name, description, domain), description, tuple(doubts))


def _read_novelty(env_id: str, text: str) -> Novelty:
    return verified_novelty(env_id, text).novelty


@lru_cache
def _with_novelties(env_id: str, names: tuple[str, ...]) -> DomainSpec:
    """The domain whose parameters are the numbers that these novelties change."""
    domain = domain_from_env(env_id)
    verified = [verified_novelty(env_id, name) for name in names if name not in ("all", "none")]
    parameters: dict[str, float] = {}
    for novelty in verified:
        parameters |= novelty.description.neutral(domain)
    notes = tuple(doubt for novelty in verified for doubt in novelty.doubts)
    transforms = transforms_of(parameters)
    own = {flat: value for flat, value in parameters.items() if flat not in transforms}
    applied = tuple(novelty.description for novelty in verified)
    schedules = {flat: one for description in applied for flat, one in description.schedules.items()}
    changed = with_transforms(replace(domain, parameters=own, notes=notes, applied=applied), transforms)
    return with_schedules(changed, schedules)


def _other_and_follows(domain: DomainSpec) -> tuple[str, frozenset[str]]:
    """The environment that takes the place of this one, and the attributes that are computed anew."""
    descriptions: tuple[Description, ...] = domain.applied
    other = next((description.other for description in descriptions if description.other), "")
    return other, frozenset(name for description in descriptions for name in description.follows)


def default_novelties(domain: DomainSpec, scale: Floats) -> dict[str, str]:
    """Novelties that make sense in any environment, as descriptions."""
    n = domain.n_actions
    first = (
        {"action-remap": f"action-remap={','.join(map(str, reversed(range(n))))}"}
        if n
        else {"action-scale": "action-scale=-1"}
    )
    sizes = [f"{0.1 * size:.3g}" for size in scale.tolist()]
    noise = ";".join(f"obs-noise[{i}]={size}" for i, size in enumerate(sizes))
    if len(sizes) > MANY_ENTRIES and len(set(sizes)) == 1:
        noise = f"obs-noise={sizes[0]}"
    return first | {"action-delay": "action-delay=1..3", "action-noise": "action-noise=0.25", "obs-noise": noise}


def _check_other(domain: DomainSpec, env_id: str) -> EnvSpec:
    """The spec of an environment that replaces this one; refused where the agent does not fit it."""
    other = read_env_by_id(env_id)
    theirs, ours = ((len(d.observation_low), d.n_actions) for d in (other, domain))
    if theirs != ours:
        raise BadSpecError(
            f"{OTHER}={env_id} has {theirs[0]} observations and {theirs[1]} actions, {domain.name} has {ours[0]} and "
            f"{ours[1]}: the agent does not fit it (0 actions: they are continuous)"
        )
    return find_spec(env_id)


def _measure(space: Box, visited: Floats) -> tuple[Floats, Floats]:
    """Centre and scale of observations: from the bounds, or from random play where there are none."""
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    is_bounded = (np.abs(low) < UNBOUNDED) & (np.abs(high) < UNBOUNDED) & (high > low)
    spread = np.maximum(visited.std(axis=0), 1e-3)
    with np.errstate(over="ignore", invalid="ignore"):
        centre, scale = (low + high) / 2, (high - low) / 2
    return np.where(is_bounded, centre, visited.mean(axis=0)), np.where(is_bounded, scale, spread)


def _won(threshold: float, lengths: Rows, terminated: Flags, returns: Floats) -> Flags:
    """An episode is a success where its return reaches the environment's reward threshold."""
    return returns >= threshold


def _close(envs: list[Env | None], row: int | None = None) -> None:
    """Close one environment, or all."""
    for i in range(len(envs)) if row is None else (row,):
        if (env := envs[i]) is not None:
            env.close()
            envs[i] = None
