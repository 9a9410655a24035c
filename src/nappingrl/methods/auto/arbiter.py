"""Who plays the next episode of one trial: the frozen agent or a candidate, decided by real returns.

The *base* is the frozen agent, or a candidate that is certain (re-grounding, recall) unless it has clearly earned
less: by a standard error, so that chance does not decide where episodes return 0 or 1. A candidate with a trusted
forecast plays if it promises clearly more than the base earns: one whose model has predicted what the frozen agent
really earned, with an error below half of the gain that it promises, and that has broken no promise (where little is
left to lose, a pause makes up for a broken one). Candidates without one are tried only where the base earns so much
less than was usual before the change that little is left to lose.

The bound. The stake is what can be won per episode: the usual return minus the base's, or the gain that a trusted
forecast promises; for a certain candidate at least three deviations of a return. A candidate's deficit grows by what
an episode falls short of the base and shrinks by what it gains, down to zero; when it exceeds the stake, the candidate
sits out for 1, 2, 4, ... episodes. Within an episode the base takes over once the return so far is below the lowest
that the base has ever had, minus the stake. `methods.guard` derives the bound for one candidate.
"""

from dataclasses import dataclass, field
from typing import Annotated, NamedTuple
from zlib import crc32

import numpy as np

from nappingrl.methods.auto.usual import Usual
from nappingrl.methods.base import Forecast
from nappingrl.snapshot import Expected, Sizes

REASONS = (
    "",
    "the change does not hurt it",
    "no candidate knows anything better yet",
    "no candidate can be trusted to earn more",
    "what was tried earns less",
)
"""Why the frozen agent plays; empty: it does not, or nothing was decided yet."""
UNDECIDED, UNHURT, NO_OFFER, UNTRUSTED, WORSE = range(5)
AGENT = 0
"""The number of the frozen agent; candidates count from 1."""
MAX_RETURNS = 20
"""Latest returns by which a player is judged: candidates improve while they learn."""
MAX_PAUSE = 2**40
MIN_DEVIATIONS = 3.0
"""The change hurts if the mean return is this many standard errors below the usual one,"""
MIN_LOSS_SHARE = 0.02
"""and by this share of it."""
MIN_GAIN_SHARE = 0.05
"""A candidate plays if it may earn more than the base by this share."""
SEVERE_LOSS_SHARE = 0.5
"""A loss beyond this share of what can be lost leaves little to lose."""
MIN_SEVERE_EPISODES = 3
LARGE_LOSS_SHARE = 0.25
"""A mean loss beyond this share of what can be lost is worth a few experiments."""
MAX_FORECAST_ERROR = 0.5
"""A forecast is trusted if it misses the base's return by at most this share of the gain that it promises."""
EXPLORATION = 0.5
"""Optimism about a player after one episode, in units of the loss; it fades as 1/n."""


@dataclass(slots=True)
class Player:
    """How a player has fared since the change."""

    returns: list[float] = field(default_factory=list)
    deficit: Annotated[float, Expected(low=0)] = 0.0
    wait: Annotated[int, Expected(low=0, high=MAX_PAUSE)] = 0
    """Episodes that it still sits out."""
    pause: Annotated[int, Expected(low=1, high=MAX_PAUSE)] = 1
    """How long it sits out next time."""
    n_stopped: Annotated[int, Expected(low=0)] = 0
    n_episodes: Annotated[int, Expected(low=0)] = 0
    rule: Annotated[int, Expected(low=0, high=2**32 - 1)] = 0
    """A checksum of what it does, if that is certain."""

    @property
    def mean(self) -> float:
        """Mean of the latest returns; NaN: it has not played yet."""
        return sum(self.returns) / len(self.returns) if self.returns else float("nan")

    @property
    def typical(self) -> float:
        """Median of the latest returns: one bad episode among good ones does not decide; NaN: it has not played yet."""
        return float(np.median(self.returns)) if self.returns else float("nan")

    def add(self, total: float) -> None:
        """Record the return of an episode."""
        self.n_episodes += 1
        self.returns.append(total)
        del self.returns[:-MAX_RETURNS]

    def follow(self, rule: str) -> None:
        """Earlier returns say nothing of a player that now does something else."""
        checksum = crc32(rule.encode())
        if checksum != self.rule:
            self.rule, self.returns, self.deficit, self.wait, self.pause = checksum, [], 0.0, 0, 1


def _deviation(one: Player, other: Player) -> float:
    """Standard deviation of single returns about the mean of their player; 0 where it is not known."""
    squares = sum((total - player.mean) ** 2 for player in (one, other) for total in player.returns)
    return float(np.sqrt(squares / max(1, len(one.returns) + len(other.returns) - 2)))


def _standard_error(one: Player, other: Player) -> float:
    """Of the difference of two means; 0 where one of them has not played yet."""
    if not one.returns or not other.returns:
        return 0.0
    return _deviation(one, other) * float(np.sqrt(1 / len(one.returns) + 1 / len(other.returns)))


class Offer(NamedTuple):
    """A candidate that has something to play."""

    number: int
    is_certain: bool
    forecast: Forecast | None


@dataclass(slots=True)
class Arbiter:
    """Decides in one context of one trial."""

    usual: Usual
    players: list[Player]
    lowest: float = 0.0
    """The lowest return so far within any episode of the base or before the change."""
    stake: float = 0.0
    """What the latest candidate may win per episode, and lose."""
    reason: Annotated[int, Expected(low=0, high=len(REASONS) - 1)] = 0
    """Why the frozen agent plays: the number of one of REASONS."""

    def check(self, sizes: Sizes) -> None:
        """Raise if what was saved is no arbiter's."""
        if len(self.players) != sizes["n_players"]:
            raise ValueError(f"{len(self.players)} players, of {sizes['n_players']}")
        if max(len(player.returns) for player in self.players) > MAX_RETURNS or self.usual.n < 0:
            raise ValueError(f"more than {MAX_RETURNS} returns of a player")

    @classmethod
    def of(cls, usual: Usual, n_players: int) -> "Arbiter":
        """The arbiter of a new context."""
        return cls(usual, [Player() for _ in range(n_players)], usual.lowest)

    # ------------------------------------------------------------------------------------------------- deciding

    def choose(self, offers: list[Offer]) -> int:
        """The player of the next episode."""
        base = self.base(offers)
        self.reason = UNDECIDED
        if not self.players[base].returns:
            return base
        if base != AGENT and not self.players[AGENT].returns and self._is_severe(base):
            return AGENT  # is the certain candidate any better?
        rivals = [offer for offer in offers if offer.number != base and self._may_play(offer, base)]
        rivals = [offer for offer in rivals if self._is_cure(offer.number)] or rivals  # whatever others promise
        if base != AGENT and self._is_cure(base, 1):
            rivals = []
        values = {offer.number: self._value(offer, base) for offer in rivals}
        best = max(values, key=lambda number: values[number], default=base)
        mean = self.players[base].mean
        if best != base and values[best] > self._worth(base, offers) + MIN_GAIN_SHARE * abs(mean):
            self.stake = max(self.loss(base), values[best] - mean)
            return best
        self.reason = self._explain(offers) if self.is_hurt(base) else UNHURT
        return base

    def may_try_out(self, offers: list[Offer]) -> bool:
        """Whether the frozen agent would play although the change costs much, and no other player is known to help."""
        agent = self.players[AGENT]
        is_helped = any(self.players[o.number].mean > agent.mean or self._is_trusted(o, AGENT) for o in offers)
        if self.base(offers) != AGENT or len(agent.returns) < MIN_SEVERE_EPISODES or is_helped:
            return False
        return not self.usual.n or self.usual.mean - agent.mean > LARGE_LOSS_SHARE * self.usual.range

    def base(self, offers: list[Offer]) -> int:
        """The frozen agent, or a certain candidate unless the frozen agent has clearly earned more."""
        agent = self.players[AGENT]
        for offer in offers:
            player = self.players[offer.number]
            is_worse = player.mean < agent.mean - _standard_error(player, agent)
            if offer.is_certain and not player.wait and not is_worse:
                return offer.number
        return AGENT

    def loss(self, base: int) -> float:
        """What the change costs per episode; where the usual return is not known, half of what the base earns, or 1."""
        mean = self.players[base].mean
        return max(0.0, self.usual.mean - mean) if self.usual.n else 0.5 * abs(mean) or 1.0

    def is_hurt(self, base: int) -> bool:
        """Whether the base earns clearly less than was usual; True where nothing is known of that."""
        usual, n = self.usual, len(self.players[base].returns)
        if not usual.n:
            return True
        error = usual.deviation * float(np.sqrt(1 / usual.n + 1 / n))
        return self.loss(base) > MIN_DEVIATIONS * error + MIN_LOSS_SHARE * abs(usual.mean)

    def _may_play(self, offer: Offer, base: int) -> bool:
        player = self.players[offer.number]
        is_proven = player.typical > self.players[base].mean
        may_play = is_proven or offer.is_certain or self._is_severe(base) or self._is_trusted(offer, base)
        return not player.wait and may_play

    def _is_severe(self, base: int) -> bool:
        """Whether little is left to lose: even the best of several episodes of the base has lost much."""
        returns = self.players[base].returns
        if len(returns) < MIN_SEVERE_EPISODES:
            return False
        return not self.usual.n or self.usual.mean - max(returns) > SEVERE_LOSS_SHARE * self.usual.range

    def _is_cure(self, number: int, n_needed: int = MIN_SEVERE_EPISODES) -> bool:
        """Whether a player really earns what was usual before the change: others may promise more, but not show it."""
        player = self.players[number]
        if not self.usual.n or len(player.returns) < n_needed:
            return False
        return player.typical >= self.usual.mean - MIN_LOSS_SHARE * self.usual.range

    def _is_trusted(self, offer: Offer, base: int) -> bool:
        """Whether its model foretold what the agent earns, and no promise of it was broken that cost much.

        Where little is left to lose, a broken promise only costs the pause: the model has learned from it.
        """
        if offer.forecast is None or (self.players[offer.number].n_stopped and not self._is_severe(base)):
            return False
        agent = self.players[AGENT] if self.players[AGENT].returns else self.players[base]
        gain = offer.forecast.own - agent.mean
        return abs(offer.forecast.agent - agent.mean) < MAX_FORECAST_ERROR * gain

    def _value(self, offer: Offer, base: int) -> float:
        """What a candidate may earn, with optimism about the one with fewer episodes, it or the base."""
        if offer.forecast is not None and self._is_trusted(offer, base):
            return offer.forecast.own
        player, known = self.players[offer.number], self.players[base]
        if not player.returns:
            return known.mean + EXPLORATION * self.loss(base)
        return player.typical + EXPLORATION * self.loss(base) * (1 / len(player.returns) - 1 / len(known.returns))

    def _worth(self, base: int, offers: list[Offer]) -> float:
        """What the base earns, or what it promises if it can be trusted."""
        trusted = [o.forecast.own for o in offers if o.number == base and o.forecast and self._is_trusted(o, base)]
        return max([self.players[base].mean, *trusted])

    def _explain(self, offers: list[Offer]) -> int:
        if not offers:
            return NO_OFFER
        return WORSE if any(self.players[offer.number].n_stopped for offer in offers) else UNTRUSTED

    @property
    def why(self) -> str:
        """Why the frozen agent plays, in words; empty: it does not, or nothing was decided yet."""
        return REASONS[self.reason]

    # ------------------------------------------------------------------------------------------------- judging

    def floor(self, base: int) -> float:
        """Return so far at which the base takes an episode over."""
        return self.lowest - max(self.loss(base), self.stake) if self.players[base].returns else -np.inf

    def judge(self, number: int, total: float, lowest: float, offers: list[Offer]) -> None:
        """Record an episode that one player has played from its beginning."""
        for player in self.players:
            player.wait = max(0, player.wait - 1)
        base = self.base(offers)
        player, reference = self.players[number], self.players[base if base != number else AGENT]
        player.add(total)
        if number in (AGENT, base):
            self.lowest = min(self.lowest, lowest)
        if number == AGENT or not reference.returns:
            return
        player.deficit = max(0.0, player.deficit + reference.mean - total)
        chance = MIN_DEVIATIONS * _deviation(player, self.players[AGENT])
        stake = max(self.loss(AGENT), chance) if number == base else self.stake
        if player.deficit > max(stake, MIN_LOSS_SHARE * abs(reference.mean)):
            player.n_stopped += 1
            player.deficit, player.wait, player.pause = 0.0, player.pause, min(2 * player.pause, MAX_PAUSE)
