"""The regions of one trial."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

from nappingrl.errors import BadRunError
from nappingrl.report.figures.embedding_map import draw_map, nearest_raster, plot_embedding, project
from nappingrl.report.figures.style import style
from report.figures.drawn import (
    Runs,
    check_layout,
    texts,
)


def make_table(n: int, dim: int) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    candidates = np.zeros((n, 2), np.bool_)
    candidates[np.arange(n), np.arange(n) % 2] = True
    candidates[0] = True  # open
    return {"site": rng.normal(size=(n, dim)), "wanted": np.zeros(n, np.int64), "candidates": candidates}


def test_embedding_map(runs: Runs, tmp_path: Path) -> None:
    manifest = runs["cartpole"][1].manifest
    canvas = plot_embedding(manifest, make_table(30, 8), "physics 4")
    words = texts(canvas)
    assert {"LEFT", "RIGHT", "open", "site"} <= set(words)
    caption = canvas.get_supxlabel()
    assert "Trial physics 4: 30 regions, 1 open, 15 closed on another action" in caption
    assert "in this projection, not in all 8 dimensions" in caption
    check_layout(canvas)
    assert imread(draw_map(manifest, make_table(30, 8), tmp_path / "a.png")).shape[1] == 2100
    flat = plot_embedding(manifest, make_table(5, 2)).get_supxlabel()
    assert "projection" not in flat


def test_embedding_map_of_many_actions_names_the_most_frequent(runs: Runs) -> None:
    names = [f"object {i} low" for i in range(40)]
    manifest = replace(runs["cartpole"][1].manifest, action_names=names)
    candidates = np.zeros((12, 40), np.bool_)
    closed_on = [30, 30, 30, 31, 31, 1, 2, 3, 4, 5, 6]
    candidates[np.arange(11), closed_on] = True
    candidates[11] = True  # open
    table = make_table(12, 4) | {"candidates": candidates, "wanted": np.full(12, 30)}
    with style():
        canvas = plot_embedding(manifest, table)
    check_layout(canvas)
    shown = [text.get_text() for text in canvas.legends[0].get_texts()]
    assert shown == [*(names[i] for i in (30, 31, 1, 2, 3, 4)), "another action", "open", "site"]
    few = plot_embedding(manifest, table | {"candidates": candidates[[0, 0, 3] * 4]})
    assert [text.get_text() for text in few.legends[0].get_texts()][:3] == [names[30], names[31], "open"]


def test_projection_of_two_dimensions_keeps_distances() -> None:
    sites = np.random.default_rng(0).normal(size=(20, 2))
    flat, shares = project(sites)
    np.testing.assert_allclose(
        np.linalg.norm(flat[:, None] - flat, axis=2), np.linalg.norm(sites[:, None] - sites, axis=2), atol=1e-12
    )
    assert shares.sum() == pytest.approx(1)
    assert shares[0] >= shares[1]
    x, y, owner = nearest_raster(flat)
    at = int(np.abs(y - flat[3, 1]).argmin()), int(np.abs(x - flat[3, 0]).argmin())
    assert owner[at] == 3


@pytest.mark.parametrize("sites", [np.zeros((1, 4)), np.ones((3, 4)), np.arange(3.0)[:, None]])
def test_sites_without_a_plane(runs: Runs, sites: Any) -> None:
    plot_embedding(runs["cartpole"][1].manifest, make_table(len(sites), 4) | {"site": sites})


def test_a_trial_without_principles_is_refused(runs: Runs, tmp_path: Path) -> None:
    with pytest.raises(BadRunError, match="has no principles"):
        draw_map(runs["cartpole"][0].manifest, {}, tmp_path / "a.png")
