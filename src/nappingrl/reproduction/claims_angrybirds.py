"""The paper's claims on Angry Birds."""

from collections.abc import Callable

import polars as pl

from nappingrl.report.intervals import mean_interval
from nappingrl.report.pass_rates import AFTER, BEFORE, END, in_window
from nappingrl.reproduction.judging import (
    NOT_RUN,
    Claim,
    Evidence,
    Finding,
    MissingRunError,
    describe_mean,
    make_finding,
    outperforms,
)
from nappingrl.types import Floats

BIRDS = "angrybirds"
AGENTS = ("dqn", "dqn-rel")
NEAR = 0.1
"""Pass rates that differ by less than this are "about" the same."""


def _trial_rates(evidence: Evidence, agent: str, method: str, where: pl.Expr, novelty: str = "") -> Floats:
    """The pass rate of each trial in some of its episodes."""
    rows = evidence.run(BIRDS, agent, method).rows
    chosen = rows.filter(where & ((pl.col("novelty") == novelty) | (novelty == "")))
    rates = chosen.group_by("trial", maintain_order=True).agg(pl.col("return").mean())["return"].to_numpy()
    if not len(rates):
        raise MissingRunError
    return rates


def _compare(
    runs: tuple[tuple[str, str], ...], where: pl.Expr, is_as_claimed: Callable[[float], bool], novelty: str = ""
) -> Callable[[Evidence], Finding]:
    """Whether the mean pass rate of every run, over its trials, is as claimed."""

    def judge_claim(evidence: Evidence) -> Finding:
        parts, holds = [], True
        for agent, method in runs:
            rates = _trial_rates(evidence, agent, method, where, novelty)
            holds &= is_as_claimed(float(rates.mean()))
            parts.append(f"{agent} {describe_mean(mean_interval(rates), rates)}")
        return make_finding(holds, "; ".join(parts))

    return judge_claim


def _napping(window: str, is_as_claimed: Callable[[float], bool]) -> Callable[[Evidence], Finding]:
    return _compare(tuple((agent, "napping") for agent in AGENTS), in_window(window), is_as_claimed)


def _loss(evidence: Evidence, agent: str, novelty: str) -> Floats:
    """Per trial: its pass rate in the last ten minus that before the novelty."""
    rows = evidence.run(BIRDS, agent, "napping").rows
    of_novelty = rows.filter(pl.col("novelty") == novelty)
    end, before = (
        of_novelty.filter(in_window(window)).group_by("trial").agg(pl.col("return").mean()) for window in (END, BEFORE)
    )
    both = end.join(before, on="trial", suffix="_before")
    if both.is_empty():
        raise MissingRunError
    return (both["return"] - both["return_before"]).to_numpy()


def _novelties(evidence: Evidence) -> list[str]:
    return evidence.run(BIRDS, AGENTS[0], "napping").novelties


def _recovers(evidence: Evidence) -> Finding:
    parts, holds = [], True
    for novelty in _novelties(evidence):
        if novelty != "bone":
            lost = [float(_loss(evidence, agent, novelty).mean()) for agent in AGENTS]
            holds &= min(lost) > -NEAR
            parts.append(f"{novelty} " + ", ".join(f"{value:+.2f}" for value in lost))
    if not parts:
        raise MissingRunError
    return make_finding(holds, "end minus before (DQN, DQN-Rel): " + "; ".join(parts))


def _loses_bone(evidence: Evidence) -> Finding:
    if "bone" not in _novelties(evidence):
        raise MissingRunError
    lost = {agent: _loss(evidence, agent, "bone") for agent in AGENTS}
    score = evidence.run(BIRDS, AGENTS[0], "napping").spec.get("score", "")
    ours = "; ".join(f"{agent} {describe_mean(mean_interval(values), values)}" for agent, values in lost.items())
    return make_finding(all(v.mean() <= -NEAR for v in lost.values()), f"end minus before (score {score}): {ours}")


def _is_lower(evidence: Evidence) -> Finding:
    parts, holds = [], True
    for agent in AGENTS:
        difference = evidence.difference(BIRDS, ("naive-adaptation", "frozen"), (agent, "napping"))
        interval = mean_interval(difference)
        holds &= interval is not None and interval.high < 0
        parts.append(f"minus {agent} {describe_mean(interval, difference)}")
    return make_finding(holds, "; ".join(parts))


def _is_fast(evidence: Evidence) -> Finding:
    early = _trial_rates(evidence, "naive-adaptation", "frozen", pl.col("episode").is_between(5, 9))
    end = _trial_rates(evidence, "naive-adaptation", "frozen", in_window(END))
    gain = end - early
    ours = f"last ten minus episodes 5-9: {describe_mean(mean_interval(gain), gain)}"
    return make_finding(float(gain.mean()) < NEAR, ours)


def _hits_labels(evidence: Evidence) -> Finding:
    """No agent here reads labels: what Pig Color does to those that go by colours."""
    frozen = [(agent, "frozen") for agent in AGENTS]
    return _without_judgement("no agent here reads labels, all go by colours", evidence, frozen, "pig-color")


def _without_judgement(why: str, evidence: Evidence, runs: list[tuple[str, str]], novelty: str = "") -> Finding:
    """Why a claim cannot be judged, with our nearest figures where they were run."""
    parts = []
    for agent, method in runs:
        if (BIRDS, agent, method) in evidence.runs:
            rates = (_trial_rates(evidence, agent, method, in_window(window), novelty) for window in (BEFORE, END))
            before, end = (float(values.mean()) for values in rates)
            parts.append(f"our {agent} {method} {before:.2f} before, {end:.2f} at the end".replace(" frozen", ""))
    return Finding(NOT_RUN, "; ".join([why, *parts]))


def _openmind(evidence: Evidence) -> Finding:
    why = "OpenMIND is closed source; the replanner stands in for it and is another agent"
    return _without_judgement(why, evidence, [("replanner", "frozen")])


def _hydra(evidence: Evidence) -> Finding:
    return _without_judgement("the anonymous agent was never published", evidence, [("hydra", "frozen")])


def _anonymous(evidence: Evidence) -> Finding:
    return _without_judgement("the anonymous agent was never published", evidence, [("datalab", "frozen")])


CLAIMS: list[Claim] = [
    Claim(BIRDS, "the trained agents pass more than 95 % of their levels", "frozen, before the novelty: above .95",
          _compare(tuple((agent, "frozen") for agent in AGENTS), in_window(BEFORE), lambda rate: rate > 0.95)),
    Claim(BIRDS, "NAPPING agents pass just above .9 before the novelty", "pass rate above .9, both agents",
          _napping(BEFORE, lambda rate: rate > 0.9)),
    Claim(BIRDS, "NAPPING agents fall below .4 right after the novelty", "episodes 0-2: below .4, both agents",
          _napping(AFTER, lambda rate: rate < 0.4)),
    Claim(BIRDS, "NAPPING agents end at about .8", "last ten within .1 of .8, both agents",
          _napping(END, lambda rate: abs(rate - 0.8) <= NEAR)),
    Claim(BIRDS, "NAPPING is back at its old level on all novelties but Bone", "last ten less than .1 below the level "
          "before, on each, both agents", _recovers),
    Claim(BIRDS, "NAPPING does not get back to its old level on Bone", "last ten at least .1 below the level before, "
          "both agents", _loses_bone),
    Claim(BIRDS, "DQN-Rel is slightly ahead on Bird Likes Pig and Circumcircle", "paired differences above 0",
          outperforms(BIRDS, "dqn-rel", "dqn", ("bird-likes-pig", "circumcircle"))),
    Claim(BIRDS, "Naive Adaptation adapts fast", "episodes 5-9 less than .1 below its last ten", _is_fast),
    Claim(BIRDS, "Naive Adaptation ends lower than NAPPING", "paired differences below 0, to both agents", _is_lower),
    Claim(BIRDS, "Naive Adaptation crashes on Circumcircle", "passes less than .1 of the last ten",
          _compare((("naive-adaptation", "frozen"),), in_window(END), lambda rate: rate < 0.1, "circumcircle")),
    Claim(BIRDS, "Naive Adaptation fails Floating Wood", "passes less than half of the last ten",
          _compare((("naive-adaptation", "frozen"),), in_window(END), lambda rate: rate < 0.5, "floating-wood")),
    Claim(BIRDS, "Pig Color is harmless to agents that read labels", "cannot be judged", _hits_labels),
    Claim(BIRDS, "OpenMIND passes above .8 before and above .4 after, best on Green Egg and Taller Slingshot",
          "cannot be judged", _openmind),
    Claim(BIRDS, "HYDRA drops more than the anonymous agent", "cannot be judged", _hydra),
    Claim(BIRDS, "the anonymous agent slowly falls and stays above DataLab everywhere", "cannot be judged", _anonymous),
    Claim(BIRDS, "DataLab passes about .3 before the novelty", "within .1 of .3",
          _compare((("datalab", "frozen"),), in_window(BEFORE), lambda rate: abs(rate - 0.3) <= NEAR)),
    Claim(BIRDS, "DataLab passes below .2 after the novelty", "all episodes after it",
          _compare((("datalab", "frozen"),), pl.col("episode") >= 0, lambda rate: rate < 0.2)),
]  # fmt: skip
