"""Pig Color. Public: all objects take the pig's colour, labels stay. Ours: birds keep theirs.

(An agent that goes by colour must still see what it shoots with.)
"""

from dataclasses import replace

from nappingrl.domains.angrybirds.physics.change import Change
from nappingrl.domains.angrybirds.physics.scene import Thing


class PigColour(Change):
    """Everything but birds looks like a pig."""

    def thing(self, thing: Thing) -> Thing:
        """In the pig's colours."""
        return thing if thing.kind in ("bird", "egg") else replace(thing, colour="pig")
