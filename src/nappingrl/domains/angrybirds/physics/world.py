"""One level in play: Box2D, shots and time. `rules` deals damage and decides the level.

Damage is dealt when two bodies begin to touch, by their velocities before the step. Checking contacts after each step
is not enough: a fast bird can touch an object and leave it within one step.
"""

import weakref
from collections.abc import Callable
from math import hypot
from typing import Any

from nappingrl.domains.angrybirds.physics import box2d
from nappingrl.domains.angrybirds.physics.bodies import COLOURS, Body, BodyFactory, ContactRecorder
from nappingrl.domains.angrybirds.physics.change import Change
from nappingrl.domains.angrybirds.physics.presets import preset_by_name
from nappingrl.domains.angrybirds.physics.rules import Rules
from nappingrl.domains.angrybirds.physics.scene import (
    BLOCKS,
    GRAVITY,
    GROUND,
    LAUNCH_SPEED,
    WORLD_WIDTH,
    Level,
    Scene,
    Thing,
    View,
    make_sling,
)
from nappingrl.domains.angrybirds.physics.shots import Shot
from nappingrl.domains.angrybirds.physics.sizes import SPRITE_SIZES
from nappingrl.types import Point

STEP = 0.02
ITERATIONS = 100, 100
DRAG_TICKS = 50
"""Ticks from drawing the bird to its release."""
SHOT_TICKS = 2000
"""A shot ends after this many ticks, even if objects still move."""
LONGEST_TAP_MS = 5000
SPENT_TICKS = 10
"""Ticks between two checks whether the bird is spent."""

OnStep = Callable[[], None]


class World:
    """A level, from the first bird on the sling until it is won or lost.

    The same level and shots give bit-identical results.

    Attributes:
        level: The level, after the change.
        sling: The slingshot.
        rules: Damage, score and outcome.
        ticks: Steps since the level was loaded.
        dots: The path of the last flight, a point every 0.1 s.
        fixed: Platforms.
        moving: All other objects, without birds.
        flying: The launched bird and what came out of it, until removed.
        waiting: Id and type of the birds that can still be shot.
    """

    def __init__(self, level: Level, preset: str = "phyq", change: Change | None = None) -> None:
        self.change = change or Change()
        self.level = self.change.level(level)
        self.preset = self.change.preset(preset_by_name(preset))
        self.sling = make_sling(self.level.sling, self.change.sling_height())
        self.ticks = 0
        self.dots: list[Point] = []
        self.flying: list[Body] = []
        self._b2 = box2d.b2World(gravity=(0, -GRAVITY), doSleep=True)
        weakref.finalize(self, _release_user_data, self._b2).atexit = False
        self._contacts = self._b2.contactListener = ContactRecorder()
        self.factory = BodyFactory(self._b2, self.preset)
        self._ground = self.factory.ground(self.level)
        self.fixed = [self.factory.item(item) for item in self.level.items if item.kind == "platform"]
        self.moving = [self.factory.item(item) for item in self.level.items if item.kind != "platform"]
        self.waiting = [(self.factory.new_id(), type_) for type_ in self.level.birds]
        self.rules = Rules(self.preset, self.moving)
        self._shot: Shot | None = None
        self._is_awake = True
        """Whether anything moved in the last step."""
        self._run_until_still(round(self.preset.immortal / STEP))
        self.rules.is_damage_on = True

    # State -----------------------------------------------------------------------------------------------------------

    @property
    def status(self) -> str:
        """One of playing, won, lost."""
        return self.rules.status

    @property
    def score(self) -> int:
        """Points so far."""
        return self.rules.score

    @property
    def time(self) -> float:
        """Simulated seconds since the level was loaded."""
        return self.ticks * STEP

    @property
    def fuse_ticks(self) -> int:
        """Ticks from the black bird's first collision to its explosion."""
        return round(self.preset.fuse / STEP)

    @property
    def birds_left(self) -> int:
        """Birds that can still be shot."""
        return len(self.waiting)

    @property
    def goals_left(self) -> int:
        """Objects that must still be destroyed."""
        return self.rules.goals_left

    @property
    def pigs_left(self) -> int:
        """Living pigs."""
        return self.rules.pigs_left

    @property
    def is_moving(self) -> bool:
        """Whether anything moves, or the last shot is not over."""
        return self._shot is not None or any(body.b2.awake for body in self.moving)

    @property
    def view(self) -> View:
        """How the screen is shown."""
        return self.change.view(View())

    def scene(self) -> Scene:
        """A snapshot of everything that is visible."""
        bodies = sorted(self.moving + self.flying + self.fixed, key=_ground_truth_order)
        things = [_thing(body) for body in bodies]
        n_pigs = sum(thing.kind == "pig" for thing in things)
        things[n_pigs:n_pigs] = self._waiting_birds()
        return Scene(
            self.level.camera,
            self.sling,
            tuple(self.change.thing(thing) for thing in things),
            tuple(self.dots),
            self.view,
            self.waiting[0][0] if self.waiting and self.status == "playing" else None,
        )

    def _waiting_birds(self) -> list[Thing]:
        """The first on the sling (unless a bird flies), the others on the ground behind it."""
        things = []
        n_shot = len(self.level.birds) - len(self.waiting)
        for place, (id_, type_) in enumerate(self.waiting, n_shot):
            width, height = SPRITE_SIZES[type_]
            x, y = self.sling.origin
            if place > n_shot or self._shot is not None:
                x, y = x - place * 1.75 * width, GROUND + height / 2
            things.append(Thing(id_, "bird", type_, "", x, y, 0.0, 1.0, 1.0, 1.0, 1.0, COLOURS[type_], False))
        return things

    # Shots -----------------------------------------------------------------------------------------------------------

    def shoot(self, release: Point, tap_ms: int = 0, on_step: OnStep | None = None, until_won: bool = False) -> bool:
        """Draw the bird towards `release` (world units), let go, and wait until nothing moves. False if refused.

        `until_won` stops as soon as all goals are destroyed, or the bird can do no more: the status is final then, the
        score is not.
        """
        if not self.launch(release, tap_ms):
            return False
        self.settle(on_step, until_won)
        return True

    def launch(self, release: Point, tap_ms: int = 0) -> bool:
        """Launch the next bird; `step` or `settle` let time pass. False if no bird is left or the level is over.

        Half a step of gravity is added to the speed. It puts the integrator's steps on the parabola of the published
        flight; without it a shot at full range lands 1 % short.
        """
        if self.status != "playing" or not self.waiting or self._shot is not None:
            return False
        x, y = self.sling.origin
        dx, dy = release[0] - x, release[1] - y
        drawn = hypot(dx, dy)
        if drawn > 1.0:
            dx, dy = dx / drawn, dy / drawn
        self._run_until_still(DRAG_TICKS)
        if self.status != "playing":
            return False
        id_, type_ = self.waiting.pop(0)
        bird = self.factory.moving("bird", type_, "", (x + dx, y + dy), 0.0)
        bird.id = id_
        kick = GRAVITY * self.preset.nature(type_).gravity * STEP / 2
        self.fly(bird, -LAUNCH_SPEED * dx, -LAUNCH_SPEED * dy + kick)
        self.dots = []
        tap = round(min(tap_ms, LONGEST_TAP_MS) / 1000 / STEP) if tap_ms > 0 else None
        self._shot = Shot(bird, self.ticks, tap)
        return True

    def fly(self, bird: Body, vx: float, vy: float) -> None:
        """Let a bird, or an egg that it drops, fly at a velocity."""
        bird.b2.linearVelocity = (vx, vy)
        bird.vx, bird.vy = vx, vy
        self.flying.append(bird)

    def settle(self, on_step: OnStep | None = None, until_won: bool = False) -> None:
        """Step until nothing moves, then end the shot and decide the level."""
        start, n_moving = self.ticks, len(self.moving)
        while self.is_moving and self.ticks - start < SHOT_TICKS:
            self._tick_or_skip()
            if on_step is not None:
                on_step()
            if until_won and ((len(self.moving) < n_moving and not self.goals_left) or self._is_bird_spent()):
                break
        for bird in self.flying:
            bird.is_dead = True
        self.remove_dead()
        self._shot = None
        self.rules.decide(self.birds_left)

    def _is_bird_spent(self) -> bool:
        """Whether nothing but the bird moves, and the bird cannot touch or hurt anything any more."""
        if self._shot is None or self.ticks % SPENT_TICKS or any(body.b2.awake for body in self.moving):
            return False
        return self._shot.is_spent(self)

    def step(self, n: int = 1) -> None:
        """Make n fixed steps; once nothing moves, decide the level."""
        for _ in range(n):
            self._tick()
        if not self.is_moving:
            self.rules.decide(self.birds_left)

    # Steps -----------------------------------------------------------------------------------------------------------

    def _run_until_still(self, ticks: int) -> None:
        """Let some ticks pass, without computing those in which nothing moves."""
        end = self.ticks + ticks
        while self.ticks < end and any(body.b2.awake for body in self.moving):
            self._tick()
        self.ticks = end

    def _tick_or_skip(self) -> None:
        """One step; if only timers run, jump to the next one that expires."""
        if (
            self._shot is not None
            and not self._is_awake
            and not any(body.b2.awake for body in self.moving + self.flying)
        ):
            self.ticks = max(self.ticks, self._shot.next_event - 1)
        self._tick()

    def _tick(self) -> None:
        if self.change.has_forces:
            self.change.push(self)
        if self.flying and any(self.preset.wind):
            self._blow()
        self._b2.Step(STEP, *ITERATIONS)
        self.ticks += 1
        self._collide()
        self._update_velocities()
        self.remove_dead()
        if self._shot is not None and not self._shot.watch(self):
            self._shot = None

    def _blow(self) -> None:
        for bird in self.flying:
            wind = [bird.mass * a for a in self.preset.wind]
            bird.b2.ApplyForceToCenter(wind, False)

    def _collide(self) -> None:
        """Deal the damage of the contacts that began in this step, in an order that does not depend on the level's."""
        contacts = self._contacts.take()
        for ids in sorted(contacts):
            self.rules.collide(*contacts[ids], self._bird_hit)

    def _bird_hit(self, bird: Body) -> None:
        if self._shot is not None:
            self._shot.touched(self, bird)

    def _update_velocities(self) -> None:
        """Store the velocities that the next contacts need; objects that have left the world are dead."""
        half_width = self.level.width * WORLD_WIDTH / 2
        self._is_awake = False
        for body in self.moving + self.flying:
            b2 = body.b2
            if not b2.awake:
                body.vx = body.vy = 0.0
                continue
            self._is_awake = True
            body.vx, body.vy = b2.linearVelocity
            if abs(b2.position.x) - body.half_width > half_width:
                body.is_dead = True

    def remove_dead(self) -> None:
        """Take dead bodies out of the world and wake what touched them."""
        for group in (self.moving, self.flying):
            dead = [body for body in group if body.is_dead]
            if dead:
                for body in dead:
                    for edge in body.b2.contacts:
                        edge.other.awake = True
                    self._b2.DestroyBody(body.b2)
                group[:] = [body for body in group if not body.is_dead]


_NOT_BOXES = {"Circle", "CircleSmall", "Triangle", "TriangleHole", "SquareHole"}
_PIG_ORDER = {"BasicSmall": 0, "BasicBig": 1, "BasicMedium": 2}
_KIND_ORDER = {"pig": 0, "bird": 1, "egg": 1, "block": 2, "tnt": 4, "platform": 5}


def _ground_truth_order(body: Body) -> tuple[int, int, int]:
    """Pigs, birds, blocks that are no boxes or novel, boxes, TNT, platforms; each group in order of creation."""
    kind = _KIND_ORDER[body.kind]
    if body.kind == "block" and body.type in BLOCKS and body.type not in _NOT_BOXES:
        kind = 3
    return kind, _PIG_ORDER.get(body.type, 0), -body.id


def _release_user_data(b2: Any) -> None:
    """Break the links from Box2D bodies to Python; Box2D frees only the bodies, so every world would leak."""
    for body in b2.bodies:
        body.userData = None


def _thing(body: Body) -> Thing:
    x, y = body.b2.position
    return Thing(
        body.id, body.kind, body.type, body.material, x, y, body.b2.angle, *body.scale, body.life, body.full_life,
        body.colour, body.is_goal,
    )  # fmt: skip
