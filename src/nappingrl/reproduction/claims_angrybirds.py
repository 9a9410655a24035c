"""The paper's claims on Angry Birds."""

from collections.abc import Callable, Sequence
from math import inf

import polars as pl

from nappingrl.reproduction.judging import (
    BEFORE,
    LAST,
    Claim,
    Evidence,
    NotJudgedError,
    Part,
    Window,
    mean_part,
    outperforms,
    paired,
)
from nappingrl.types import Floats

BIRDS = "angrybirds"
AGENTS = ("dqn", "dqn-rel")
SCRIPTED = ("naive", "naive-adaptation", "datalab", "replanner", "hydra")
LED_BY_REL = ("bird-likes-pig", "circumcircle")
RIGHT_AFTER: Window = (0, 2)
NEAR = 0.1
"""Pass rates that differ by less than this are "about" the same."""
Runs = tuple[tuple[str, str], ...]
NAPPING: Runs = tuple((agent, "napping") for agent in AGENTS)


def _rates(evidence: Evidence, run: tuple[str, str], window: Window, novelty: str = "") -> pl.DataFrame:
    """The pass rate of each trial in some of its episodes."""
    rates = evidence.window(BIRDS, *run, window)
    return rates.filter(pl.col("novelty") == novelty) if novelty else rates


def _between(
    runs: Runs, window: Window, low: float = -inf, high: float = inf, novelty: str = ""
) -> Callable[[Evidence], Sequence[Part]]:
    """Whether the mean pass rate of every run, over its trials, lies in a range."""

    def judge_claim(evidence: Evidence) -> Sequence[Part]:
        return [
            mean_part(run[0], _rates(evidence, run, window, novelty)["level"].to_numpy(), low, high) for run in runs
        ]

    return judge_claim


def _loss(evidence: Evidence, agent: str, novelty: str) -> Floats:
    """Per trial: its pass rate in the last ten minus that before the novelty."""
    run = (agent, "napping")
    return paired(_rates(evidence, run, LAST, novelty), _rates(evidence, run, BEFORE, novelty))


def _is_harmless(evidence: Evidence) -> Sequence[Part]:
    """The trained agents read labels."""
    rates = {
        agent: [_rates(evidence, (agent, "frozen"), window, "pig-color") for window in (LAST, BEFORE)]
        for agent in AGENTS
    }
    if any(values.is_empty() for windows in rates.values() for values in windows):
        raise NotJudgedError("Pig Color was not run")
    return [mean_part(f"{agent} end minus before", paired(*windows), low=-NEAR) for agent, windows in rates.items()]


def _novelties(evidence: Evidence) -> list[str]:
    return evidence.run(BIRDS, AGENTS[0], "napping").novelties


def _recovers(evidence: Evidence) -> Sequence[Part]:
    others = [novelty for novelty in _novelties(evidence) if novelty != "bone"]
    if not others:
        raise NotJudgedError("only Bone was run")
    return [
        mean_part(f"{agent} on {novelty}", _loss(evidence, agent, novelty), low=-NEAR)
        for novelty in others
        for agent in AGENTS
    ]


def _loses_bone(evidence: Evidence) -> Sequence[Part]:
    if "bone" not in _novelties(evidence):
        raise NotJudgedError("Bone was not run")
    return [mean_part(f"{agent} end minus before", _loss(evidence, agent, "bone"), high=-NEAR) for agent in AGENTS]


def _rel_is_below_elsewhere(evidence: Evidence) -> Sequence[Part]:
    levels = [
        evidence.levels(BIRDS, agent, "napping").filter(~pl.col("novelty").is_in(LED_BY_REL))
        for agent in ("dqn-rel", "dqn")
    ]
    return [mean_part("dqn-rel minus dqn", paired(*levels), high=0)]


def _scripted_run(evidence: Evidence) -> list[str]:
    found = [agent for agent in SCRIPTED if evidence.has(BIRDS, agent, "frozen")]
    if not found:
        raise NotJudgedError("no scripted agent was run")
    return found


def _strongest(evidence: Evidence) -> Sequence[Part]:
    return [
        mean_part(f"{agent} minus {other}", evidence.difference(BIRDS, (agent, "napping"), (other, "frozen")), low=0)
        for other in _scripted_run(evidence)
        for agent in AGENTS
    ]


def _datalab_is_lowest(evidence: Evidence) -> Sequence[Part]:
    others = [agent for agent in _scripted_run(evidence) if agent != "datalab"]
    runs = [*((agent, "frozen") for agent in others), *NAPPING]
    return [
        mean_part(f"minus {run[0]}", evidence.difference(BIRDS, ("datalab", "frozen"), run), high=0) for run in runs
    ]


def _is_lower(evidence: Evidence) -> Sequence[Part]:
    naive = ("naive-adaptation", "frozen")
    return [mean_part(f"minus {run[0]}", evidence.difference(BIRDS, naive, run), high=0) for run in NAPPING]


def _is_fast(evidence: Evidence) -> Sequence[Part]:
    gain = evidence.gain(BIRDS, "naive-adaptation", "frozen", to=LAST, since=(5, 9))
    return [mean_part("last ten minus episodes 5-9", gain, high=NEAR)]


def _without_judgement(why: str, runs: Runs, novelty: str = "") -> Callable[[Evidence], Sequence[Part]]:
    """Why a claim cannot be judged, with our nearest figures where they were run."""

    def judge_claim(evidence: Evidence) -> Sequence[Part]:
        words = [why]
        for run in runs:
            if evidence.has(BIRDS, *run):
                rates = [_rates(evidence, run, window, novelty)["level"] for window in (BEFORE, LAST)]
                if all(len(values) for values in rates):
                    before, end = (float(values.to_numpy().mean()) for values in rates)
                    words.append(f"our {run[0]} {before:.2f} before, {end:.2f} at the end")
        raise NotJudgedError("; ".join(words))

    return judge_claim


_NEVER = "cannot be judged"
_ANONYMOUS = "the anonymous agent was never published"

CLAIMS: list[Claim] = [
    Claim(BIRDS, "the trained agents pass more than 95 % of their levels", "frozen, before the novelty: above .95",
          _between(tuple((agent, "frozen") for agent in AGENTS), BEFORE, low=0.95), by_column=False),
    Claim(BIRDS, "NAPPING agents pass just above .9 before the novelty", "between .9 and .95, both agents",
          _between(NAPPING, BEFORE, 0.9, 0.95)),
    Claim(BIRDS, "NAPPING agents fall below .4 right after the novelty", "episodes 0-2: below .4, both agents",
          _between(NAPPING, RIGHT_AFTER, high=0.4)),
    Claim(BIRDS, "NAPPING agents end at about .8", "last ten within .1 of .8, both agents",
          _between(NAPPING, LAST, 0.8 - NEAR, 0.8 + NEAR)),
    Claim(BIRDS, "NAPPING is back at its old level on all novelties but Bone", "last ten less than .1 below the level "
          "before, on each, both agents", _recovers),
    Claim(BIRDS, "NAPPING does not get back to its old level on Bone", "last ten at least .1 below the level before, "
          "both agents", _loses_bone),
    Claim(BIRDS, "NAPPING is the strongest of all", "ends above every scripted agent, both agents", _strongest),
    Claim(BIRDS, "DQN-Rel is slightly ahead on Bird Likes Pig and Circumcircle", "paired differences above 0",
          outperforms(BIRDS, "dqn-rel", "dqn", LED_BY_REL)),
    Claim(BIRDS, "DQN-Rel is slightly worse elsewhere", "paired difference below 0 over the other novelties",
          _rel_is_below_elsewhere),
    Claim(BIRDS, "Naive Adaptation adapts fast", "episodes 5-9 less than .1 below its last ten", _is_fast, False),
    Claim(BIRDS, "Naive Adaptation ends lower than NAPPING", "paired differences below 0, to both agents", _is_lower),
    Claim(BIRDS, "Naive Adaptation crashes on Circumcircle", "passes less than .1 of the last ten",
          _between((("naive-adaptation", "frozen"),), LAST, high=0.1, novelty="circumcircle"), by_column=False),
    Claim(BIRDS, "Naive Adaptation fails Floating Wood", "passes less than half of the last ten",
          _between((("naive-adaptation", "frozen"),), LAST, high=0.5, novelty="floating-wood"), by_column=False),
    Claim(BIRDS, "Pig Color is harmless to agents that read labels", "frozen: last ten less than .1 below the level "
          "before, both agents", _is_harmless, by_column=False),
    Claim(BIRDS, "OpenMIND passes above .8 before and above .4 after, best on Green Egg and Taller Slingshot", _NEVER,
          _without_judgement("OpenMIND is closed source; the replanner stands in for it and is another agent",
                             (("replanner", "frozen"),)), by_column=False),
    Claim(BIRDS, "HYDRA drops more than the anonymous agent", _NEVER,
          _without_judgement(_ANONYMOUS, (("hydra", "frozen"),)), by_column=False),
    Claim(BIRDS, "the anonymous agent slowly falls and stays above DataLab everywhere", _NEVER,
          _without_judgement(_ANONYMOUS, (("datalab", "frozen"),)), by_column=False),
    Claim(BIRDS, "DataLab is the lowest of all", "ends below every other agent", _datalab_is_lowest),
    Claim(BIRDS, "DataLab passes about .3 before the novelty", "within .1 of .3",
          _between((("datalab", "frozen"),), BEFORE, 0.3 - NEAR, 0.3 + NEAR), by_column=False),
    Claim(BIRDS, "DataLab passes below .2 after the novelty", "all episodes after it: below .2",
          _between((("datalab", "frozen"),), (0, inf), high=0.2), by_column=False),
]  # fmt: skip
