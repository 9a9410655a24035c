"""The paper's claims on Angry Birds."""

from collections.abc import Callable

import polars as pl

from nappingrl.report.pass_rates import AFTER, BEFORE, END, in_window
from nappingrl.report.statistics import mean_t
from nappingrl.reproduction.claim import (
    NOT_RUN,
    Book,
    Claim,
    Finding,
    Floats,
    MissingRunError,
    finding_of,
    leads,
    words,
)

BIRDS = "angrybirds"
AGENTS = ("dqn", "dqn-rel")
NEAR = 0.1
"""Pass rates that differ by less than this are "about" the same."""


def _trial_rates(book: Book, agent: str, method: str, where: pl.Expr, novelty: str = "") -> Floats:
    """The pass rate of each trial in some of its episodes."""
    _, rows = book.run(BIRDS, agent, method)
    chosen = rows.filter(where & ((pl.col("novelty") == novelty) | (novelty == "")))
    found = chosen.group_by("trial", maintain_order=True).agg(pl.col("return").mean())["return"].to_numpy()
    if not len(found):
        raise MissingRunError
    return found


def _compare(
    runs: tuple[tuple[str, str], ...], where: pl.Expr, is_so: Callable[[float], bool], novelty: str = ""
) -> Callable[[Book], Finding]:
    """Whether the mean pass rate of every run, over its trials, is as claimed."""

    def fn(book: Book) -> Finding:
        parts, holds = [], True
        for agent, method in runs:
            rates = _trial_rates(book, agent, method, where, novelty)
            holds &= is_so(float(rates.mean()))
            parts.append(f"{agent} {words(mean_t(rates), rates)}")
        return finding_of(holds, "; ".join(parts))

    return fn


def _napping(window: str, is_so: Callable[[float], bool]) -> Callable[[Book], Finding]:
    return _compare(tuple((agent, "napping") for agent in AGENTS), in_window(window), is_so)


def _loss(book: Book, agent: str, novelty: str) -> Floats:
    """Per trial: its pass rate in the last ten minus that before the novelty."""
    _, rows = book.run(BIRDS, agent, "napping")
    of_novelty = rows.filter(pl.col("novelty") == novelty)
    both = [
        of_novelty.filter(in_window(window)).group_by("trial").agg(pl.col("return").mean()) for window in (END, BEFORE)
    ]
    found = both[0].join(both[1], on="trial", suffix="_before")
    if found.is_empty():
        raise MissingRunError
    return (found["return"] - found["return_before"]).to_numpy()


def _novelties(book: Book) -> list[str]:
    names: list[str] = book.run(BIRDS, AGENTS[0], "napping")[1]["novelty"].unique(maintain_order=True).to_list()
    return names


def _recovers(book: Book) -> Finding:
    parts, holds = [], True
    for novelty in _novelties(book):
        if novelty != "bone":
            lost = [float(_loss(book, agent, novelty).mean()) for agent in AGENTS]
            holds &= min(lost) > -NEAR
            parts.append(f"{novelty} " + ", ".join(f"{value:+.2f}" for value in lost))
    if not parts:
        raise MissingRunError
    return finding_of(holds, "end minus before (DQN, DQN-Rel): " + "; ".join(parts))


def _loses_bone(book: Book) -> Finding:
    if "bone" not in _novelties(book):
        raise MissingRunError
    lost = {agent: _loss(book, agent, "bone") for agent in AGENTS}
    score = book.run(BIRDS, AGENTS[0], "napping")[0].spec.get("score", "")
    found = "; ".join(f"{agent} {words(mean_t(values), values)}" for agent, values in lost.items())
    return finding_of(all(v.mean() <= -NEAR for v in lost.values()), f"end minus before (score {score}): {found}")


def _is_lower(book: Book) -> Finding:
    parts, holds = [], True
    for agent in AGENTS:
        difference = book.difference(BIRDS, ("naive-adaptation", "frozen"), (agent, "napping"))
        found = mean_t(difference)
        holds &= found is not None and found.high < 0
        parts.append(f"minus {agent} {words(found, difference)}")
    return finding_of(holds, "; ".join(parts))


def _is_fast(book: Book) -> Finding:
    early = _trial_rates(book, "naive-adaptation", "frozen", pl.col("episode").is_between(5, 9))
    end = _trial_rates(book, "naive-adaptation", "frozen", in_window(END))
    gain = end - early
    return finding_of(float(gain.mean()) < NEAR, f"last ten minus episodes 5-9: {words(mean_t(gain), gain)}")


def _hits_labels(book: Book) -> Finding:
    """No agent here reads labels: what Pig Color does to those that go by colours."""
    return _without_judgement("no agent here reads labels, all go by colours", book, [(a, "frozen") for a in AGENTS],
                              "pig-color")  # fmt: skip


def _without_judgement(why: str, book: Book, runs: list[tuple[str, str]], novelty: str = "") -> Finding:
    """Why a claim cannot be judged, with our nearest figures where they were run."""
    parts = []
    for agent, method in runs:
        if (BIRDS, agent, method) in book.runs:
            rates = (_trial_rates(book, agent, method, in_window(window), novelty) for window in (BEFORE, END))
            before, end = (float(values.mean()) for values in rates)
            parts.append(f"our {agent} {method} {before:.2f} before, {end:.2f} at the end".replace(" frozen", ""))
    return Finding(NOT_RUN, "; ".join([why, *parts]))


def _openmind(book: Book) -> Finding:
    why = "OpenMIND is closed source; the replanner stands in for it and is another agent"
    return _without_judgement(why, book, [("replanner", "frozen")])


def _hydra(book: Book) -> Finding:
    return _without_judgement("the anonymous agent was never published", book, [("hydra", "frozen")])


def _anonymous(book: Book) -> Finding:
    return _without_judgement("the anonymous agent was never published", book, [("datalab", "frozen")])


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
          leads(BIRDS, "dqn-rel", "dqn", ("bird-likes-pig", "circumcircle"))),
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
