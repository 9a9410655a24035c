"""NAPPING-UCB: NAPPING with a calibrated threshold, mean scores and upper confidence bounds.

It differs from the paper's method in five ways. The threshold is calibrated on the agent's scores before the novelty
(`methods/threshold.py`). An action is judged by its mean score in a cell, not by its best or last one. Cells share
what they learn. Candidates are tried in the agent's order of preference, then by an upper confidence bound. The
agent's own action is kept unless another one is better by more than noise (`cells.py`).
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.base import Agent
from nappingrl.agents.observations import take
from nappingrl.methods.base import Method, MethodInfo
from nappingrl.methods.contexts import ContextMemory
from nappingrl.methods.napping import FALSE_RATE, Napping
from nappingrl.methods.napping.space import Space
from nappingrl.methods.napping_ucb.cells import Cells
from nappingrl.methods.napping_ucb.store import CellTable
from nappingrl.methods.threshold import Calibration
from nappingrl.options import Option
from nappingrl.rng import Streams
from nappingrl.snapshot import restore_arrays
from nappingrl.types import Actions, Decision, Flags, Keys, Observations, Rows, Transition, arrays_of


class NappingUcb(Method):
    """Statistics of actions over the cells of `space`, used once the detector believes in a changed context."""

    needs_discrete = True
    takes_score = True
    can_be_saved = True
    options: ClassVar[Mapping[str, Option]] = {
        "space": Napping.options["space"],
        "false_rate": Option(
            FALSE_RATE,
            "greatest share of steps at which the agent's own action counts as failing before the novelty",
            high=0.5,
        ),
        "min_visits": Option(
            1.0, "visits of a cell before the agent's own action, or another, is judged there", low=1, is_whole=True
        ),
        "explore": Option(0.2, "weight of the upper confidence bound, in standard deviations of a mean"),
        "max_regions": Napping.options["max_regions"],
    }

    def __init__(self, agent: Agent, info: MethodInfo, n: int) -> None:
        super().__init__(agent, info, n)
        self._space = Space(self.agent, info.domain, self.option("space"))
        max_regions = int(self.option("max_regions"))
        self.cells = Cells(
            n, self.agent.n_actions, self._space.dim, self._space.situation_dim, int(self.option("min_visits")),
            float(self.option("explore")), max_regions,
        )  # fmt: skip
        self.calibration = Calibration(n, self.score, float(self.option("false_rate")))
        self._streams = Streams(n)
        self._at = np.full(n, -1)  # the cell that the last action was taken from
        sizes = {
            "dim": self._space.dim, "n_actions": self.agent.n_actions, "situation_dim": self._space.situation_dim,
        }  # fmt: skip
        self.contexts = ContextMemory(
            n, self.cells.state, self.cells.restore, self.cells.forget, CellTable, sizes, max_regions
        )

    def start(self, rows: Rows, keys: Keys) -> None:
        """Forget all cells and scores of these rows."""
        super().start(rows, keys)
        self._streams.start(rows, keys)
        self.cells.forget(rows)
        self.calibration.start(rows)
        self.contexts.start(rows)
        self._at[rows] = -1

    def on_context_change(self, rows: Rows, contexts: Rows) -> None:
        """Calibrate on leaving the original context; store the cells of the old context and recall those of the new."""
        self._at[rows] = -1
        for row, context in zip(rows.tolist(), contexts.tolist(), strict=True):
            if self.contexts.current[row] == 0:
                self.calibration.calibrate(row)
            self.contexts.enter(row, context)

    def act(self, rows: Rows, observations: Observations, decision: Decision) -> Actions:
        """The best action of the cell; the cell is kept for `learn`, so that the search runs once a step."""
        if not self.cells.n_cells[rows].any():
            self._at[rows] = -1
            return decision.actions
        wanted = decision.actions
        if self.info.domain.action_order is not None:
            order = self.info.domain.action_order[wanted]
        else:
            order = np.argsort(-decision.preferences, axis=1, kind="stable")
        mask = self.mask(observations)
        actions, self._at[rows] = self.cells.select(
            rows, self._space.points(observations, decision), wanted, order, self.calibration.threshold(rows), mask
        )
        return actions

    def learn(self, rows: Rows, transition: Transition, detected: Flags) -> None:
        """Before the novelty watch what the agent scores, after it learn what each action scores."""
        super().learn(rows, transition, detected)
        t, scores = transition, self.scores_of(rows, transition)
        known = self.contexts.current[rows] == 0
        if known.any():
            self.calibration.record(rows[known], scores[known])
        if not detected.any():
            return
        points = self._space.points(t.observations, t.decision)[detected]
        observations, rows, scores = take(t.observations, detected), rows[detected], scores[detected]
        suprema = self.score.suprema(observations)
        fails = self.calibration.judge(rows, scores, suprema, self._streams.uniform(rows))
        renumbered = self.cells.update(
            rows, points, t.decision.actions[detected], t.actions[detected], self._at[rows], scores,
            self.calibration.threshold(rows), fails, self._space.situations(observations),
        )  # fmt: skip
        self._at[renumbered] = -1

    def end_episode(self, rows: Rows) -> None:
        """Scores of the next episode have none before them."""
        self.calibration.end_episode(rows, self.contexts.current[rows] == 0)

    def regions(self, rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Cells held, and those that know no action that is good enough and have some left to try."""
        return self.cells.n_cells[rows], self.cells.n_open(rows, self.calibration.threshold(rows))

    def status(self, row: int) -> str:
        """Whether some cell prefers another action than the agent's own."""
        table = self.table(row)
        others = table["candidates"].copy()
        others[np.arange(len(others)), table["wanted"]] = False
        if others.any() or not len(others):
            return ""
        return f"the agent's own action is kept in all {len(others)} cells: score '{self.score.name}' prefers no other"

    def table(self, row: int) -> dict[str, NDArray[Any]]:
        """The cells in force."""
        return self.cells.table(row, float(self.calibration.threshold(np.array([row]))[0]))

    def context_sizes(self, row: int) -> dict[int, int]:
        """Cells of each context."""
        return self.contexts.context_sizes(row)

    def state(self) -> dict[str, NDArray[Any]]:
        """Contexts, random streams, scores, and the cells of every context of every trial."""
        streams = {f"streams.{name}": array for name, array in arrays_of(self._streams).items()}
        scores = {f"calibration.{name}": array for name, array in arrays_of(self.calibration).items()}
        return self.contexts.state() | streams | scores

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on where `state` was taken."""
        self.contexts.restore(state)
        restore_arrays(self._streams, state, "streams.")
        self.calibration.restore(state, "calibration.")
