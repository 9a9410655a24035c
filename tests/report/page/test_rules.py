"""The rules of a page: every registered method shows them, or the reason why not."""

import html

import pytest

import nappingrl
from nappingrl.registry import methods
from nappingrl.report.page.rendering import render
from nappingrl.report.page.rules import find_rules, rules_part, why_no_rules
from report.rows import make_run, steps

LEARNERS = [entry.name for entry in methods.entries() if not entry.no_rules]


def test_methods_that_learn_rules() -> None:
    assert set(LEARNERS) == {"napping", "napping-ucb", "foresight", "auto"}


@pytest.mark.parametrize("method", methods.names())
def test_every_method_shows_rules_or_says_why_not(method: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    if method not in LEARNERS:
        run = make_run("cartpole", "ppo", method, [steps((200, 2), (100, 12))])
        assert find_rules([run]) == ([], [f"{method}: {methods.entry(method).no_rules}"])
        reason = html.escape(methods.entry(method).no_rules).replace("&#x27;", "&#39;")
        assert f"No rules: {method}: {reason}." in render("rules.html", rules=rules_part(*find_rules([run])))
        return
    out = tmp_path_factory.mktemp("rules") / "run"
    run = nappingrl.run("cartpole", "ppo", method, trials=2, protocol="2+8", detector="given", seed=3, out=out)
    (shown,), why = find_rules([run])
    assert why == []
    assert shown.rules
    assert "it gave the same rows as stored" in shown.origin
    assert '<table class="rules">' in render("rules.html", rules=rules_part([shown], why))


def test_a_method_that_is_not_installed_says_so() -> None:
    assert why_no_rules("gone") == "it is not installed"
