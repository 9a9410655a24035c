"""Runs made by hand: the returns are written down, so that everything else can be worked out on paper."""

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from nappingrl.domains import find_domain
from nappingrl.registry import methods
from nappingrl.report.runs import Run
from nappingrl.trials.manifest_record import Manifest
from nappingrl.trials.spec import RunSpec

RANGES = {"cartpole": (1.0, 200.0), "mountaincar": (-500.0, 0.0), "crossroad": (-1.0, 1.0), "angrybirds": (0.0, 1.0)}


def make_run(
    domain: str,
    agent: str,
    method: str,
    returns: ArrayLike,
    pre: int = 2,
    role: str = "",
    novelties: list[str] | None = None,
    params: dict[str, ArrayLike] | None = None,
    seed: int = 0,
    protocol: str = "",
    score: str = "",
    detector: str = "rolling-mean",
    options: dict[str, Any] | None = None,
) -> Run:
    """A run whose trials have these returns, (trials, episodes); the first `pre` episodes are before the novelty."""
    table = np.asarray(returns, float)
    n, episodes = table.shape
    names = novelties or ["physics"] * n
    numbers = [names[:i].count(name) for i, name in enumerate(names)]
    spec = RunSpec(
        domain, agent, method, novelty="all" if len(set(names)) > 1 else names[0], trials=max(numbers) + 1, seed=seed,
        detector=detector, protocol=protocol or f"{pre}+{episodes - pre}", score=score, options=options or {},
    )  # fmt: skip
    adaptation = spec.adaptation.resolve(find_domain(domain))
    spec = replace(spec, score=adaptation.score, options=dict(adaptation.options))
    manifest = Manifest(
        msgspec.to_builtins(spec), "0", "", "", 128, n, episodes, RANGES[domain], "return", RANGES[domain][1],
        role=role or methods.entry(method).role, parameters={"force": 0.001, "gravity": 0.0025},
    )  # fmt: skip
    columns: dict[str, Any] = {
        "trial": np.repeat(spec.trial_ids(zip(names, numbers, strict=True)), episodes),
        "novelty": np.repeat(names, episodes),
        "number": np.repeat(np.array(numbers, np.int32), episodes),
        "episode": np.tile(np.arange(episodes, dtype=np.int32) - pre, n),
        "return": table.ravel(),
        "length": np.full(n * episodes, 10, np.int32),
        "won": table.ravel() >= RANGES[domain][1],
        "detected": np.tile(np.arange(episodes) >= pre + 5, n),
        "regions": np.zeros(n * episodes, np.int32),
        "status": np.full(n * episodes, "ok"),
    }  # fmt: skip
    columns |= {
        f"param_{key}": np.repeat(np.asarray(values, float), episodes) for key, values in (params or {}).items()
    }
    return Run(manifest, pl.DataFrame(columns))


def steps(*levels: tuple[float, int]) -> list[float]:
    """[(1, 2), (5, 3)] -> [1, 1, 5, 5, 5]."""
    return [value for value, count in levels for _ in range(count)]


def flags(*rows: str) -> NDArray[np.bool_]:
    """Detection as a drawing: "..|.xx" is detected from the second post-novelty episode on."""
    return np.array([[letter == "x" for letter in row.replace("|", "")] for row in rows])
