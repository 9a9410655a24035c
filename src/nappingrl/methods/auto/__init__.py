"""auto: re-ground, then let what was learned compete with the frozen agent by real returns."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from nappingrl.agents.base import Agent
from nappingrl.agents.observations import merge_decisions, take, take_decision
from nappingrl.errors import BadSpecError
from nappingrl.methods.auto.arbiter import AGENT, Arbiter, Offer
from nappingrl.methods.auto.candidates import CANDIDATES, CandidatesOption, make_candidates
from nappingrl.methods.auto.usual import expected_returns, usual_returns
from nappingrl.methods.base import Method, MethodInfo
from nappingrl.methods.contexts import MAX_CONTEXTS
from nappingrl.methods.napping import Napping
from nappingrl.options import Option
from nappingrl.snapshot import Expected, Sizes, flatten, unflatten
from nappingrl.types import Actions, Decision, Flags, Floats, Keys, Observations, Rows, Transition, with_prefix
from nappingrl.world_model.transitions import episode_returns

MIXED = -1
"""Several players have acted in this episode: its return says nothing of any of them."""


@dataclass(slots=True)
class _Episodes:
    """The running episodes of n trials."""

    player: Annotated[NDArray[np.int64], Expected(("n",), low=0, below="n_players")]
    """Who acts."""
    credited: Annotated[NDArray[np.int64], Expected(("n",), low=MIXED, below="n_players")]
    """Whose return it will be."""
    total: Annotated[Floats, Expected(("n",))]
    lowest: Annotated[Floats, Expected(("n",), high=0)]
    floor: Annotated[Floats, Expected(("n",), with_inf=True)]
    is_stopped: Annotated[Flags, Expected(("n",))]


@dataclass(slots=True)
class _State:
    """What the arbiters have learned, for saving."""

    context: Annotated[NDArray[np.int64], Expected(("n",), low=0)]
    episodes: _Episodes
    arbiters: Annotated[list[dict[int, Arbiter]], Expected(("n",))]

    def check(self, sizes: Sizes) -> None:
        """Raise if a changed context has no arbiter."""
        for context, arbiters in zip(self.context.tolist(), self.arbiters, strict=True):
            if (context and context not in arbiters) or len(arbiters) > MAX_CONTEXTS + 1:
                raise ValueError(f"context {context}, with arbiters of {sorted(arbiters)[:5]}")


class Auto(Method):
    """The default: re-grounds actions and sensors, then tries rules by real returns; no score, no threshold."""

    detector = "auto"
    learns_from_others = True
    can_be_saved = True
    uses_memory = True
    options: ClassVar[Mapping[str, Option]] = {
        "candidates": CandidatesOption(",".join(CANDIDATES), "methods that compete, separated by commas"),
        "max_regions": Napping.options["max_regions"],
    }

    def __init__(self, agent: Agent, info: MethodInfo, n: int) -> None:
        super().__init__(agent, info, n)
        if info.memory is None:
            raise BadSpecError("method 'auto' needs observations that are one row of numbers; use method 'napping'")
        self._memory = info.memory
        self.candidates, self.refused = make_candidates(str(self.option("candidates")), agent, info, n)
        self._names = ["the agent", *self.candidates]
        self._methods = list(self.candidates.values())
        safe = [number for number, method in enumerate(self._methods, 1) if method.acts_as_agent]
        self._default = safe[0] if safe else AGENT
        """Who plays while nothing else does: a candidate that acts as the agent until it is certain."""
        self._context = np.zeros(n, np.int64)
        zeros = np.zeros((2, n), np.int64)
        self._episodes = _Episodes(
            zeros[0], zeros[1], np.zeros(n), np.zeros(n), np.full(n, -np.inf), np.zeros(n, np.bool_)
        )
        self._arbiters: list[dict[int, Arbiter]] = [{} for _ in range(n)]
        shape = (n,) if agent.action_low is None else (n, len(agent.action_low))
        self._chosen = np.zeros((len(self._methods), *shape), np.float64)
        """What each candidate chose at the latest step of each row."""

    # ------------------------------------------------------------------------------------------------- acting

    @override
    def start(self, rows: Rows, keys: Keys) -> None:
        super().start(rows, keys)
        for method in self._methods:
            method.start(rows, keys)
        self._context[rows] = 0
        for row in rows.tolist():
            self._arbiters[row] = {}
        self._begin_episode(rows)

    def _begin_episode(self, rows: Rows, offers: Mapping[int, list[Offer]] = MappingProxyType({})) -> None:
        """Decide who plays the next episode of each row; `offers`: by row, where they are known."""
        e = self._episodes
        e.total[rows], e.lowest[rows], e.floor[rows], e.is_stopped[rows] = 0.0, 0.0, -np.inf, False
        e.player[rows] = e.credited[rows] = AGENT
        for row in rows[self._context[rows] > 0].tolist():
            self._choose(row, offers[row] if row in offers else self._offers(row))

    def _choose(self, row: int, offers: list[Offer]) -> None:
        e, arbiter = self._episodes, self._arbiter(row)
        if self._default and arbiter.may_try_out(offers) and self._methods[self._default - 1].try_out(row):
            e.player[row], e.credited[row] = self._default, MIXED
            return
        number = arbiter.choose(offers)
        e.credited[row] = number
        default = self._default if not arbiter.players[self._default].wait else AGENT
        is_rejected = number == AGENT and any(offer.number == default and offer.is_certain for offer in offers)
        e.player[row] = AGENT if is_rejected else number or default
        base = arbiter.base(offers)
        e.floor[row] = arbiter.floor(base) if number not in (AGENT, base) else -np.inf

    def _offers(self, row: int) -> list[Offer]:
        rows = np.array([row])
        return [
            Offer(number, bool(method.is_certain(rows)[0]), method.forecast(row))
            for number, method in enumerate(self._methods, 1)
            if method.regions(rows)[0][0] or method.is_certain(rows)[0]
        ]

    def _arbiter(self, row: int) -> Arbiter:
        return self._arbiters[row][int(self._context[row])]

    @override
    def forward(self, rows: Rows, observations: Observations) -> Decision:
        if not self._default:
            return super().forward(rows, observations)
        method = self._methods[self._default - 1]
        is_default = self._episodes.player[rows] == self._default
        if not is_default.any():
            return super().forward(rows, observations)
        there = method.forward(rows[is_default], take(observations, is_default))
        if is_default.all():
            return there
        return merge_decisions(is_default, there, super().forward(rows[~is_default], take(observations, ~is_default)))

    @override
    def act(self, rows: Rows, observations: Observations, decision: Decision) -> Actions:
        players = self._episodes.player[rows]
        actions: Actions = decision.actions
        for number, method in enumerate(self._methods):
            is_mine = players == number + 1
            if method.acts_on_demand:
                if not is_mine.any():
                    continue
                part = take(observations, is_mine), take_decision(decision, is_mine)
                chosen = method.act(rows[is_mine], *part)
            else:
                every = method.act(rows, observations, decision)
                self._chosen[number, rows] = every
                chosen = every[is_mine]
            if is_mine.any():
                actions = actions.copy()
                actions[is_mine] = chosen
        return actions

    # ------------------------------------------------------------------------------------------------- learning

    @override
    def on_context_change(self, rows: Rows, contexts: Rows) -> None:
        for method in self._methods:
            method.on_context_change(rows, contexts)
        self._context[rows] = contexts
        for row, context in zip(rows.tolist(), contexts.tolist(), strict=True):
            known = self._arbiters[row]
            if context and context not in known:
                known[context] = self._meet(row)
                for old in list(known)[: -MAX_CONTEXTS - 1]:
                    del known[old]
        self._episodes.player[rows] = np.where(contexts > 0, self._default, AGENT)

    def _meet(self, row: int) -> Arbiter:
        """The arbiter of a new context."""
        before, horizon = self._memory.before(row), self.info.domain.horizon
        if before.n:
            return Arbiter.of(usual_returns(before, horizon), len(self._names))
        current = self._memory.current(row)  # nothing is known of the world before: ask the agent's critic
        arbiter = Arbiter.of(expected_returns(current, self.agent, horizon), len(self._names))
        for total in episode_returns(current).tolist():
            arbiter.players[AGENT].add(total)
        return arbiter

    @override
    def learn(self, rows: Rows, transition: Transition, detected: Flags) -> None:
        super().learn(rows, transition, detected)
        for number, method in enumerate(self._methods):
            may_learn = detected
            if not method.learns_from_others and detected.any():
                differs = self._chosen[number, rows] != transition.actions
                may_learn = detected & ~(differs if differs.ndim == 1 else differs.any(axis=1))
            method.learn(rows, transition, may_learn)
        e = self._episodes
        e.total[rows] += transition.rewards
        e.lowest[rows] = np.minimum(e.lowest[rows], e.total[rows])
        if detected.any():
            self._watch(rows[detected])

    def _watch(self, rows: Rows) -> None:
        """Credit a candidate that became certain, and stop one that has lost too much."""
        e = self._episodes
        if self._default:
            is_certain = self._methods[self._default - 1].is_certain(rows)
            is_new = (e.player[rows] == self._default) & (e.credited[rows] == AGENT) & is_certain
            e.credited[rows[is_new]] = MIXED
        is_lost = e.total[rows] < e.floor[rows]
        for row in rows[is_lost & ~e.is_stopped[rows]].tolist():
            e.is_stopped[row] = True
            e.player[row] = self._arbiter(row).base(self._offers(row))

    @override
    def end_episode(self, rows: Rows) -> None:
        for method in self._methods:
            method.end_episode(rows)
        e = self._episodes
        offers: dict[int, list[Offer]] = {}
        for row in rows[(self._context[rows] > 0) & (e.credited[rows] != MIXED)].tolist():
            for player, method in zip(self._arbiter(row).players[1:], self._methods, strict=True):
                player.follow(method.signature(row) if method.is_certain(np.array([row]))[0] else "")
            offers[row] = self._offers(row)
            self._arbiter(row).judge(int(e.credited[row]), float(e.total[row]), float(e.lowest[row]), offers[row])
        self._begin_episode(rows, offers)

    @override
    def discard_episode(self, rows: Rows) -> None:
        for method in self._methods:
            method.discard_episode(rows)
        self._begin_episode(rows)

    # ------------------------------------------------------------------------------------------------- telling

    def _acting(self, row: int) -> Method | None:
        """The candidate whose actions are executed; None: the frozen agent's."""
        number = int(self._episodes.player[row])
        is_trying = number == self._default and self._episodes.credited[row] == MIXED
        if number == AGENT or (number == self._default and not is_trying and not self.is_certain(np.array([row]))[0]):
            return None
        return self._methods[number - 1]

    @override
    def acting(self, row: int) -> str:
        return "" if self._acting(row) is None else self._names[int(self._episodes.player[row])]

    @override
    def is_certain(self, rows: Rows) -> Flags:
        return self._methods[self._default - 1].is_certain(rows) if self._default else super().is_certain(rows)

    @override
    def notes(self) -> list[str]:
        return [note for method in self._methods for note in method.notes()]

    @override
    def status(self, row: int) -> str:
        if not self._context[row] or self._acting(row) is not None:
            return ""
        return self._arbiter(row).why

    @override
    def describe(self, row: int) -> str:
        method = self._acting(row)
        return "" if method is None else method.describe(row)

    @override
    def imagine(self, row: int, observation: Floats, n_steps: int) -> Floats | None:
        method = self._acting(row)
        return None if method is None else method.imagine(row, observation, n_steps)

    @override
    def table(self, row: int) -> dict[str, NDArray[Any]]:
        method = self._acting(row)
        return {} if method is None else method.table(row)

    @override
    def regions(self, rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Those of the candidates that act."""
        counts = np.zeros((2, len(rows)), np.int64)
        for number, method in enumerate(self._methods, 1):
            is_mine = self._episodes.player[rows] == number
            if is_mine.any():
                counts[:, is_mine] = method.regions(rows[is_mine])
        return counts[0], counts[1]

    @override
    def context_sizes(self, row: int) -> dict[int, int]:
        sizes: dict[int, int] = {}
        for method in self._methods:
            for context, size in method.context_sizes(row).items():
                sizes[context] = sizes.get(context, 0) + size
        return sizes

    # ------------------------------------------------------------------------------------------------- saving

    @override
    def state(self) -> dict[str, NDArray[Any]]:
        own = flatten(_State(self._context, self._episodes, self._arbiters), "auto")
        for name, method in self.candidates.items():
            own |= {f"{name}/{key}": array for key, array in method.state().items()}
        return own

    @override
    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        sizes = {"n": self.n, "n_players": len(self._names)}
        restored: _State = unflatten(_State, state, "auto", sizes)
        self._context, self._episodes, self._arbiters = restored.context, restored.episodes, restored.arbiters
        for name, method in self.candidates.items():
            method.restore(with_prefix(f"{name}/", state))
