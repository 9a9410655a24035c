"""The worked example and the pictures of the domains."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from nappingrl.errors import BadSpecError
from nappingrl.report.figures import FIGURES
from nappingrl.report.figures.domain_pictures import draw_domains, plot_domains
from report.figures.drawn import texts


def test_the_worked_example_has_three_steps() -> None:
    canvas = FIGURES["method"].plot([])
    assert len(canvas.axes) == 3
    words = " ".join(texts(canvas))
    for part in ("step t:", "step t + 1:", "step t + 2:", "1 → 2 or 3", "1 → 3", "split"):
        assert part in words


def test_strip_of_pictures(tmp_path: Path) -> None:
    pictures = {
        name: np.full((40, 60, 3), i * 80, np.uint8) for i, name in enumerate(("cartpole", "other", "crossroad"))
    }
    canvas = plot_domains(pictures)
    assert [axes.get_title() for axes in canvas.axes] == ["a) CartPole", "b) other", "c) CrossRoad"]
    assert imread(draw_domains(tmp_path / "a.png", pictures)).shape[1] == 2100
    with pytest.raises(BadSpecError, match="at least one picture"):
        draw_domains(tmp_path / "b.png", {})
