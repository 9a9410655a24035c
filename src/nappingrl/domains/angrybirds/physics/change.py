"""The hooks through which a novelty changes a world: level, constants, forces, and how the world is shown."""

from functools import reduce
from math import prod
from typing import TYPE_CHECKING

from typing_extensions import override

from nappingrl.domains.angrybirds.physics.presets import Preset
from nappingrl.domains.angrybirds.physics.scene import Level, Thing, View

if TYPE_CHECKING:
    from nappingrl.domains.angrybirds.physics.world import World


class Change:
    """No change. A novelty overrides the hooks it needs."""

    has_forces = False
    """Whether `push` must be called in every step."""

    def __init__(self, strength: float = 1.0) -> None:
        self.strength = strength

    def level(self, level: Level) -> Level:
        """Add, remove or move objects."""
        return level

    def preset(self, preset: Preset) -> Preset:
        """Replace physical constants."""
        return preset

    def sling_height(self) -> float:
        """Height of the slingshot relative to the usual one."""
        return 1.0

    def push(self, world: "World") -> None:
        """Apply forces before a step."""

    def thing(self, thing: Thing) -> Thing:
        """Change how an object is shown."""
        return thing

    def view(self, view: View) -> View:
        """Change how the whole screen is shown."""
        return view


class Changes(Change):
    """Several changes, applied in order."""

    def __init__(self, changes: list[Change]) -> None:
        super().__init__()
        self._changes = changes
        self.has_forces = any(change.has_forces for change in changes)

    @override
    def level(self, level: Level) -> Level:
        return reduce(lambda value, change: change.level(value), self._changes, level)

    @override
    def preset(self, preset: Preset) -> Preset:
        return reduce(lambda value, change: change.preset(value), self._changes, preset)

    @override
    def sling_height(self) -> float:
        return prod((change.sling_height() for change in self._changes), start=1.0)

    @override
    def push(self, world: "World") -> None:
        for change in self._changes:
            change.push(world)

    @override
    def thing(self, thing: Thing) -> Thing:
        return reduce(lambda value, change: change.thing(value), self._changes, thing)

    @override
    def view(self, view: View) -> View:
        return reduce(lambda value, change: change.view(value), self._changes, view)
