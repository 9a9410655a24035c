"""NAPPING: after detection, learn in the cells of the agent's embedding which action to take instead."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.base import Agent
from nappingrl.agents.observations import take
from nappingrl.errors import BadSpecError
from nappingrl.methods.base import Method, MethodInfo
from nappingrl.methods.compiled import CompiledMethod
from nappingrl.methods.contexts import ContextMemory, Learned
from nappingrl.methods.napping.candidates import LocalCandidates
from nappingrl.methods.napping.principles import Principles
from nappingrl.methods.napping.rules import RULES
from nappingrl.methods.napping.space import SPACES, Space
from nappingrl.methods.napping.store import PrincipleTable
from nappingrl.methods.threshold import Calibration
from nappingrl.options import Option
from nappingrl.snapshot import Expected, unflatten
from nappingrl.types import Actions, Decision, Flags, Floats, Keys, Observations, Rows, Transition, arrays_of

FALSE_RATE = 0.05
"""Share of the agent's own steps before the novelty that a calibrated threshold lets fail."""
_STREAMS = Annotated[NDArray[np.uint64], Expected(("n", 2))]


class Napping(Method):
    """Adaptation principles over `space`: the agent's embedding, or the standardised observation."""

    takes_score = True
    can_be_saved = True
    options: ClassVar[Mapping[str, Option]] = {
        "rule": Option("revised", "reading of the update, see docs/method.md; default: the domain's", tuple(RULES)),
        "space": Option(
            "embedding",
            "where regions live: the agent's embedding or the raw observation; default: the domain's",
            tuple(SPACES),
        ),
        "choice": Option(
            "paper",
            "how an open principle tries its candidates: as in the paper (at random, or in the domain's order), at "
            "random, or in the agent's order of preference",
            ("paper", "random", "preference"),
        ),
        "search": Option(
            "any",
            "sites among which the nearest is searched: all (the paper), or those with the same wanted action",
            ("any", "same-key"),
        ),
        "threshold": Option(
            "score",
            "below what a score fails: the score's own threshold, or one calibrated on the agent's own actions before "
            "the novelty, as in napping-ucb",
            ("score", "auto"),
        ),
        "layer": Option(
            None,
            "hidden layer that serves as embedding, 1 = the first; default: the last",
            low=1,
            is_whole=True,
        ),
        "max_regions": Option(
            0,
            "most regions of a trial, 0 = no limit (NappingAgent: 20000); when there are more, the least visited "
            "twentieth is dropped, closed principles first",
            is_whole=True,
        ),
    }

    def __init__(self, agent: Agent, info: MethodInfo, n: int) -> None:
        layer = info.options.get("layer")
        super().__init__(agent if layer is None else agent.at_layer(int(layer)), info, n)
        agent = self.agent
        self._choice = self.option("choice")
        self._space = Space(agent, info.domain, self.option("space"))
        is_same_key = self.option("search") == "same-key"
        self.local = _local(agent, self._choice)
        n_choices = agent.n_actions if self.local is None else self.local.n
        max_regions = int(self.option("max_regions"))
        self.principles = Principles(
            n, n_choices, self._space.dim, self.option("rule"), self._space.situation_dim, is_same_key,
            max_regions,
        )  # fmt: skip
        self.calibration = Calibration(n, self.score, FALSE_RATE) if self.option("threshold") == "auto" else None
        self._regions = np.full(n, -1)
        self._chosen = np.zeros(n, np.int64)  # numbers of local candidates
        sizes = {"dim": self._space.dim, "n_actions": n_choices, "situation_dim": self._space.situation_dim}
        self.contexts = ContextMemory(
            n, self.principles.table, self._put_back, self.principles.forget, PrincipleTable, sizes, max_regions
        )

    def start(self, rows: Rows, keys: Keys) -> None:
        """Forget all principles of these rows."""
        self.principles.start(rows, keys)
        self.contexts.start(rows)
        if self.calibration is not None:
            self.calibration.start(rows)

    def on_context_change(self, rows: Rows, contexts: Rows) -> None:
        """Store the principles of the old context and recall those of the new one, if it is known."""
        self._regions[rows] = -1
        for row, context in zip(rows.tolist(), contexts.tolist(), strict=True):
            if self.calibration is not None and self.contexts.current[row] == 0:
                self.calibration.calibrate(row)
            self.contexts.enter(row, context)

    def compiled(self) -> CompiledMethod | None:
        """Algorithms 1 and 2 as kernels, where candidates are discrete, unmasked and tried at random."""
        is_own = type(self).act is Napping.act and type(self).learn is Napping.learn
        domain, is_plain = self.info.domain, self.score.supremum_of is None and not int(self.option("max_regions"))
        if not is_own or not is_plain or self.local is not None or self.calibration is not None:
            return None
        is_ordered = domain.action_order is not None and self._choice == "paper"
        if is_ordered or self._choice == "preference" or domain.action_mask is not None:
            return None
        centre, scale = self._space.standardisation
        return self.principles.compiled(self.score.threshold, self.score.supremum, centre, scale)

    def _put_back(self, row: int, table: Learned) -> None:
        """The random choice of candidates goes on where it was."""
        self.principles.restore(row, table, self.principles.stream(row))

    def act(self, rows: Rows, observations: Observations, decision: Decision) -> Actions:
        """Algorithm 1. The region found here is kept for `learn`: the search runs once a step."""
        if not self.principles.n_regions[rows].any():
            self._regions[rows], self._chosen[rows] = -1, 0
            return decision.actions
        points = self._space.points(observations, decision)
        if self.local is not None:
            as_wanted, valid = np.zeros(len(rows), np.int64), self.local.valid_mask(decision.actions)
            self._chosen[rows], self._regions[rows] = self.principles.select(rows, points, as_wanted, None, valid)
            return self.local.take(decision.actions, self._chosen[rows])
        order, mask = self._order(decision), self.mask(observations)
        actions, self._regions[rows] = self.principles.select(rows, points, decision.actions, order, mask)
        return actions

    def _order(self, decision: Decision) -> NDArray[np.int64] | None:
        """In which order candidates are tried, per row; None: at random."""
        if self._choice == "preference":
            return np.argsort(-decision.preferences, axis=1, kind="stable")
        if self._choice == "paper" and self.info.domain.action_order is not None:
            return self.info.domain.action_order[decision.actions]
        return None

    def learn(self, rows: Rows, transition: Transition, detected: Flags) -> None:
        """Algorithm 2, for the rows where the novelty was detected."""
        self._calibrate(rows, transition)
        if not detected.any():
            return
        t, at = transition, slice(None) if detected.all() else detected
        observations = take(t.observations, at)
        scores = self.scores_of(rows, t, at)
        rows, wanted, executed = rows[at], t.decision.actions[at], t.actions[at]
        if self.local is not None:
            executed = self.local.number_of(wanted, executed, self._chosen[rows])
            wanted = np.zeros(len(rows), np.int64)
        renumbered = self.principles.update(
            rows,
            self._space.points(t.observations, t.decision)[at],
            wanted,
            executed,
            self._regions[rows],
            scores,
            self._thresholds(rows, scores),
            self.score.suprema(observations),
            self._space.situations(observations),
        )
        self._regions[renumbered] = -1

    def end_episode(self, rows: Rows) -> None:
        """A calibration leaves out the last episodes before an alarm."""
        if self.calibration is not None:
            self.calibration.end_episode(rows, self.contexts.current[rows] == 0)

    def _calibrate(self, rows: Rows, transition: Transition) -> None:
        """Watch what the agent's own actions score in the original context."""
        is_original = self.contexts.current[rows] == 0
        if self.calibration is not None and is_original.any():
            self.calibration.record(rows[is_original], self.scores_of(rows, transition, is_original))

    def _thresholds(self, rows: Rows, scores: Floats) -> float | Floats:
        if self.calibration is None:
            return self.score.threshold
        self.calibration.measure(rows, scores)
        return self.calibration.threshold(rows)

    def status(self, row: int) -> str:
        """Whether any action has failed: until then all principles keep the agent's own action."""
        table = self.table(row)
        wanted, candidates = table["wanted"], table["candidates"]
        keeps_own = (candidates.sum(axis=1) == 1) & candidates[np.arange(len(wanted)), wanted]
        return self.never_failed() if keeps_own.all() else ""

    def table(self, row: int) -> dict[str, NDArray[Any]]:
        """The principles in force."""
        return self.principles.table(row)

    @property
    def choice_names(self) -> tuple[str, ...]:
        """Where actions are numbers: the local candidates."""
        return () if self.local is None else tuple(self.local.names)

    def context_sizes(self, row: int) -> dict[int, int]:
        """Principles of each context."""
        return self.contexts.context_sizes(row)

    def state(self) -> dict[str, NDArray[Any]]:
        """Contexts, random streams, and the principles of every context of every trial."""
        streams = [self.principles.stream(row) for row in range(self.n)]
        own = {} if self.calibration is None else arrays_of(self.calibration)
        scores = {f"calibration.{name}": array for name, array in own.items()}
        return self.contexts.state() | {"streams": np.array(streams, np.uint64)} | scores

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on where `state` was taken."""
        self.contexts.restore(state)
        streams = unflatten(_STREAMS, state, "streams", {"n": self.n})
        for row, (key, draws) in enumerate(streams.tolist()):
            self.principles.restore(row, self.principles.table(row), (key, draws))
        if self.calibration is not None:
            self.calibration.restore(state, "calibration.")

    def regions(self, rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Principles held, and open ones."""
        return self.principles.n_regions[rows], self.principles.n_open[rows]


def _local(agent: Agent, choice: str) -> LocalCandidates | None:
    """What principles choose among where actions are numbers; None where they are discrete."""
    if agent.action_low is None or agent.action_high is None:
        return None
    if choice == "preference":
        raise BadSpecError(f"option choice=preference needs discrete actions; those of agent {agent.name} are numbers")
    return LocalCandidates(agent.action_low, agent.action_high)
