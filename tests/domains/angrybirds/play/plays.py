"""Short levels for plays."""

from nappingrl.domains.angrybirds.physics.scene import GROUND, Item, Level
from nappingrl.domains.angrybirds.play.live_world import LiveWorld
from nappingrl.domains.angrybirds.play.play import Play

SHORT = Level("short", ("BirdBlack",), (Item("pig", "BasicSmall", -8.0, GROUND + 0.25),))
"""Soon over: black birds explode after their first collision."""
ONE_PIG = Level("one-pig", ("BirdRed", "BirdYellow"), (Item("pig", "BasicSmall", 2.0, GROUND + 0.25),))


def make_play(level: Level = ONE_PIG, preset: str = "phyq") -> Play:
    return Play(lambda _: level, lambda level: LiveWorld(level, preset))
