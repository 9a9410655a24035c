"""Principles as readable rules: disjoint, and honest about how much they say."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from nappingrl.domains import find_domain
from nappingrl.domains.angrybirds.layout import ObservedLevel, Target, encode
from nappingrl.domains.angrybirds.physics.scene import Box
from nappingrl.explain import ReadableRule, explained, grow_tree, summarise_principles
from nappingrl.types import DomainSpec

ACTIONS = ("LEFT", "COAST", "RIGHT")
Row = tuple[float, int, set[int], int, float]  # situation, wanted, candidates, visits, best score
LINE = DomainSpec(
    np.array([-1.0]),
    np.array([1.0]),
    3,
    10,
    observation_names=("place",),
    observation_units=("m",),
    action_names=ACTIONS,
)


def table(*rows: Row) -> dict[str, NDArray[Any]]:
    """What Principles.table gives, with one-number situations."""
    return {
        "situation": np.array([[row[0]] for row in rows], np.float32).reshape(len(rows), 1),
        "wanted": np.array([row[1] for row in rows], np.int64),
        "candidates": np.array([[a in row[2] for a in range(3)] for row in rows], np.bool_).reshape(len(rows), 3),
        "visits": np.array([row[3] for row in rows], np.int64),
        "best": np.array([row[4] for row in rows]),
    }


def read(*rows: Row) -> list[ReadableRule]:
    return summarise_principles(table(*rows), LINE, ACTIONS)


@pytest.mark.parametrize(
    ("now", "regions", "text"),
    [
        (("LEFT", "COAST"), 1, "s: wanted RIGHT, still trying LEFT or COAST; 5 visits (40% of all, 90% as said)"),
        (("RIGHT",), 1, "s: wanted RIGHT, still RIGHT; 5 visits (40% of all, 90% as said)"),
        (("LEFT",), 3, "s: wanted RIGHT, now LEFT; 5 visits in 3 regions (40% of all, 90% as said)"),
        (tuple("abcdefg"), 1, "s: wanted RIGHT, still trying 7 actions; 5 visits (40% of all, 90% as said)"),
    ],
)
def test_open_unchanged_and_grouped_rules(now: Sequence[str], regions: int, text: str) -> None:
    assert str(ReadableRule("s", "RIGHT", tuple(now), regions, 5, 1.0, 0.4, 0.9)) == text


def test_one_principle_holds_everywhere() -> None:
    assert read((0.5, 0, {2}, 7, 0.25)) == [ReadableRule("everywhere", "LEFT", ("RIGHT",), 1, 7, 0.25)]


def test_a_condition_names_the_observation_with_its_unit() -> None:
    rules = read((0.5, 0, {2}, 3, 1.0), (-0.5, 0, {1}, 2, 9.0), (0.1, 0, {2}, 1, 5.0))
    assert rules == [
        ReadableRule("place > -0.2 m", "LEFT", ("RIGHT",), 2, 4, 2.0, 4 / 6),
        ReadableRule("place <= -0.2 m", "LEFT", ("COAST",), 1, 2, 9.0, 2 / 6),
    ]


def test_the_wish_of_the_agent_is_a_condition_too() -> None:
    rules = read((0.5, 0, {2}, 5, 0.0), (0.5, 2, {0}, 4, 0.0))
    assert [(rule.situation, rule.wanted, rule.now) for rule in rules] == [
        ("the agent wants LEFT", "LEFT", ("RIGHT",)),
        ("the agent does not want LEFT", "RIGHT", ("LEFT",)),
    ]
    assert str(rules[0]) == "the agent wants LEFT: now RIGHT; 5 visits (56% of all, 100% as said)"


def test_what_cannot_be_told_apart_is_one_rule_that_says_how_pure_it_is() -> None:
    """Before, one trial printed "wanted RIGHT, now LEFT; 653 visits" and "wanted RIGHT, still RIGHT; 551 visits"."""
    rules = read((0.5, 2, {0}, 653, 0.0), (0.5, 2, {2}, 551, 0.0))
    assert len(rules) == 1
    assert rules[0].now == ("LEFT",)
    assert rules[0].purity == pytest.approx(653 / 1204)
    assert explained(rules) == pytest.approx(653 / 1204)


def test_no_principles_no_rules() -> None:
    assert read() == []


def test_cars_are_named_in_crossroad() -> None:
    domain = find_domain("crossroad")
    states = np.full((4, 18), -1.0, np.float32)
    states[:2, 4:6] = 0.5  # a car ahead
    candidates = np.zeros((4, 5), np.bool_)
    candidates[:2, 4] = candidates[2:, 2] = True
    ones = np.ones(4, np.int64)
    principles = {"situation": states, "wanted": 2 * ones, "candidates": candidates, "visits": ones, "best": ones}
    rules = summarise_principles(principles, domain, domain.action_names)
    assert {(rule.situation, rule.now) for rule in rules} == {("a car ahead", ("STAY",)), ("no car ahead", ("UP",))}


def test_many_observations_are_grouped_by_the_words_of_the_domain() -> None:
    domain = find_domain("angrybirds")
    pig = Target(0, "pig", Box(300, 300, 320, 320))
    level = encode(ObservedLevel((pig,), Box(100, 300, 110, 330), 1, "red"))
    states, candidates = np.tile(level, (3, 1)), np.eye(3, domain.n_actions, dtype=np.bool_)
    ones = np.ones(3, np.int64)
    principles = {"situation": states, "wanted": ones, "candidates": candidates, "visits": ones, "best": ones}
    (rule,) = summarise_principles(principles, domain, [str(a) for a in range(domain.n_actions)])
    assert rule.purity == pytest.approx(1 / 3)
    assert rule.situation == "1 pig; 1 bird"
    assert rule.wanted == "the pig, low, 15 pixels above its centre"
    assert rule.now == ("the pig, low",)


# ------------------------------------------------------------------------------------------------------------- CART


@pytest.mark.parametrize("seed", range(12))
def test_the_tree_is_that_of_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, d, n_labels = int(rng.integers(20, 300)), int(rng.integers(1, 6)), int(rng.integers(2, 5))
    features = rng.normal(size=(n, d)).astype(np.float32).astype(np.float64)
    labels = (np.abs(features @ rng.normal(size=(d, n_labels)) + rng.normal(size=(n, n_labels)))).argmax(axis=1)
    weights = rng.integers(1, 50, n).astype(np.float64)
    ours = grow_tree(features, labels, weights, 8, 0.02 * weights.sum())
    theirs = DecisionTreeClassifier(max_leaf_nodes=8, min_weight_fraction_leaf=0.02, random_state=0)
    leaf_of = theirs.fit(features, labels, weights).apply(features)
    assert {tuple(leaf.members.tolist()) for leaf in ours} == {
        tuple(np.flatnonzero(leaf_of == leaf).tolist()) for leaf in np.unique(leaf_of)
    }
    used = {(feature, threshold) for leaf in ours for feature, threshold, _ in leaf.conditions}
    tree = theirs.tree_
    inner = tree.feature >= 0
    np.testing.assert_allclose(
        sorted(used), sorted(zip(tree.feature[inner], tree.threshold[inner], strict=True)), rtol=1e-6
    )


@pytest.mark.parametrize("seed", range(5))
def test_leaves_are_disjoint_and_cover_everything(seed: int) -> None:
    rng = np.random.default_rng(seed)
    features, labels = rng.integers(0, 4, (80, 3)).astype(np.float64), rng.integers(0, 3, 80)
    leaves = grow_tree(features, labels, np.ones(80), 8, 1.0)
    assert sorted(i for leaf in leaves for i in leaf.members.tolist()) == list(range(80))
    for leaf in leaves:
        holds = np.ones(80, np.bool_)
        for feature, threshold, is_above in leaf.conditions:
            holds &= (features[:, feature] > threshold) == is_above
        assert np.flatnonzero(holds).tolist() == sorted(leaf.members.tolist())
