"""Principles as readable rules: "where the pole leans right and the agent wants x, now do y".

A small decision tree (CART, Breiman et al. 1984) over named observations and the agent's wish summarises the principles
of a trial. Its leaves are disjoint, so no two rules contradict each other; each states how much of the behaviour it
covers, and how much of that it describes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.types import DomainSpec, Floats

AS_WANTED = "as wanted"
"""Name of the agent's own action if actions are continuous."""
EVERYWHERE = "everywhere"
MAX_NAMED_ACTIONS = 6
"""An open principle with more candidates shows only their number."""
MAX_RULES = 8
MIN_SHARE = 0.02
"""A rule covers at least this share of the visits."""
MAX_OBSERVATIONS = 24
"""With more observations, situations are grouped by the domain's words for them instead of by a tree."""
MAX_WISHES = 8
"""With more actions, the tree does not ask what the agent wants."""
Matrix = NDArray[np.float64]
Labels = NDArray[np.int64]
Split = tuple[float, int, float]  # how much it lowers the impurity, feature, threshold


@dataclass(frozen=True, slots=True)
class ReadableRule:
    """What is done in one situation; no other rule of the same trial is about it."""

    situation: str
    wanted: str
    """What the agent wants there; empty: several actions."""
    now: tuple[str, ...]
    """One action if the principles are closed, several if they are open."""
    regions: int
    visits: int
    """0: not counted, as by a method that translates every action."""
    score: float
    """Best scores, averaged over visits."""
    coverage: float = 1.0
    """Share of all visits."""
    purity: float = 1.0
    """Share of its visits in which exactly this is done."""

    def __str__(self) -> str:
        regions = f" in {self.regions} regions" if self.regions > 1 else ""
        is_said = self.wanted in ("", AS_WANTED) or f"the agent wants {self.wanted}" in self.situation
        wanted = "" if is_said else f"wanted {self.wanted}, "
        if not self.visits:
            return f"{self.situation}: {wanted}{self.action}"
        shares = f"{self.coverage:.0%} of all, {self.purity:.0%} as said"
        visits = f"{self.visits} visit{'s' * (self.visits != 1)}{regions}"
        return f"{self.situation}: {wanted}{self.action}; {visits} ({shares})"

    @property
    def action(self) -> str:
        """What is done, in words."""
        if self.now == (self.wanted,):
            return f"still {self.wanted}"
        if len(self.now) == 1:
            return f"now {self.now[0]}"
        return (
            f"still trying {' or '.join(self.now)}"
            if len(self.now) <= MAX_NAMED_ACTIONS
            else f"still trying {len(self.now)} actions"
        )


def explained(rules: Sequence[ReadableRule]) -> float:
    """The share of the behaviour that rules describe, by visits."""
    return sum(rule.coverage * rule.purity for rule in rules)


def summarise_principles(
    table: Mapping[str, NDArray[Any]], domain: DomainSpec, action_names: Sequence[str]
) -> list[ReadableRule]:
    """The principles of a trial (`Principles.table`) as disjoint rules, the most visited first."""
    n = len(table["situation"])
    if not n:
        return []
    wishes, done = _name_all(table, domain, action_names)
    kinds = list(dict.fromkeys(done))
    labels = np.array([kinds.index(now) for now in done])
    visits = np.maximum(table["visits"].astype(np.float64), 1.0)
    total, rules = visits.sum(), []
    for situation, members in _situations(table, domain, labels, visits, wishes, action_names):
        weights = np.bincount(labels[members], visits[members], len(kinds))
        wanted = {wishes[i] for i in members.tolist()}
        rules.append(
            ReadableRule(
                situation,
                wanted.pop() if len(wanted) == 1 else "",
                kinds[int(weights.argmax())],
                len(members),
                int(table["visits"][members].sum()),
                float(np.average(table["best"][members], weights=visits[members])),
                float(weights.sum() / total),
                float(weights.max() / weights.sum()),
            )
        )
    return sorted(rules, key=lambda rule: -rule.visits)


def _name_all(
    table: Mapping[str, NDArray[Any]], domain: DomainSpec, action_names: Sequence[str]
) -> tuple[list[str], list[tuple[str, ...]]]:
    """For each principle, what the agent wants and what is done, in words."""
    wishes, done = [], []
    name_action = domain.name_action if table["situation"].shape[1] else None  # long observations are not stored
    sets = np.asarray(table["candidates"], np.bool_)
    for state, wish, candidates in zip(table["situation"], table["wanted"].tolist(), sets, strict=True):
        actions = np.flatnonzero(candidates).tolist()
        if name_action is None or len(actions) > MAX_NAMED_ACTIONS:
            done.append(tuple(action_names[a] for a in actions))
        else:
            done.append(tuple(name_action(state, a) for a in actions))
        wishes.append(action_names[wish] if name_action is None else name_action(state, wish))
    return wishes, done


def _situations(
    table: Mapping[str, NDArray[Any]],
    domain: DomainSpec,
    labels: Labels,
    visits: Floats,
    wanted_names: Sequence[str],
    actions: Sequence[str],
) -> list[tuple[str, NDArray[np.int64]]]:
    """Disjoint situations in words, with the principles of each."""
    states, wanted = np.asarray(table["situation"], np.float64), np.asarray(table["wanted"])
    if states.shape[1] > MAX_OBSERVATIONS:
        words = [f"{domain.describe(state)}|{wish}" for state, wish in zip(states, wanted_names, strict=True)]
        _, groups = np.unique(words, return_inverse=True)
        members = [np.flatnonzero(groups == group) for group in range(int(groups.max()) + 1)]
        return [(words[at[0]].rpartition("|")[0], at) for at in members]
    shown = [i for i in range(states.shape[1]) if domain.split_words.get(i) != ("", "")]
    wishes = list(range(len(actions))) if len(np.unique(wanted)) > 1 and len(actions) <= MAX_WISHES else []
    features = np.column_stack([states[:, shown], *(wanted == wish for wish in wishes)])
    leaves = grow_tree(features, labels, visits, MAX_RULES, MIN_SHARE * visits.sum())
    return [(_say(leaf, shown, domain, [actions[wish] for wish in wishes]), leaf.members) for leaf in leaves]


def _say(leaf: "Leaf", shown: Sequence[int], domain: DomainSpec, wishes: Sequence[str]) -> str:
    """The conditions of a leaf in words."""
    said = []
    for feature in dict.fromkeys(feature for feature, _, _ in leaf.conditions):
        above = [threshold for f, threshold, is_above in leaf.conditions if f == feature and is_above]
        below = [threshold for f, threshold, is_above in leaf.conditions if f == feature and not is_above]
        if feature >= len(shown):
            said.append(f"the agent {'wants' if above else 'does not want'} {wishes[feature - len(shown)]}")
            continue
        entry = shown[feature]
        if entry in domain.split_words:
            said.append(domain.split_words[entry][bool(above)])
            continue
        unit = (
            f" {domain.observation_units[entry]}"
            if domain.observation_units and domain.observation_units[entry]
            else ""
        )
        name = domain.observation_labels[entry]
        if above and below:
            said.append(f"{name} from {max(above):.3g} to {min(below):.3g}{unit}")
        else:
            said.append(f"{name} > {max(above):.3g}{unit}" if above else f"{name} <= {min(below):.3g}{unit}")
    return ", ".join(said) or EVERYWHERE


# ------------------------------------------------------------------------------------------------------------- CART


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf of the tree."""

    conditions: tuple[tuple[int, float, bool], ...]
    """Feature, threshold, and whether it must be above."""
    members: NDArray[np.int64]


def grow_tree(features: Matrix, labels: Labels, weights: Floats, max_leaves: int, min_weight: float) -> list[Leaf]:
    """The leaves of a classification tree, grown best first by Gini impurity; thresholds lie between values."""
    leaves = [Leaf((), np.arange(len(labels)))]
    splits = [_best_split(features, labels, weights, leaves[0].members, min_weight)]
    while len(leaves) < max_leaves:
        at = max(range(len(leaves)), key=lambda i: splits[i][0])
        gain, feature, threshold = splits[at]
        if gain <= 1e-9 * weights.sum():
            break
        leaf = leaves[at]
        is_above = features[leaf.members, feature] > threshold
        parts = [
            Leaf((*leaf.conditions, (feature, threshold, side)), leaf.members[is_above == side])
            for side in (False, True)
        ]
        leaves[at : at + 1] = parts
        splits[at : at + 1] = [_best_split(features, labels, weights, part.members, min_weight) for part in parts]
    return leaves


def _best_split(
    features: NDArray[np.float64],
    labels: NDArray[np.int64],
    weights: Floats,
    members: NDArray[np.int64],
    min_weight: float,
) -> Split:
    """The split that lowers the weighted impurity most; the first of equals."""
    best: Split = (0.0, -1, 0.0)
    one_hot = np.zeros((len(members), int(labels.max()) + 1))
    one_hot[np.arange(len(members)), labels[members]] = weights[members]
    purity = (one_hot.sum(axis=0) ** 2).sum() / one_hot.sum()
    for feature in range(features.shape[1]):
        values = features[members, feature]
        order = np.argsort(values, kind="stable")
        below = np.cumsum(one_hot[order], axis=0)[:-1]
        above = one_hot.sum(axis=0) - below
        n_below, n_above = below.sum(axis=1), above.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            gains = (below**2).sum(axis=1) / n_below + (above**2).sum(axis=1) / n_above - purity
        cut = values[order]
        is_allowed = (cut[1:] > cut[:-1]) & (n_below >= min_weight) & (n_above >= min_weight)
        gains = np.where(is_allowed, gains, -np.inf)
        if len(gains) and gains.max() > best[0]:
            k = int(gains.argmax())
            best = (float(gains[k]), feature, float((cut[k] + cut[k + 1]) / 2))
    return best
