"""A goal-directed replanner: the stand-in for OpenMIND, whose code is not public. It is not OpenMIND.

Its model of the world is one success rate per operator: a kind of object, which of them from the left, and a
trajectory. It takes the operator with the fewest expected shots per goal, plans anew after every shot, and revises the
model when a feature of the world changes.
"""

from dataclasses import dataclass

import numpy as np

from nappingrl.domains.angrybirds.aiming import TRAJECTORIES, join
from nappingrl.domains.angrybirds.layout import ObservedLevel, Target, decode
from nappingrl.domains.angrybirds.physics.scene import Box
from nappingrl.domains.angrybirds.trajectory import LOW
from nappingrl.scripted.angrybirds import ScriptedBirdsAgent
from nappingrl.scripted.base import Observation, ScriptedPolicy
from nappingrl.scripted.replanner_changes import Monitor

Operator = tuple[str, int, int]
"""Kind, place from the left among those of the kind, trajectory."""

LEAST_SPREADS = {
    "goals destroyed": 0.25, "level passed": 0.25, "target moved": 0.25, "unfamiliar objects": 0.25,
    "sling width": 0.5, "sling height": 0.5,
}  # fmt: skip
"""The features that are watched, with the least spread that is believed; those of the slingshot in pixels."""
_EFFECTS = ("goals destroyed", "level passed", "target moved")
_SLING = ("sling width", "sling height")
WARM_UP = 5
"""Shots of a trial before the watch begins: they show what is usual."""
UNFAMILIAR = "unfamiliar "
_EXPECTED = {"pig": 0.9, "tnt": 0.5}
_EXPECTED_OF_OTHERS, _EXPECTED_OF_OPPORTUNITIES = 0.3, 0.6
_UNFAMILIAR = 0.7
"""What looks like a kind but has another size is expected to be of it this often."""
_HIGH = 0.8
"""An untried high shot is expected to succeed this much as often as a low one."""
_BELIEF = 0.5
"""Shots that an expectation counts as."""
_MEMORY = 0.8
"""What a shot counts when its operator is tried again."""
_TRUST = 0.2
"""What is left of the experience after a change for the worse."""


@dataclass(slots=True)
class Record:
    """How often an operator was tried of late, and how often it destroyed something that must be destroyed."""

    tries: float = 0.0
    successes: float = 0.0

    def add(self, is_success: bool) -> None:
        """One more try; those before fade."""
        self.tries, self.successes = self.tries * _MEMORY + 1.0, self.successes * _MEMORY + is_success

    def fade(self) -> None:
        """Another slingshot: experience counts less."""
        self.tries, self.successes = self.tries * _TRUST, self.successes * _TRUST

    def drop(self) -> None:
        """It no longer works: successes count less, so that its cost is raised."""
        self.successes *= _TRUST


class Looks:
    """How large the objects of each kind have been before the novelty."""

    def __init__(self) -> None:
        self._sizes: dict[str, tuple[float, float, float, float]] = {}

    def add(self, view: ObservedLevel) -> None:
        """Take in the sizes of a usual scene."""
        for target in view.targets:
            width, height = target.box.width, target.box.height
            least_w, most_w, least_h, most_h = self._sizes.get(target.kind, (width, width, height, height))
            self._sizes[target.kind] = (
                min(least_w, width), max(most_w, width), min(least_h, height), max(most_h, height)
            )  # fmt: skip

    def kind(self, target: Target) -> str:
        """The kind of an object, marked where none of the kind was ever that small or large."""
        sizes = self._sizes.get(target.kind)
        if sizes is None:
            return UNFAMILIAR + target.kind
        is_usual = _is_within(target.box.width, *sizes[:2]) and _is_within(target.box.height, *sizes[2:])
        return target.kind if is_usual else UNFAMILIAR + target.kind


def _is_within(size: float, least: float, most: float) -> bool:
    """Whether a size in whole pixels was seen, or differs by the rounding of one that was."""
    return min(least, most - 1) - 0.5 < size < max(most, least + 1) + 0.5


class ReplannerPolicy(ScriptedPolicy):
    """Statistics of operators, and a monitor that says when not to trust them."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__(rng)
        self.monitor = Monitor(LEAST_SPREADS)
        self._records: dict[Operator, Record] = {}
        self._looks = Looks()
        self._seeks_opportunities = False
        self._n_usual = 0
        self._shot: tuple[Operator, Target] | None = None

    def act(self, observation: Observation) -> int:
        """The operator of the least cost; of equals the one whose object is nearest to a pig."""
        view = decode(observation)
        self._seeks_opportunities |= view.goals > view.pigs
        operators = self._operators(view)
        if not operators:
            self._shot = None
            return join(0, LOW, 0)
        pigs = view.of_kind("pig")
        operator = min(operators, key=lambda one: (self.cost(one), _distance(operators[one], pigs)))
        self._shot = operator, operators[operator]
        return join(operators[operator].slot, operator[2], 0)

    def cost(self, operator: Operator) -> float:
        """Expected shots until one destroys something that must be destroyed."""
        record = self._records.get(operator, Record())
        return (record.tries + _BELIEF) / (record.successes + _BELIEF * self._expected(operator))

    def learn(
        self, observation: Observation, action: int, following: Observation, reward: float, ended: bool, detected: bool
    ) -> None:
        """Count the shot for its operator, and look out for changes."""
        if self._shot is None:
            return
        operator, target = self._shot
        before, after = decode(observation), decode(following)
        n_destroyed = before.goals - after.goals
        is_success = n_destroyed > 0 or reward > 0
        record = self._records.setdefault(operator, Record())
        kinds = [self._looks.kind(one) for one in before.targets]
        values = {
            "goals destroyed": float(n_destroyed), "level passed": reward if ended else 1.0,
            "target moved": float(target not in after.targets),
            "unfamiliar objects": float(sum(kind.startswith(UNFAMILIAR) for kind in kinds)),
            "sling width": before.sling.width, "sling height": before.sling.height,
        }  # fmt: skip
        if detected or self._n_usual >= WARM_UP:
            self._revise(self.monitor.add(values, detected), None if is_success else record)
        record.add(is_success)
        if not detected:
            self._looks.add(before)
            self._n_usual += 1

    def _revise(self, changes: dict[str, int], failed: Record | None) -> None:
        """Hindrances: what failed has lost its effect, or the slingshot is another. Opportunities: new objects."""
        if failed is not None and any(changes.get(name, 0) < 0 for name in _EFFECTS):
            failed.drop()
        if any(name in changes for name in _SLING):
            for record in self._records.values():
                record.fade()
        self._seeks_opportunities |= "unfamiliar objects" in changes

    def _operators(self, view: ObservedLevel) -> dict[Operator, Target]:
        """All that can be done in a scene, and to which object."""
        places: dict[str, int] = {}
        operators = {}
        for target in sorted(view.targets, key=lambda one: one.box.left):
            kind = self._looks.kind(target)
            place = places[kind] = places.get(kind, -1) + 1
            operators.update({(kind, place, trajectory): target for trajectory in range(len(TRAJECTORIES))})
        return operators

    def _expected(self, operator: Operator) -> float:
        """The success rate that is expected of an operator before it is tried."""
        kind, _, trajectory = operator
        low = _EXPECTED.get(kind.removeprefix(UNFAMILIAR), _EXPECTED_OF_OTHERS)
        if kind.startswith(UNFAMILIAR):
            low = _EXPECTED_OF_OPPORTUNITIES if self._seeks_opportunities else _UNFAMILIAR * low
        return low if trajectory == LOW else _HIGH * low


def _distance(target: Target, others: list[Target]) -> float:
    """From the middle of an object to the nearest of the others."""
    return min((_between(target.box, other.box) for other in others), default=0.0)


def _between(one: Box, other: Box) -> float:
    return float(np.hypot(one.centre[0] - other.centre[0], one.centre[1] - other.centre[1]))


class Replanner(ScriptedBirdsAgent):
    """Plans by success rates, and doubts them when the world changes."""

    name = "replanner"
    policy = ReplannerPolicy
