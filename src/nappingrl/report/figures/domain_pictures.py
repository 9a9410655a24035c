"""Figure of the domains: a picture of each, a few steps into an episode."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nappingrl.errors import BadSpecError
from nappingrl.registry import domains
from nappingrl.report.figures.style import TWO_COLUMNS, new_canvas, save, style
from nappingrl.report.looks import domain_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

_PART = 8
"""A picture is taken after an eighth of the longest episode."""
_SHOWN = {"angrybirds": (0.2, 0.72, 0.08, 0.92)}
"""The part of a picture that is shown, as shares of its height and width: top, bottom, left, right."""


def draw_domains(path: Path, pictures: Mapping[str, NDArray[np.uint8]] | None = None) -> Path:
    """Write pictures of domains side by side; name -> picture (height, width, 3), default: all domains."""
    with style():
        canvas = plot_domains(take_pictures() if pictures is None else pictures)
    return save(canvas, path)


def plot_domains(pictures: Mapping[str, NDArray[np.uint8]]) -> "Canvas":
    """One panel per domain."""
    if not pictures:
        raise BadSpecError("figure domains needs at least one picture; give name -> array (height, width, 3)")
    tallest = max(picture.shape[0] / picture.shape[1] for picture in pictures.values())
    canvas = new_canvas(TWO_COLUMNS, 0.3 + tallest * TWO_COLUMNS / len(pictures))
    panels = canvas.subplots(1, len(pictures), squeeze=False).ravel()
    for letter, axes, (name, picture) in zip("abcdefgh", panels, pictures.items(), strict=False):
        axes.imshow(picture)
        axes.set(xticks=[], yticks=[], anchor="N")
        axes.grid(visible=False)
        for spine in axes.spines.values():
            spine.set_visible(True)
        axes.set_title(f"{letter}) {domain_title(name)}")
    return canvas


def cropped(name: str, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A picture without parts in which nothing ever happens."""
    height, width = picture.shape[:2]
    top, bottom, left, right = _SHOWN.get(name, (0.0, 1.0, 0.0, 1.0))
    return picture[int(top * height) : int(bottom * height), int(left * width) : int(right * width)]


def take_pictures() -> dict[str, NDArray[np.uint8]]:
    """A picture of every domain that can be drawn, by its environment."""
    import gymnasium

    pictures: dict[str, NDArray[np.uint8]] = {}
    for entry in domains.entries():
        if not entry.env_id or "rgb_array" not in gymnasium.make(entry.env_id).metadata["render_modes"]:
            continue
        env = gymnasium.make(entry.env_id, render_mode="rgb_array")
        env.action_space.seed(0)
        env.reset(seed=0)
        for _ in range(entry.horizon // _PART):
            _, _, terminated, truncated, _ = env.step(env.action_space.sample())
            if terminated or truncated:
                env.reset()
        pictures[entry.name] = cropped(entry.name, np.asarray(env.render()))
        env.close()
    return pictures
