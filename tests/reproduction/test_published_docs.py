"""Pages and pictures of the docs against the published rows."""

from pathlib import Path

import pytest

from benchmark_scripts import load_benchmark
from nappingrl.report.runs import Run
from nappingrl.reproduction.columns import BEYOND, OURS
from nappingrl.reproduction.judging import Evidence
from nappingrl.reproduction.outputs import claims_markdown, judge_claims
from nappingrl.reproduction.published import read_evidence
from nappingrl.reproduction.tables import costs_markdown, results_markdown

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def published() -> list[Run]:
    """The runs that the docs show."""
    return read_evidence([DOCS / "paper"])


def missing_tables(page: str, text: str) -> list[str]:
    """The tables of a text that a page of the docs does not have as a whole, row for row."""
    shown = f"{(DOCS / page).read_text('utf-8')}\n"
    return [part for part in text.split("\n\n") if part.startswith("| ") and f"\n\n{part.strip()}\n\n" not in shown]


def test_the_docs_show_what_the_published_rows_say(published: list[Run]) -> None:
    assert missing_tables("claims.md", claims_markdown(judge_claims(published))) == []
    assert missing_tables("results.md", results_markdown(published)) == []
    assert missing_tables("speed.md", costs_markdown(published)) == []


def test_the_pictures_of_the_docs_are_drawn_from_the_published_rows(published: list[Run]) -> None:
    """Two of them; the others are figures without any change."""
    script = load_benchmark("evaluation_pictures")
    assert {f"{name}.png" for name in script.PICTURES} == {file.name for file in (DOCS / "images").glob("paper-*.png")}
    texts = [text.get_text() for axes in script.plot_mountaincar(published).axes for text in axes.texts]
    assert [text.count("NAPPING as printed") for text in texts] == [1, 1, 1]
    assert [text.count("before the novelty") for text in texts] == [0, 0, 1], "PPO-Weak's level is out of view"
    (axes,) = script.PICTURES["paper-angrybirds"](published).axes
    assert len(axes.get_yticks()) == 13


OVERVIEW = {
    "CartPole, PPO of the RL Zoo, {draws} draws": ("cartpole", "zoo-ppo"),
    "MountainCar, DQN, {draws} draws": ("mountaincar", "dqn"),
    "CrossRoad, DQN, {draws} draws of {changes} changes": ("crossroad", "sb3-dqn"),
    "Angry Birds, DQN, {changes} changes, levels passed": ("angrybirds", "dqn"),
}
"""The rows of the table that opens the README and the results."""
IN_WORDS = {1: "one", 7: "seven", 9: "nine"}


@pytest.mark.parametrize("page", ["README.md", "docs/results.md"])
def test_the_overview_shows_what_the_published_rows_say(published: list[Run], page: str) -> None:
    """But for the oracle of Angry Birds, which is not published."""
    runs = Evidence.collect(published).view(OURS)
    lines = (DOCS.parent / page).read_text("utf-8").splitlines()
    for label, (domain, agent) in OVERVIEW.items():
        frozen = runs.run(domain, agent, "frozen")
        expected = label.format(draws=frozen.spec["trials"], changes=IN_WORDS[len(frozen.novelties)])
        (line,) = [line for line in lines if line.startswith(f"| {expected} |")]
        shown = [cell.strip(" *") for cell in line.strip("|").split("|")[1:]]
        methods = ["frozen", "napping", BEYOND, *(["oracle"] if domain != "angrybirds" else [])]
        summaries = [runs.run(domain, agent, method).summary() for method in methods]
        values = [summaries[0].pre_mean, *(summary.last10_mean for summary in summaries)]
        assert len(shown) == 5
        for text, value in zip(shown[: len(values)], values, strict=True):
            assert value is not None
            assert f"{value:.{len(text.partition('.')[2])}f}" == text, (label, text, value)
