"""A policy for people: as a formula in the observations' names and units, and as principles like NAPPING's."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.base import Agent
from nappingrl.methods.foresight.policies import FROZEN, REMAP, RESIDUAL, SimplePolicy, choose, n_terms
from nappingrl.types import DomainSpec, Floats
from nappingrl.world_model.transitions import Transitions

MAX_STATES = 1000
"""States of the buffer from which principles are made."""


def describe(policy: SimplePolicy, centre: Floats, scale: Floats, domain: DomainSpec) -> str:
    """The policy as a formula in the observations' units."""
    actions = domain.action_labels
    if policy.kind == FROZEN:
        return "as the agent wants"
    if policy.kind == REMAP:
        changed = [(a, int(b)) for a, b in enumerate(policy.weights[0, : domain.n_actions]) if a != b]
        return "; ".join(f"where the agent wants {actions[a]}, do {actions[b]}" for a, b in changed)
    scores = [_formula(policy, weights, centre, scale, domain) for weights in policy.weights]
    if domain.is_continuous:
        return "; ".join(f"action[{k}] = {score}, in half ranges" for k, score in enumerate(scores))
    if len(scores) == 2:
        return f"{actions[1]} where {scores[1]} > 0, else {actions[0]}"
    return "the action with the greatest score: " + "; ".join(
        f"{name}: {score}" for name, score in zip(actions, scores, strict=True)
    )


def _formula(policy: SimplePolicy, weights: Floats, centre: Floats, scale: Floats, domain: DomainSpec) -> str:
    """The score weights . [z, 1, products], with scale and centre multiplied out of the linear part."""
    d, names = len(centre), domain.observation_labels
    slopes = weights[:d] / scale
    constant = float(weights[d] - (weights[:d] * centre / scale).sum())
    terms = [f"{slope:+.3g} {name}" for slope, name in zip(slopes, names, strict=True) if slope]
    if n_terms(policy.kind, d) > d + 1:
        i, j = np.triu_indices(d)
        products = zip(weights[d + 1 : n_terms(policy.kind, d)], i, j, strict=True)
        terms += [
            f"{weight / (scale[a] * scale[b]):+.3g} ({names[a]} {-centre[a]:+.3g}) ({names[b]} {-centre[b]:+.3g})"
            for weight, a, b in products
            if weight
        ]
    if policy.kind == RESIDUAL:
        terms.append(f"{weights[-1]:+.3g} of what the agent wants")
    return " ".join([*terms, f"{constant:+.3g}"])


def to_principles(
    policy: SimplePolicy, centre: Floats, scale: Floats, transitions: Transitions, agent: Agent, domain: DomainSpec
) -> dict[str, Any]:
    """Principles that act like the policy (`Principles.table`).

    A site is added wherever the nearest one with the same wanted action would act differently. Distances weigh each
    observation by how much the policy depends on it.
    """
    states = transitions.states[:: max(1, transitions.n // MAX_STATES)]
    wanted = agent.forward(states.astype(np.float32)).actions
    z = (states - centre) / scale
    actions = _actions(policy, z, wanted)
    d = z.shape[1]
    importance = np.ones(d) if policy.kind == REMAP else np.abs(policy.weights[:, :d]).max(axis=0)
    points = z * importance / max(float(importance.max()), 1e-12)
    sites, visits = _find_sites(points, wanted, actions)
    executed = np.zeros((len(sites), domain.n_actions), np.bool_)
    executed[np.arange(len(sites)), actions[sites]] = True
    return {
        "site": points[sites].astype(np.float32), "wanted": wanted[sites], "candidates": executed, "tested": executed,
        "best": np.full(len(sites), policy.estimate), "best_action": actions[sites],
        "visits": np.array(visits, np.int64), "situation": states[sites].astype(np.float32),
    }  # fmt: skip


def _find_sites(points: Floats, wanted: NDArray[np.int64], actions: NDArray[np.int64]) -> tuple[list[int], list[int]]:
    """The points that become sites, in their order, and how many points each stands for."""
    sites: list[int] = []
    visits: list[int] = []
    of_wanted: dict[int, list[int]] = {}
    for m, point in enumerate(points):
        same = of_wanted.setdefault(int(wanted[m]), [])
        distances = ((points[[sites[k] for k in same]] - point) ** 2).sum(axis=1)
        nearest = same[int(distances.argmin())] if same else -1
        if nearest < 0 or actions[sites[nearest]] != actions[m]:
            same.append(len(sites))
            sites.append(m)
            visits.append(1)
        else:
            visits[nearest] += 1
    return sites, visits


def _actions(policy: SimplePolicy, z: NDArray[np.float64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    if policy.kind == REMAP:
        return np.asarray(policy.weights[0].astype(np.int64)[wanted])
    return np.array([choose(policy.kind, policy.weights, row) for row in z], np.int64)
