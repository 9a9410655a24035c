"""Pig Color. Published: all objects take the pig's colour, labels stay. Our choice: birds keep theirs.

Otherwise an agent that classifies by colour would not see its own birds.
"""

from dataclasses import replace

from typing_extensions import override

from nappingrl.domains.angrybirds.physics.change import Change
from nappingrl.domains.angrybirds.physics.scene import Thing


class PigColour(Change):
    """Everything but birds looks like a pig."""

    @override
    def thing(self, thing: Thing) -> Thing:
        return thing if thing.kind in ("bird", "egg") else replace(thing, colour="pig")
