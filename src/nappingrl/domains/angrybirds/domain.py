"""Angry Birds as a domain: one step is one shot, an episode is one level, its return is 1 if the level was passed."""

from collections.abc import Callable
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from nappingrl.domains.angrybirds import aiming as aim
from nappingrl.domains.angrybirds import layout
from nappingrl.domains.angrybirds.ground_truth.state import ground_truth
from nappingrl.domains.angrybirds.levels.templates import LEVELS, TEMPLATES, make_level
from nappingrl.domains.angrybirds.novelties import NOVELTIES, PAPER_NOVELTIES, make_change
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
PLANNER = "official"
"""The planner that turns an action into a shot: the paper's."""
ANY_TEMPLATE = 0.0


def _parameter(novelty: str) -> str:
    return novelty.replace("-", "_")


def _novelty(name: str) -> Novelty:
    """A novelty at full strength; the whole trial uses the levels of its template, so that nothing else changes."""
    setting = {"template": 1.0 + list(TEMPLATES).index(name)} if name in TEMPLATES else {}
    words = (NOVELTIES[name].__doc__ or "").splitlines()[0].rstrip(".")
    return Novelty(name, {_parameter(name): (1.0, 1.0)}, words, setting)


def _pigs(obs: Observations, action: Actions, obs2: Observations, reward: Floats, end: Flags) -> Floats:
    return _destroyed(obs, obs2, layout.PIGS)


def _goals(obs: Observations, action: Actions, obs2: Observations, reward: Floats, end: Flags) -> Floats:
    return _destroyed(obs, obs2, layout.GOALS) + reward


def _at_the_first(obs: Observations) -> Actions:
    """Aim low at the first object, which is a pig if there is one."""
    return np.full(len(obs), aim.join(0, 0, 0))


def _goals_left(obs: Observations) -> Floats:
    return layout.decode_counts(obs, layout.GOALS) + 1.0


def _destroyed(obs: Observations, obs2: Observations, column: int) -> Floats:
    return layout.decode_counts(obs, column) - layout.decode_counts(obs2, column)


_SCORES = (
    Score("goal", _goals, 1.0, inf, "things destroyed that must be, and 1 for the level", _goals_left),
    Score("paper", _pigs, 1.0, inf, "pigs destroyed by the shot"),
)


def _mask(observations: Observations) -> NDArray[np.bool_]:
    """Only objects on the screen can be aimed at."""
    return np.repeat(layout.occupied(observations), aim.PER_OBJECT, axis=1)


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


class AngryBirds(Domain):
    """A batch of levels, each in its own world."""

    spec = DomainSpec(
        observation_low=np.full(layout.N_OBSERVATIONS, -4.0, np.float32),
        observation_high=np.full(layout.N_OBSERVATIONS, 8.0, np.float32),
        observation_centre=np.zeros(layout.N_OBSERVATIONS),
        observation_scale=np.ones(layout.N_OBSERVATIONS),
        observation_names=layout.OBSERVATION_NAMES,
        describe_state=_describe,
        n_actions=len(aim.ACTION_NAMES),
        action_names=aim.ACTION_NAMES,
        name_action=name_shot,
        action_order=aim.candidate_order(),
        action_mask=_mask,
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
        defaults=Defaults(
            agent="dqn", novelty="taller-slingshot", score="goal", detector="given", protocol="1..40+40",
            options={"rule": "text", "space": "embedding"},
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
        self._targets = [aim.Targets() for _ in range(n)]
        self._observations = np.zeros((n, layout.N_OBSERVATIONS), np.float32)

    def reset(self, rows: Rows, uniforms: Floats) -> None:
        """Load a level of each row's template, or of a random one; changed parameters take effect here."""
        from nappingrl.domains.angrybirds.physics.world import World

        names = list(TEMPLATES)
        first, last = self.levels
        for row, (which, number) in zip(rows.tolist(), uniforms.tolist(), strict=True):
            parameters = dict(zip(self.spec.parameters, self._parameters[row].tolist(), strict=True))
            template = parameters.pop("template")
            if template not in range(len(names) + 1):
                raise BadSpecError(f"template {template:g} of angrybirds; allowed: 0 (any), 1 to {len(names)}")
            name = names[int(template) - 1] if template else names[int(which * len(names))]
            strengths = {name: parameters[_parameter(name)] for name in NOVELTIES}
            level = make_level(name, first + int(number * (last - first)))
            self._worlds[row] = World(level, PRESET, make_change(strengths))
            self._targets[row] = aim.Targets()
            self._update_observation(row)

    def observe(self, rows: Rows) -> Observations:
        """The observations of some rows; see `layout`."""
        return self._observations[rows]

    def step(self, rows: Rows, actions: Actions) -> tuple[Floats, Flags]:
        """Shoot once in each row and wait until nothing moves. A shot at an empty slot wastes the bird."""
        rewards = np.zeros(len(rows))
        terminated = np.zeros(len(rows), np.bool_)
        for m, (row, action) in enumerate(zip(rows.tolist(), actions.tolist(), strict=True)):
            shot = self._targets[row].aim(action, PLANNER, self.world(row).level.camera.scale)
            rewards[m], terminated[m] = self.shoot(row, shot.release, shot.tap_ms)
        return rewards, terminated

    def shoot(self, row: int, release: Point, tap_ms: int = 0) -> tuple[float, bool]:
        """One shot, by an agent or a person: draw the bird to a point of the screen; reward, and whether it is over."""
        world = self.world(row)
        scenes = self._reels[row] = [world.scene()] if self.reel_every else []
        first = world.ticks

        def keep() -> None:
            if (world.ticks - first) % self.reel_every == 0:
                scenes.append(world.scene())

        at = aim.to_world(release, world.level.camera, world.view)
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
        world = self.world(row)
        self._targets[row].update(ground_truth(world.scene()))
        self._observations[row] = self._targets[row].observe(world.pigs_left, world.goals_left)

    def draw(self, row: int, canvas: Canvas) -> None:
        """Draw the screen."""
        _draw(self.world(row).scene(), canvas)


def _draw(scene: "Scene", canvas: Canvas) -> None:
    from nappingrl.domains.angrybirds.pictures.picture import draw

    canvas.image(draw(scene))
