"""A goal-directed replanner: a stand-in for OpenMIND, whose code is not public. It is not OpenMIND.

Its model of the domain is one success rate per operator: a class of objects, the rank from the left in that class, and
a trajectory. It takes the operator with the fewest expected shots per goal, replans after every shot, and revises the
model when an observed feature changes.
"""

from dataclasses import dataclass

import numpy as np

from nappingrl.domains.angrybirds.actions import TRAJECTORIES, join
from nappingrl.domains.angrybirds.layout import ObservedLevel, Target, decode
from nappingrl.domains.angrybirds.physics.scene import Box
from nappingrl.domains.angrybirds.trajectory import LOW
from nappingrl.scripted.angrybirds import ScriptedBirdsAgent
from nappingrl.scripted.base import Observation, ScriptedPolicy
from nappingrl.scripted.replanner_changes import Monitor

Operator = tuple[str, int, int]
"""Class of the object, rank from the left in its class, trajectory."""

MIN_SPREADS = {
    "pigs destroyed": 0.25, "level passed": 0.25, "target moved": 0.25, "unfamiliar objects": 0.25,
    "sling width": 0.5, "sling height": 0.5,
}  # fmt: skip
"""The monitored features and the least spread assumed for each; those of the slingshot are in pixels."""
_EFFECTS = ("pigs destroyed", "level passed", "target moved")
_SLING = ("sling width", "sling height")
WARM_UP = 5
"""Shots at the start of a trial that only set the reference."""
UNFAMILIAR = "unfamiliar "
_PRIOR = {"pig": 0.9, "tnt": 0.5}
"""Expected success rate of an untried low shot, by class."""
_PRIOR_OTHER, _PRIOR_OPPORTUNITY = 0.3, 0.6
_UNFAMILIAR_FACTOR = 0.7
"""Applied to objects that look like a class but have another size."""
_HIGH_FACTOR = 0.8
"""Applied to untried high shots."""
_PRIOR_WEIGHT = 0.5
"""Shots that a prior counts as."""
_DECAY = 0.8
"""Weight of an operator's earlier shots when it is tried again."""
_TRUST = 0.2
"""Share of the experience that is kept after a change for the worse."""


@dataclass(slots=True)
class Record:
    """Discounted numbers of an operator's tries and of those that destroyed a goal."""

    tries: float = 0.0
    successes: float = 0.0

    def add(self, is_success: bool) -> None:
        """Count one more try; earlier ones are discounted."""
        self.tries, self.successes = self.tries * _DECAY + 1.0, self.successes * _DECAY + is_success

    def fade(self) -> None:
        """Trust the experience less, after a change of the slingshot."""
        self.tries, self.successes = self.tries * _TRUST, self.successes * _TRUST

    def drop(self) -> None:
        """Discount successes only, which raises the cost: the operator no longer works."""
        self.successes *= _TRUST


class KnownSizes:
    """The sizes of each class of objects before the novelty."""

    def __init__(self) -> None:
        self._sizes: dict[str, tuple[float, float, float, float]] = {}

    def add(self, level: ObservedLevel) -> None:
        """Learn the sizes of a level without novelty."""
        for target in level.targets:
            width, height = target.box.width, target.box.height
            min_w, max_w, min_h, max_h = self._sizes.get(target.kind, (width, width, height, height))
            self._sizes[target.kind] = (
                min(min_w, width), max(max_w, width), min(min_h, height), max(max_h, height)
            )  # fmt: skip

    def kind(self, target: Target) -> str:
        """The class of an object, marked as unfamiliar if no object of the class was that small or large."""
        sizes = self._sizes.get(target.kind)
        if sizes is None:
            return UNFAMILIAR + target.kind
        is_known = _is_within(target.box.width, *sizes[:2]) and _is_within(target.box.height, *sizes[2:])
        return target.kind if is_known else UNFAMILIAR + target.kind


def _is_within(size: float, low: float, high: float) -> bool:
    """Whether a size in whole pixels lies in a range, up to rounding."""
    return min(low, high - 1) - 0.5 < size < max(high, low + 1) + 0.5


class ReplannerPolicy(ScriptedPolicy):
    """Success rates of operators, and a monitor that tells when not to trust them."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__(rng)
        self.monitor = Monitor(MIN_SPREADS)
        self._records: dict[Operator, Record] = {}
        self._sizes = KnownSizes()
        self._seeks_opportunities = False
        self._n_reference = 0
        self._shot: tuple[Operator, Target] | None = None

    def act(self, observation: Observation) -> int:
        """Take the operator with the least cost; ties go to the object nearest to a pig."""
        level = decode(observation)
        self._seeks_opportunities |= not level.of_kind("pig")
        operators = self._operators(level)
        if not operators:
            self._shot = None
            return join(0, LOW, 0)
        pigs = level.of_kind("pig")
        operator = min(operators, key=lambda op: (self.cost(op), _distance(operators[op], pigs)))
        self._shot = operator, operators[operator]
        return join(operators[operator].slot, operator[2], 0)

    def cost(self, operator: Operator) -> float:
        """Expected shots until one destroys a pig or passes the level."""
        record = self._records.get(operator, Record())
        return (record.tries + _PRIOR_WEIGHT) / (record.successes + _PRIOR_WEIGHT * self._prior(operator))

    def learn(
        self, observation: Observation, action: int, following: Observation, reward: float, ended: bool, detected: bool
    ) -> None:
        """Count the shot for its operator, and check for changes."""
        if self._shot is None:
            return
        operator, target = self._shot
        before, after = decode(observation), decode(following)
        n_destroyed = len(before.of_kind("pig")) - len(after.of_kind("pig"))
        is_success = n_destroyed > 0 or reward > 0
        record = self._records.setdefault(operator, Record())
        kinds = [self._sizes.kind(seen) for seen in before.targets]
        values = {
            "pigs destroyed": float(n_destroyed), "level passed": reward if ended else 1.0,
            "target moved": float(target not in after.targets),
            "unfamiliar objects": float(sum(kind.startswith(UNFAMILIAR) for kind in kinds)),
            "sling width": before.sling.width, "sling height": before.sling.height,
        }  # fmt: skip
        if detected or self._n_reference >= WARM_UP:
            self._revise(self.monitor.add(values, detected), None if is_success else record)
        record.add(is_success)
        if not detected:
            self._sizes.add(before)
            self._n_reference += 1

    def _revise(self, changes: dict[str, int], failed: Record | None) -> None:
        """React to obstacles (a failed operator, another slingshot) and to opportunities (unfamiliar objects)."""
        if failed is not None and any(changes.get(name, 0) < 0 for name in _EFFECTS):
            failed.drop()
        if any(name in changes for name in _SLING):
            for record in self._records.values():
                record.fade()
        self._seeks_opportunities |= "unfamiliar objects" in changes

    def _operators(self, level: ObservedLevel) -> dict[Operator, Target]:
        """All possible operators of a level, with the object of each."""
        places: dict[str, int] = {}
        operators = {}
        for target in sorted(level.targets, key=lambda target: target.box.left):
            kind = self._sizes.kind(target)
            place = places[kind] = places.get(kind, -1) + 1
            ways = [way for way in range(len(TRAJECTORIES)) if target.is_possible(way, 0)]
            operators.update({(kind, place, way): target for way in ways})
        return operators

    def _prior(self, operator: Operator) -> float:
        """The expected success rate of an untried operator."""
        kind, _, trajectory = operator
        low = _PRIOR.get(kind.removeprefix(UNFAMILIAR), _PRIOR_OTHER)
        if kind.startswith(UNFAMILIAR):
            low = _PRIOR_OPPORTUNITY if self._seeks_opportunities else _UNFAMILIAR_FACTOR * low
        return low if trajectory == LOW else _HIGH_FACTOR * low


def _distance(target: Target, others: list[Target]) -> float:
    """Distance from the centre of an object to the nearest of the others."""
    return min((_between(target.box, other.box) for other in others), default=0.0)


def _between(one: Box, other: Box) -> float:
    return float(np.hypot(one.centre[0] - other.centre[0], one.centre[1] - other.centre[1]))


class Replanner(ScriptedBirdsAgent):
    """Plans with success rates, and revises them when a feature changes."""

    name = "replanner"
    policy = ReplannerPolicy
