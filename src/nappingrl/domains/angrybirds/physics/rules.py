"""The rules of the game: damage, explosions, points, and when a level is won or lost."""

from collections.abc import Callable
from math import hypot

from nappingrl.domains.angrybirds.physics.bodies import Body
from nappingrl.domains.angrybirds.physics.presets import Preset

MOMENTUM_DAMAGE = 11.22
SLOWEST_HIT = 0.15
"""Units per second; slower contacts do no damage (our choice: a heap that settles is not damaged)."""
PIG_POINTS, BLOCK_POINTS, BIRD_POINTS = 5000, 500, 10000
PLATFORM_MASS = 1.0
"""Of a platform as an attacker in the released game; the ground cannot be one."""


class Rules:
    """The damage, the score and the outcome of one level.

    Args:
        preset: Constants of damage and explosions.
        moving: All objects that can be damaged; the world adds and removes them in place.

    Attributes:
        status: playing, won or lost.
        score: Points so far.
        is_damage_on: False while a level is loaded: nothing takes damage then.
    """

    def __init__(self, preset: Preset, moving: list[Body]) -> None:
        self.status = "playing"
        self.score = 0
        self.is_damage_on = False
        self._preset = preset
        self._moving = moving

    @property
    def goals_left(self) -> int:
        """Objects that must still be destroyed."""
        return sum(body.is_goal for body in self._moving)

    @property
    def pigs_left(self) -> int:
        """Living pigs."""
        return sum(body.kind == "pig" for body in self._moving)

    def decide(self, n_birds_left: int) -> None:
        """Decide the level if nothing is left to destroy or no bird is left; unused birds give points."""
        if self.status != "playing":
            return
        if not self.goals_left or not n_birds_left:
            self.status = "won" if not self.goals_left else "lost"
            self.score += BIRD_POINTS * n_birds_left

    def collide(self, one: Body, two: Body, on_bird_hit: Callable[[Body], None]) -> None:
        """Two bodies have begun to touch: deal damage, or report a bird."""
        speed = hypot(one.vx - two.vx, one.vy - two.vy)
        if speed < SLOWEST_HIT:
            return
        for body, other in ((one, two), (two, one)):
            if body.nature is None or body.is_dead:
                continue
            if body.kind == "bird":
                on_bird_hit(body)
            elif body.kind == "egg":
                self.explode(body)
            else:
                amount = self._collision_damage(body, other, speed)
                is_bird = other.kind == "bird"
                for _ in range(self._preset.bird_contacts if is_bird else 1):
                    self.damage(body, amount, is_bird)

    def _collision_damage(self, body: Body, other: Body, speed: float) -> float:
        """The damage that `other` does to `body` in one contact."""
        nature, attacker = body.nature, other.nature
        assert nature is not None
        factor = 1.0
        if attacker is not None and body.kind == "pig":
            factor = attacker.pig_harm
        elif attacker is not None and attacker.harm is not None and body.kind == "block":
            factor = attacker.harm.get(body.material, 1.0)
        if not self._preset.by_mass:
            return speed * factor
        if other.kind == "bird" and body.kind == "block":
            return MOMENTUM_DAMAGE * speed * other.mass * factor - nature.defence
        mass = _mass_after(body, other) if self._preset.is_game else _mass_before(body, other)
        return (MOMENTUM_DAMAGE / 2 * speed * mass - nature.defence) * factor

    def damage(self, body: Body, amount: float, by_bird: bool = False) -> None:
        """Reduce the life of an object; it is destroyed at 0."""
        if amount <= 0 or body.is_dead or body.nature is None or not self.is_damage_on:
            return
        body.life -= amount
        if body.life <= 0:
            self.destroy(body)
        elif by_bird:
            self.score += self._hit_points(body, amount)

    def _hit_points(self, body: Body, amount: float) -> int:
        """Points for the hit of a bird that did not destroy an object."""
        if self._preset.is_game:
            points = round(amount)
            return points if points > 1 and body.life > amount else 0
        points = round(amount if self._preset.by_mass else 10 * amount) * 10
        return points if points > 10 else 0

    def destroy(self, body: Body) -> None:
        """Destroy an object and count its points; TNT explodes."""
        if body.is_dead:
            return
        body.is_dead = True
        self.score += {"pig": PIG_POINTS, "block": BLOCK_POINTS}.get(body.kind, 0)
        if body.kind == "tnt":
            self.explode(body)

    def explode(self, body: Body) -> None:
        """Damage and push all objects near a body except birds; the body is gone."""
        body.is_dead = True
        blast = self._preset.blasts[body.type]
        x, y = body.b2.position
        for other in list(self._moving):
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


def _mass_before(body: Body, other: Body) -> float:
    """Mass of the attacker: the body that contributes more to the relative velocity before the impact."""
    dx, dy = other.vx - body.vx, other.vy - body.vy
    is_other = abs(other.vx * dx + other.vy * dy) > abs(body.vx * dx + body.vy * dy)
    return other.mass if other.nature is not None and is_other else body.mass


def _mass_after(body: Body, other: Body) -> float:
    """Mass of the attacker in the released game, which compares the contributions after the impact, with their signs.

    Both bodies then get the same answer: the other one is the attacker unless they are moving apart.
    """
    (x, y), (other_x, other_y) = body.b2.linearVelocity, other.b2.linearVelocity
    is_other = (other_x - x) * (other.vx - body.vx) + (other_y - y) * (other.vy - body.vy) > 0
    mass = PLATFORM_MASS if other.kind == "platform" else other.mass
    return mass if is_other and mass else body.mass
