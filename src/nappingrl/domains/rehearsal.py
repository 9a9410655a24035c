"""Rehearsal: oracles try their plans in copies of the domain."""

import numpy as np
from numpy.typing import NDArray

from nappingrl.types import DomainSpec, Floats, OracleController


def mean_lengths(
    spec: DomainSpec, oracle: OracleController, plans: NDArray[np.float64], parameters: Floats, starts: Floats
) -> Floats:
    """Mean episode length of each plan in copies of the domain, over the same few starts."""
    n = len(plans) * len(starts)
    domain, running = spec.make(n), np.arange(n)
    domain.apply(running, dict(zip(spec.parameters, parameters.tolist(), strict=True)))
    domain.reset(running, np.tile(starts, (len(plans), 1)))
    lengths, each = np.zeros(n), np.repeat(plans, len(starts), axis=0)
    for step in range(spec.horizon):
        actions = oracle.act(each[running], domain.observe(running), np.full(len(running), step))
        _, terminated = domain.step(running, actions)
        lengths[running] += 1
        running = running[~terminated]
    means: Floats = lengths.reshape(len(plans), len(starts)).mean(axis=1)
    return means
