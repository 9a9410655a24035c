"""The objects of a world as Box2D bodies."""

from dataclasses import dataclass
from math import radians
from typing import Any

from nappingrl.domains.angrybirds.physics import box2d
from nappingrl.domains.angrybirds.physics.presets import Collider, Nature, Preset
from nappingrl.domains.angrybirds.physics.scene import GROUND, WORLD_WIDTH, Item, Level
from nappingrl.domains.angrybirds.physics.sizes import SPRITE_SIZES

STATIC_FRICTION = 0.4
"""Friction of ground and platforms, which have no material."""
_SCENERY, _OBJECT, _BIRD = 1, 2, 4


@dataclass(eq=False, slots=True)
class Body:
    """An object and its Box2D body."""

    id: int
    kind: str
    """One of pig, bird, block, tnt, platform, egg, ground."""
    type: str
    material: str
    b2: Any
    nature: Nature | None
    life: float
    colour: str
    is_goal: bool = False
    scale: tuple[float, float] = (1.0, 1.0)
    half_width: float = 0.0
    vx: float = 0.0
    vy: float = 0.0
    """Velocity after the last step."""
    is_dead: bool = False

    @property
    def mass(self) -> float:
        """Mass; 0 if the object cannot move."""
        return self.nature.mass if self.nature is not None else 0.0

    @property
    def full_life(self) -> float:
        """Life before any damage."""
        return self.nature.life if self.nature is not None else self.life


def _fixtures(collider: Collider) -> list[Any]:
    circles = [box2d.b2CircleShape(pos=collider.centre, radius=collider.radius)] if collider.radius else []
    return circles + [box2d.b2PolygonShape(vertices=list(polygon)) for polygon in collider.polygons]


def _add(b2: Any, shape: Any, **properties: float) -> None:
    """Give a body a shape. Box2D copies the shape, but its Python binding disowns it, which would leak it."""
    b2.CreateFixture(shape=shape, **properties)
    shape.thisown = True


COLOURS = {
    "BirdRed": "red",
    "BirdBlue": "blue",
    "BirdYellow": "yellow",
    "BirdBlack": "black",
    "BirdWhite": "white",
    "Egg": "white",
    "BasicSmall": "pig",
    "BasicMedium": "pig",
    "BasicBig": "pig",
    "GreenEgg": "pig",
    "Bone": "bone",
    "TNT": "tnt",
    "Platform": "platform",
}


class ContactRecorder(box2d.b2ContactListener):  # type: ignore[misc]
    """Records which bodies begin to touch."""

    def __init__(self) -> None:
        super().__init__()
        self._begun: dict[tuple[int, int], tuple[Body, Body]] = {}

    def BeginContact(self, contact: Any) -> None:  # noqa: N802
        """Called by Box2D within a step."""
        one, two = contact.fixtureA.body, contact.fixtureB.body
        if len(one.fixtures) + len(two.fixtures) > 2 and _is_touching_elsewhere(one, two, contact):
            return
        a, b = one.userData, two.userData
        self._begun[min(a.id, b.id), max(a.id, b.id)] = a, b

    def take(self) -> dict[tuple[int, int], tuple[Body, Body]]:
        """The contacts that began since the last call, by the ids of both bodies."""
        begun, self._begun = self._begun, {}
        return begun


def _is_touching_elsewhere(one: Any, two: Any, contact: Any) -> bool:
    """Whether two bodies already touch with other fixtures than those of a contact."""
    fixtures = {(contact.fixtureA, contact.fixtureB)}
    return any(
        edge.other == two and edge.contact.touching and (edge.contact.fixtureA, edge.contact.fixtureB) not in fixtures
        for edge in one.contacts
    )


class BodyFactory:
    """Creates bodies in a Box2D world; ids count down from -1."""

    def __init__(self, b2: Any, preset: Preset) -> None:
        self._b2 = b2
        self._preset = preset
        self._next_id = 0

    def new_id(self) -> int:
        """An id that is unique in this level."""
        self._next_id -= 1
        return self._next_id

    def ground(self, level: Level) -> Body:
        """The ground, from one end of the world to the other."""
        half = level.width * WORLD_WIDTH / 2
        shape = box2d.b2PolygonShape(box=(half, 2.2, (0.0, GROUND - 2.2), 0.0))
        return self._static("ground", "Ground", shape, 0.0, 0.0, 0.0, (1.0, 1.0))

    def _static(
        self, kind: str, type_: str, shape: Any, x: float, y: float, rotation: float, scale: tuple[float, float]
    ) -> Body:
        b2 = self._b2.CreateStaticBody(position=(x, y), angle=radians(rotation))
        _add(b2, shape, friction=STATIC_FRICTION, restitution=0.0, categoryBits=_SCENERY, maskBits=_OBJECT | _BIRD)
        body = Body(self.new_id(), kind, type_, "", b2, None, float("inf"), kind, scale=scale)
        b2.userData = body
        return body

    def item(self, item: Item) -> Body:
        """Create an object of a level."""
        if item.kind == "platform":
            width, height = SPRITE_SIZES["Platform"]
            shape = box2d.b2PolygonShape(box=(width * item.scale_x / 2, height * item.scale_y / 2))
            scale = (item.scale_x, item.scale_y)
            return self._static("platform", "Platform", shape, item.x, item.y, item.rotation, scale)
        body = self.moving(item.kind, item.type, item.material, (item.x, item.y), radians(item.rotation))
        body.is_goal = item.is_goal or item.kind == "pig"
        return body

    def moving(self, kind: str, type_: str, material: str, position: tuple[float, float], angle: float) -> Body:
        """Create an object that moves."""
        nature = self._preset.nature(type_, material)
        is_bird = kind in ("bird", "egg")
        b2 = self._b2.CreateDynamicBody(
            position=position,
            angle=angle,
            linearDamping=nature.drag,
            angularDamping=nature.spin_drag,
            gravityScale=nature.gravity,
            bullet=kind in ("bird", "pig"),
        )
        density = nature.mass / nature.collider.area
        for shape in _fixtures(nature.collider):
            _add(
                b2, shape, density=density, friction=nature.friction, restitution=nature.bounce,
                categoryBits=_BIRD if is_bird else _OBJECT,
                maskBits=_SCENERY | _OBJECT if is_bird else _SCENERY | _OBJECT | _BIRD,
            )  # fmt: skip
        half_width, colour = SPRITE_SIZES[type_][0] / 2, COLOURS.get(type_, material)
        body = Body(self.new_id(), kind, type_, material, b2, nature, nature.life, colour, half_width=half_width)
        b2.userData = body
        return body
