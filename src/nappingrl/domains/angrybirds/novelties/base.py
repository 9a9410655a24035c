"""What a novelty can do to this world: to the level, the constants, the forces, and what is seen."""

from typing import TYPE_CHECKING

from nappingrl.domains.angrybirds.physics.presets import Preset
from nappingrl.domains.angrybirds.physics.scene import Level, Thing, View

if TYPE_CHECKING:
    from nappingrl.domains.angrybirds.physics.world import World


class Change:
    """No change. A novelty overrides what it is about."""

    has_forces = False
    """Whether `push` is to be called in every step."""

    def __init__(self, strength: float = 1.0) -> None:
        self.strength = strength

    def level(self, level: Level) -> Level:
        """Another level: things added, taken away or moved."""
        return level

    def preset(self, preset: Preset) -> Preset:
        """Other constants."""
        return preset

    def sling_height(self) -> float:
        """How many times as high as usual the slingshot is."""
        return 1.0

    def push(self, world: "World") -> None:
        """Apply forces before a step."""

    def thing(self, thing: Thing) -> Thing:
        """How one object is seen."""
        return thing

    def view(self, view: View) -> View:
        """How the whole is seen."""
        return view


class Changes(Change):
    """Several changes, one after the other."""

    def __init__(self, changes: list[Change]) -> None:
        super().__init__()
        self._changes = changes
        self.has_forces = any(change.has_forces for change in changes)

    def level(self, level: Level) -> Level:
        """All of them."""
        for change in self._changes:
            level = change.level(level)
        return level

    def preset(self, preset: Preset) -> Preset:
        """All of them."""
        for change in self._changes:
            preset = change.preset(preset)
        return preset

    def sling_height(self) -> float:
        """All of them."""
        height = 1.0
        for change in self._changes:
            height *= change.sling_height()
        return height

    def push(self, world: "World") -> None:
        """All of them."""
        for change in self._changes:
            change.push(world)

    def thing(self, thing: Thing) -> Thing:
        """All of them."""
        for change in self._changes:
            thing = change.thing(thing)
        return thing

    def view(self, view: View) -> View:
        """All of them."""
        for change in self._changes:
            view = change.view(view)
        return view
