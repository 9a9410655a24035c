"""Angry Birds as a domain: one step is one shot, an episode is one level, its return is 1 if the level was passed."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from nappingrl.domains.angrybirds import actions, layout
from nappingrl.domains.angrybirds.aiming import release_point, to_world
from nappingrl.domains.angrybirds.levels.templates import LEVELS, TEMPLATES, make_level
from nappingrl.domains.angrybirds.novelties import NOVELTIES, PAPER_NOVELTIES, make_change
from nappingrl.domains.angrybirds.observer import OBSERVATION, Observer, observation_names
from nappingrl.domains.angrybirds.words import name_shot
from nappingrl.domains.base import Domain
from nappingrl.domains.canvas import Canvas
from nappingrl.errors import BadSpecError
from nappingrl.novelties.novelty import Novelty
from nappingrl.score import Score
from nappingrl.types import Actions, Defaults, DomainSpec, Flags, Floats, Observations, Point, Rows, Solved

if TYPE_CHECKING:
    from nappingrl.domains.angrybirds.physics.scene import Scene
    from nappingrl.domains.angrybirds.physics.world import World

PRESET = "phyq"
_LOW, _HIGH = -4.0, 8.0
"""Bounds of observations."""
ANY_TEMPLATE = 0.0


def _parameter(novelty: str) -> str:
    return novelty.replace("-", "_")


def _novelty(name: str) -> Novelty:
    """A novelty at full strength; the whole trial uses the levels of its template, so that nothing else changes."""
    setting = {"template": 1.0 + list(TEMPLATES).index(name)} if name in TEMPLATES else {}
    words = (NOVELTIES[name].__doc__ or "").splitlines()[0].rstrip(".")
    return Novelty(name, {_parameter(name): (1.0, 1.0)}, words, setting)


def _pigs(obs: Observations, action: Actions, obs2: Observations, reward: Floats, end: Flags) -> Floats:
    return layout.count_pigs(obs) - layout.count_pigs(obs2)


def _goals(obs: Observations, action: Actions, obs2: Observations, reward: Floats, end: Flags) -> Floats:
    return _pigs(obs, action, obs2, reward, end) + reward


def _at_the_first(obs: Observations) -> Actions:
    """Aim low at the first object, which is a pig if there is one."""
    return np.full(len(obs), actions.join(0, 0, 0))


def _goals_left(obs: Observations) -> Floats:
    return layout.count_pigs(obs) + 1.0


_SCORES = (
    Score("paper", _pigs, 1.0, inf, "pigs destroyed by the shot", layout.count_pigs),
    Score("goal", _goals, 1.0, inf, "pigs destroyed by the shot, and 1 for the level", _goals_left),
)


def _won(lengths: Rows, terminated: Flags, returns: Floats) -> Flags:
    """The level was passed."""
    return returns > 0


def _describe(observation: NDArray[np.floating[Any]]) -> str:
    """A rough description: how many targets look like pigs, whether there is TNT or an unknown object."""
    level = layout.decode(observation)
    n_pigs = len(level.of_kind("pig"))
    words = [f"{n_pigs} pig" + "s" * (n_pigs != 1)]
    words += ["TNT"] * bool(level.of_kind("tnt")) + ["something unknown"] * bool(level.of_kind("other"))
    return f"{', '.join(words)}; {level.birds} bird" + "s" * (level.birds != 1)


@dataclass(frozen=True, slots=True)
class LevelChoice:
    """A level of a template, and the strengths of all novelties."""

    template: str
    number: int
    strengths: tuple[float, ...]

    def make_world(self) -> "World":
        """The level in play."""
        from nappingrl.domains.angrybirds.physics.world import World

        change = make_change(dict(zip(NOVELTIES, self.strengths, strict=True)))
        return World(make_level(self.template, self.number), PRESET, change)


def choose_level(parameters: Floats, draws: Floats, levels: tuple[int, int] = (0, LEVELS)) -> LevelChoice:
    """The level that an episode with these parameters and reset draws plays."""
    names, (first, last) = list(TEMPLATES), levels
    template, *strengths = parameters.tolist()
    which, number = draws.tolist()
    if template not in range(len(names) + 1):
        raise BadSpecError(f"template {template:g} of angrybirds; allowed: 0 (any), 1 to {len(names)}")
    name = names[int(template) - 1] if template else names[int(which * len(names))]
    return LevelChoice(name, first + int(number * (last - first)), tuple(strengths))


def _configure(domain: DomainSpec) -> DomainSpec:
    """The domain with another observation; those by label and by colour have the same numbers."""
    names = observation_names(domain.chosen["observation"])
    n = len(names)
    return replace(
        domain,
        observation_low=np.full(n, _LOW, np.float32),
        observation_high=np.full(n, _HIGH, np.float32),
        observation_centre=np.zeros(n),
        observation_scale=np.ones(n),
        observation_names=names,
    )


class AngryBirds(Domain):
    """A batch of levels, each in its own world."""

    spec = DomainSpec(
        observation_low=np.full(layout.N_OBSERVATIONS, _LOW, np.float32),
        observation_high=np.full(layout.N_OBSERVATIONS, _HIGH, np.float32),
        observation_centre=np.zeros(layout.N_OBSERVATIONS),
        observation_scale=np.ones(layout.N_OBSERVATIONS),
        observation_names=layout.OBSERVATION_NAMES,
        describe_state=_describe,
        n_actions=actions.N_ACTIONS,
        action_names=actions.ACTION_NAMES,
        name_action=name_shot,
        action_order=actions.candidate_order(),
        action_mask=layout.possible_actions,
        horizon=5,
        return_range=(0.0, 1.0),
        return_limits=(0.7, inf),
        won=_won,
        solved=Solved("return", 0.8),
        parameters={"template": ANY_TEMPLATE} | {_parameter(name): 0.0 for name in NOVELTIES},
        n_reset_draws=2,
        frames_per_second=2,
        novelties={name: _novelty(name) for name in PAPER_NOVELTIES},
        scores={score.name: score for score in _SCORES},
        controllers={score.name: _at_the_first for score in _SCORES},
        options={"observation": OBSERVATION},
        configure=_configure,
        oracle="nappingrl.domains.angrybirds.oracle:AngryBirdsOracle",
        defaults=Defaults(
            agent="dqn", novelty="taller-slingshot", score="paper", detector="given", protocol="1..40+40",
            options={"rule": "printed", "space": "embedding"},
        ),
    )  # fmt: skip

    def __init__(self, n: int, spec: DomainSpec | None = None) -> None:
        super().__init__(n, spec)
        self.levels = (0, LEVELS)
        """Range of level numbers per template; training can hold some out."""
        self.plays_out = False
        """Whether a won level continues until nothing moves: needed for the score, not for the outcome."""
        self._worlds: list[World | None] = [None] * n
        self._reels: list[list[Scene]] = [[] for _ in range(n)]
        self._observers = [self._new_observer() for _ in range(n)]
        self._observations = np.zeros((n, *self.spec.observation_low.shape), np.float32)

    def reset(self, rows: Rows, uniforms: Floats) -> None:
        """Load a level of each row's template, or of a random one; changed parameters take effect here."""
        for row, draws in zip(rows.tolist(), uniforms, strict=True):
            self._worlds[row] = choose_level(self._parameters[row], draws, self.levels).make_world()
            self._observers[row] = self._new_observer()
            self._update_observation(row)

    def _new_observer(self) -> Observer:
        return Observer(self.spec.chosen.get("observation", OBSERVATION.default))

    def observe(self, rows: Rows) -> Observations:
        """The observations of some rows; see `layout`."""
        return self._observations[rows]

    def step(self, rows: Rows, actions: Actions) -> tuple[Floats, Flags]:
        """Shoot once in each row and wait until nothing moves.

        An action that the mask excludes wastes the bird: it flies backwards, away from the level.
        """
        rewards = np.zeros(len(rows))
        terminated = np.zeros(len(rows), np.bool_)
        for m, (row, action) in enumerate(zip(rows.tolist(), actions.tolist(), strict=True)):
            shot = self._observers[row].targets.aim(action)
            at = release_point(shot, self.world(row).scene())
            rewards[m], terminated[m] = self._shoot(row, at, shot.tap_ms if shot is not None else 0)
        return rewards, terminated

    def shoot(self, row: int, release: Point, tap_ms: int = 0) -> tuple[float, bool]:
        """One shot by a person: draw the bird to a point of the screen; the reward, and whether the level is over."""
        world = self.world(row)
        return self._shoot(row, to_world(release, world.level.camera, world.view), tap_ms)

    def _shoot(self, row: int, at: Point, tap_ms: int) -> tuple[float, bool]:
        world = self.world(row)
        scenes = self._reels[row] = [world.scene()] if self.reel_every else []
        first = world.ticks

        def keep() -> None:
            if (world.ticks - first) % self.reel_every == 0:
                scenes.append(world.scene())

        world.shoot(at, tap_ms, keep if self.reel_every else None, until_won=not self.plays_out)
        self._update_observation(row)
        return float(world.status == "won"), world.status != "playing"

    @override
    def reel(self, row: int) -> list[Callable[[Canvas], None]]:
        return [partial(_draw, scene) for scene in self._reels[row]]

    def world(self, row: int) -> "World":
        """The world of a row, after its first reset."""
        world = self._worlds[row]
        if world is None:
            raise BadSpecError(f"world {row} of angrybirds has no level yet: call reset first")
        return world

    def _update_observation(self, row: int) -> None:
        self._observations[row] = self._observers[row].look(self.world(row).scene())

    def draw(self, row: int, canvas: Canvas) -> None:
        """Draw the screen."""
        _draw(self.world(row).scene(), canvas)


def _draw(scene: "Scene", canvas: Canvas) -> None:
    from nappingrl.domains.angrybirds.pictures.picture import draw

    canvas.image(draw(scene))
