"""A rule for people: in words, with the observations' names and units, and as cells like NAPPING's principles."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.base import Agent
from nappingrl.methods.foresight.policies import FROZEN, REMAP, RESIDUAL, Rule, choose, n_terms
from nappingrl.types import DomainSpec, Floats
from nappingrl.world_model.transitions import Seen

MOST_STATES = 1000
"""Remembered states that are looked at for cells."""


def in_words(rule: Rule, centre: Floats, scale: Floats, domain: DomainSpec) -> str:
    """What the rule does; numbers multiply the observations in their own units."""
    actions = domain.action_names or tuple(f"action {a}" for a in range(domain.n_actions or len(domain.action_low)))
    if rule.kind == FROZEN:
        return "as the agent wants"
    if rule.kind == REMAP:
        changed = [(a, int(b)) for a, b in enumerate(rule.theta[0, : domain.n_actions]) if a != b]
        return "; ".join(f"where the agent wants {actions[a]}, do {actions[b]}" for a, b in changed)
    lines = [_sum(rule, theta, centre, scale, domain) for theta in rule.theta]
    if domain.is_continuous:
        names = domain.action_names or tuple(f"action[{k}]" for k in range(len(lines)))
        return "; ".join(f"{name} = {line}, in half ranges" for name, line in zip(names, lines, strict=True))
    if len(lines) == 2:
        return f"{actions[1]} where {lines[1]} > 0, else {actions[0]}"
    scores = "; ".join(f"{name}: {line}" for name, line in zip(actions, lines, strict=True))
    return f"the action with the greatest score: {scores}"


def _sum(rule: Rule, theta: Floats, centre: Floats, scale: Floats, domain: DomainSpec) -> str:
    """The sum theta . [z, 1, products] with the scale and the centre multiplied out of the linear part."""
    d, names = len(centre), domain.names
    slopes, constant = theta[:d] / scale, float(theta[d] - (theta[:d] * centre / scale).sum())
    terms = [f"{slope:+.3g} {name}" for slope, name in zip(slopes, names, strict=True) if slope]
    if n_terms(rule.kind, d) > d + 1:
        i, j = np.triu_indices(d)
        places = zip(theta[d + 1 : n_terms(rule.kind, d)], i, j, strict=True)
        terms += [
            f"{weight / (scale[a] * scale[b]):+.3g} ({names[a]} {-centre[a]:+.3g}) ({names[b]} {-centre[b]:+.3g})"
            for weight, a, b in places
            if weight
        ]
    if rule.kind == RESIDUAL:
        terms.append(f"{theta[-1]:+.3g} of what the agent wants")
    return " ".join([*terms, f"{constant:+.3g}"])


def as_cells(rule: Rule, centre: Floats, scale: Floats, seen: Seen, agent: Agent, domain: DomainSpec) -> dict[str, Any]:
    """Cells that do what the rule does (`Principles.table`): a site where the nearest of the same key would err.

    Distances weigh each observation by how much the rule depends on it.
    """
    states = seen.states[:: max(1, len(seen.rewards) // MOST_STATES)]
    wanted = agent.forward(states.astype(np.float32)).actions
    z = (states - centre) / scale
    now = _actions(rule, z, wanted)
    d = z.shape[1]
    weights = np.ones(d) if rule.kind == REMAP else np.abs(rule.theta[:, :d]).max(axis=0)
    points = z * weights / max(float(weights.max()), 1e-12)
    sites: list[int] = []
    visits: list[int] = []
    for m in range(len(points)):
        same = [k for k, site in enumerate(sites) if wanted[site] == wanted[m]]
        distances = [float(((points[sites[k]] - points[m]) ** 2).sum()) for k in same]
        nearest = same[int(np.argmin(distances))] if same else -1
        if nearest < 0 or now[sites[nearest]] != now[m]:
            sites.append(m)
            visits.append(1)
        else:
            visits[nearest] += 1
    chosen = np.zeros((len(sites), domain.n_actions), np.bool_)
    chosen[np.arange(len(sites)), now[sites]] = True
    return {
        "site": points[sites].astype(np.float32), "wanted": wanted[sites], "candidates": chosen, "tested": chosen,
        "best": np.full(len(sites), rule.estimate), "best_action": now[sites], "visits": np.array(visits, np.int64),
        "situation": states[sites].astype(np.float32),
    }  # fmt: skip


def _actions(rule: Rule, z: NDArray[np.float64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    if rule.kind == FROZEN:
        return wanted
    if rule.kind == REMAP:
        return np.asarray(rule.theta[0].astype(np.int64)[wanted])
    return np.array([choose(rule.kind, rule.theta, row) for row in z], np.int64)
