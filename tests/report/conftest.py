"""Runs of every domain, made once."""

import numpy as np
import pytest

from conftest import make_agent
from nappingrl.domains import find_domain
from nappingrl.report.runs import read_run
from nappingrl.trials.runner import run_into
from nappingrl.trials.spec import RunSpec
from report.figures.drawn import POST, PRE, TRIALS, Runs
from report.rows import make_run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """A frozen and an adapting run of every domain; those of Angry Birds are made by hand."""
    folder = tmp_path_factory.mktemp("runs")
    found: Runs = {"nothing": []}
    for domain, trials in TRIALS.items():
        agent, found[domain] = make_agent(domain), []
        for method in ("frozen", "napping"):
            novelty = "all" if domain == "crossroad" else ""
            spec = RunSpec(domain, agent.name, method, novelty, trials, 3, protocol=f"{PRE}+{POST}").complete()
            run_into(folder / f"{domain}-{method}", spec, agent)
            found[domain].append(read_run(folder / f"{domain}-{method}"))
    passed = np.random.default_rng(0).integers(0, 2, (14, PRE + POST))
    names = [name for name in find_domain("angrybirds").novelties for _ in range(2)]
    agents = [("dqn", "frozen"), ("dqn", "napping"), ("naive", "frozen")]
    found["angrybirds"] = [make_run("angrybirds", *who, passed, PRE, novelties=names) for who in agents]
    found["one domain"] = found["cartpole"]
    return found
