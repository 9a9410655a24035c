"""One level being played: Box2D underneath, damage, shots and the end of the level on top.

Damage is dealt where two bodies begin to touch, by their velocities before it. Looking at what touches after each step
would not do: a fast bird touches a thing and leaves it again within one step.
"""

import weakref
from collections.abc import Callable
from math import hypot
from typing import Any

from nappingrl.domains.angrybirds.physics import box2d
from nappingrl.domains.angrybirds.physics.bodies import COLOURS, Body, Maker, Touches
from nappingrl.domains.angrybirds.physics.change import Change
from nappingrl.domains.angrybirds.physics.presets import preset_by_name
from nappingrl.domains.angrybirds.physics.scene import (
    BLOCKS,
    GRAVITY,
    GROUND,
    LAUNCH_SPEED,
    WORLD_WIDTH,
    Level,
    Point,
    Scene,
    Thing,
    View,
    make_sling,
)  # fmt: skip
from nappingrl.domains.angrybirds.physics.shots import Shot
from nappingrl.domains.angrybirds.physics.sizes import SPRITE_SIZES

STEP = 0.02
ITERATIONS = 100, 100
MOMENTUM_DAMAGE = 11.22
SLOW = 0.15
"""Units per second; a touch at a lower relative speed is none (ours: heaps that settle hurt nothing)."""
DRAG_TICKS = 50
"""Time from drawing the bird to its release."""
SHOT_TICKS = 2000
"""A shot is over at the latest then, whatever still moves."""
LONGEST_TAP_MS = 5000

PIG_POINTS, BLOCK_POINTS, BIRD_POINTS = 5000, 500, 10000

OnStep = Callable[[], None]


class World:
    """A level, from the first bird on the sling to won or lost. The same level and shots give the same bits.

    Attributes:
        level: what stands there, after the change.
        status: playing, won or lost.
        score: points so far.
        pigs_left, goals_left: how many pigs, and how many things that must be destroyed, are alive.
    """

    def __init__(self, level: Level, preset: str = "phyq", change: Change | None = None) -> None:
        self.change = change or Change()
        self.level = self.change.level(level)
        self.preset = self.change.preset(preset_by_name(preset))
        self.sling = make_sling(self.level.sling, self.change.sling_height())
        self.status = "playing"
        self.score = 0
        self.ticks = 0
        self.dots: list[Point] = []
        self.flying: list[Body] = []
        """The launched bird and what came out of it, until taken away."""
        self._b2 = box2d.b2World(gravity=(0, -GRAVITY), doSleep=True)
        weakref.finalize(self, _let_go, self._b2).atexit = False
        self._touches = self._b2.contactListener = Touches()
        self.maker = Maker(self._b2, self.preset)
        self._ground = self.maker.ground(self.level)
        self.fixed = [self.maker.item(item) for item in self.level.items if item.kind == "platform"]
        self.moving = [self.maker.item(item) for item in self.level.items if item.kind != "platform"]
        self.waiting = [(self.maker.new_id(), type_) for type_ in self.level.birds]
        self._shot: Shot | None = None
        self._is_mortal = False
        self._run_until_still(round(self.preset.immortal / STEP))
        self._is_mortal = True

    # What there is ---------------------------------------------------------------------------------------------------

    @property
    def time(self) -> float:
        """Simulated seconds since the level was loaded."""
        return self.ticks * STEP

    @property
    def fuse_ticks(self) -> int:
        """From the black bird's first collision to its explosion."""
        return round(self.preset.fuse / STEP)

    @property
    def birds_left(self) -> int:
        """Birds that can still be shot."""
        return len(self.waiting)

    @property
    def goals_left(self) -> int:
        """Living things that must be destroyed."""
        return sum(body.is_goal for body in self.moving)

    @property
    def pigs_left(self) -> int:
        """Living pigs."""
        return sum(body.kind == "pig" for body in self.moving)

    @property
    def is_moving(self) -> bool:
        """Whether anything moves, or the last shot is not over."""
        return self._shot is not None or any(body.b2.awake for body in self.moving)

    @property
    def view(self) -> View:
        """How all of it is seen."""
        return self.change.view(View())

    def scene(self) -> Scene:
        """All that can be seen now."""
        bodies = sorted(self.moving + self.flying + self.fixed, key=_ground_truth_order)
        seen = [_thing(body) for body in bodies]
        n_before = sum(thing.kind == "pig" for thing in seen)
        seen[n_before:n_before] = self._waiting_birds()
        return Scene(
            self.level.camera,
            self.sling,
            tuple(self.change.thing(thing) for thing in seen),
            tuple(self.dots),
            self.view,
            self.waiting[0][0] if self.waiting and self.status == "playing" else None,
        )

    def _waiting_birds(self) -> list[Thing]:
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
        """A whole shot: draw towards `release` (world units), let go, wait until nothing moves. False if refused.

        `until_won` stops as soon as all that must be destroyed is: the same status sooner, but not the final score.
        """
        if not self.launch(release, tap_ms):
            return False
        self.settle(on_step, until_won)
        return True

    def launch(self, release: Point, tap_ms: int = 0) -> bool:
        """Let the next bird go; time goes on by `step` or `settle`. False if there is none or the level is over.

        The half step of gravity that is added to the speed puts the steps of the integrator on the parabola of the
        published flight (without it a shot of full reach lands 1 % short).
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
        bird = self.maker.moving("bird", type_, "", (x + dx, y + dy), 0.0)
        bird.id = id_
        kick = GRAVITY * self.preset.nature(type_).gravity * STEP / 2
        self.fly(bird, -LAUNCH_SPEED * dx, -LAUNCH_SPEED * dy + kick)
        self.dots = []
        tap = round(min(tap_ms, LONGEST_TAP_MS) / 1000 / STEP) if tap_ms > 0 else None
        self._shot = Shot(bird, self.ticks, tap)
        return True

    def fly(self, bird: Body, vx: float, vy: float) -> None:
        """Give a bird, or what came out of one, its velocity."""
        bird.b2.linearVelocity = (vx, vy)
        bird.vx, bird.vy = vx, vy
        self.flying.append(bird)

    def settle(self, on_step: OnStep | None = None, until_won: bool = False) -> None:
        """Go on until nothing moves, the launched bird is gone and the level is decided or waits for a shot."""
        start = self.ticks
        while self.is_moving and self.ticks - start < SHOT_TICKS:
            self._tick_or_skip()
            if on_step is not None:
                on_step()
            if until_won and not self.goals_left:
                break
        self._end_shot()
        self._judge()

    def step(self, n: int = 1) -> None:
        """Go on by n fixed steps."""
        for _ in range(n):
            self._tick()
        if not self.is_moving:
            self._judge()

    def _run_until_still(self, ticks: int) -> None:
        """Let some time pass, without computing steps in which nothing moves."""
        end = self.ticks + ticks
        while self.ticks < end and any(body.b2.awake for body in self.moving):
            self._tick()
        self.ticks = end

    # One step --------------------------------------------------------------------------------------------------------

    def _tick_or_skip(self) -> None:
        """One step; or, where only clocks run, a jump to the next moment at which one of them strikes."""
        if self._shot is not None and self._is_still():
            self.ticks = max(self.ticks, self._shot.next_event - 1)
        self._tick()

    def _is_still(self) -> bool:
        return not any(body.b2.awake for body in self.moving + self.flying)

    def _tick(self) -> None:
        if self.change.has_forces:
            self.change.push(self)
        if self.flying and any(self.preset.wind):
            self._blow()
        self._b2.Step(STEP, *ITERATIONS)
        self.ticks += 1
        self._collide()
        if self._shot is not None and not self._shot.watch(self):
            self._shot = None

    def _blow(self) -> None:
        for bird in self.flying:
            wind = [bird.mass * a for a in self.preset.wind]
            bird.b2.ApplyForceToCenter(wind, False)

    def _collide(self) -> None:
        """Deal the damage of what has begun to touch in this step, and see what has left the world."""
        hits = self._touches.take()
        for ids in sorted(hits):  # not as found: the order of a level's objects must not matter
            self._hit(*hits[ids])
        half = self.level.width * WORLD_WIDTH / 2
        for body in self.moving + self.flying:
            b2 = body.b2
            if not b2.awake:
                body.vx = body.vy = 0.0
                continue
            velocity = b2.linearVelocity
            body.vx, body.vy = velocity.x, velocity.y
            if abs(b2.position.x) - body.half_width > half:
                self.remove(body)
        self.bury()

    def _hit(self, one: Body, two: Body) -> None:
        """Two bodies have begun to touch."""
        dx, dy = one.vx - two.vx, one.vy - two.vy
        speed = hypot(dx, dy)
        if speed < SLOW:
            return
        for body, other in ((one, two), (two, one)):
            if body.nature is None or body.is_dead:
                continue
            if body.kind == "bird":
                if self._shot is not None:
                    self._shot.touched(self, body)
            elif body.kind == "egg":
                self.explode(body)
            else:
                self.damage(body, self._force(body, other, dx, dy, speed), other.kind == "bird")

    def _force(self, body: Body, other: Body, dx: float, dy: float, speed: float) -> float:
        """The damage that a touch does to `body`."""
        nature, attacker = body.nature, other.nature
        assert nature is not None
        factor = 1.0
        if attacker is not None and body.kind == "pig":
            factor = attacker.pig_harm
        elif attacker is not None and attacker.harm is not None and body.kind == "block":
            factor = attacker.harm.get(body.material, 1.0)
        if not self.preset.by_mass:
            return speed * factor
        if other.kind == "bird" and body.kind == "block":
            return MOMENTUM_DAMAGE * speed * other.mass * factor - nature.defence
        share = abs(other.vx * dx + other.vy * dy), abs(body.vx * dx + body.vy * dy)
        heavy = other.mass if attacker is not None and share[0] > share[1] else body.mass
        return (MOMENTUM_DAMAGE / 2 * speed * heavy - nature.defence) * factor

    def damage(self, body: Body, amount: float, by_bird: bool = False) -> None:
        """Take life from an object; it dies at 0."""
        if amount <= 0 or body.is_dead or body.nature is None or not self._is_mortal:
            return
        body.life -= amount
        if body.life <= 0:
            self.kill(body)
        elif by_bird:
            points = round(amount if self.preset.by_mass else 10 * amount) * 10
            self.score += points if points > 10 else 0

    def kill(self, body: Body) -> None:
        """Destroyed, with the points for it."""
        if body.is_dead:
            return
        self.remove(body)
        self.score += {"pig": PIG_POINTS, "block": BLOCK_POINTS}.get(body.kind, 0)
        if body.kind == "tnt":
            self.explode(body)

    def remove(self, body: Body) -> None:
        """Gone without points; the Box2D body goes at the end of the step."""
        body.is_dead = True

    def bury(self) -> None:
        """Take away what has died in this step."""
        for group in (self.moving, self.flying):
            dead = [body for body in group if body.is_dead]
            if dead:
                for body in dead:
                    for edge in body.b2.contacts:
                        edge.other.awake = True
                    self._b2.DestroyBody(body.b2)
                group[:] = [body for body in group if not body.is_dead]

    def explode(self, body: Body) -> None:
        """Damage and push everything near but birds; what explodes is gone."""
        self.remove(body)
        blast = self.preset.blasts[body.type]
        x, y = body.b2.position
        for other in list(self.moving):
            if other.is_dead or other is body:
                continue
            dx, dy = other.b2.worldCenter.x - x, other.b2.worldCenter.y - y
            distance = hypot(dx, dy)
            if distance > blast.radius:
                continue
            share = 1 - distance / blast.radius if blast.is_linear else 1 / max(distance, 0.1)
            push = blast.impulse * share / max(distance, 1e-6)
            other.b2.ApplyLinearImpulse((push * dx, push * dy), other.b2.worldCenter, True)
            self.damage(other, blast.damage * share)

    # The end ---------------------------------------------------------------------------------------------------------

    def _end_shot(self) -> None:
        for bird in self.flying:
            self.remove(bird)
        self.bury()
        self._shot = None

    def _judge(self) -> None:
        if self.status != "playing" or self._shot is not None:
            return
        if not self.goals_left or not self.waiting:
            self.status = "won" if not self.goals_left else "lost"
            self.score += BIRD_POINTS * len(self.waiting)


_ROUND = {"Circle", "CircleSmall", "Triangle", "TriangleHole", "SquareHole"}
_PIG_ORDER = {"BasicSmall": 0, "BasicBig": 1, "BasicMedium": 2}
_KIND_ORDER = {"pig": 0, "bird": 1, "egg": 1, "block": 2, "tnt": 4, "platform": 5}


def _ground_truth_order(body: Body) -> tuple[int, int, int]:
    """Pigs, birds, round, hollow and novel blocks, boxes, TNT, platforms; within each as they were made."""
    kind = _KIND_ORDER[body.kind]
    if body.kind == "block" and body.type in BLOCKS and body.type not in _ROUND:
        kind = 3
    return kind, _PIG_ORDER.get(body.type, 0), -body.id


def _let_go(b2: Any) -> None:
    """Box2D frees its bodies with their world, but never what hangs on them: without this each world would stay."""
    for body in b2.bodies:
        body.userData = None


def _thing(body: Body) -> Thing:
    x, y = body.b2.position
    return Thing(
        body.id, body.kind, body.type, body.material, x, y, body.b2.angle, *body.scale, body.life, body.full_life,
        body.colour, body.is_goal,
    )  # fmt: skip
