"""Every figure and one page per domain, from the runs of an evaluation."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from nappingrl.cli.figure import Figure, take_pictures
from nappingrl.cli.report import Report

if TYPE_CHECKING:
    from nappingrl.trials.store import RunFolder

PAPER = ("frozen", "online", "finetune", "napping")
PAIR = ("frozen", "napping")
METHODS = {
    "cartpole-overall": PAPER, "cartpole-by-parameter": PAIR,
    "mountaincar-overall": PAPER, "mountaincar-by-value": PAIR, "mountaincar-map": PAIR,
    "crossroad-overall": PAPER, "crossroad-by-novelty": PAIR,
    "angrybirds-overall": PAIR, "angrybirds-by-novelty": PAIR, "angrybirds-agents": PAIR, "angrybirds-asymptotic": PAIR,
}  # fmt: skip
"""Which methods a figure shows: too many lines hide each other."""


def draw_all(folders: "list[RunFolder]", out: Path) -> list[str]:
    """Draw every figure that the runs allow into out/figures, write a page per domain, and name the files."""
    from nappingrl.report import figures
    from nappingrl.trials.store import make_folder

    place = out / "figures"
    make_folder(place)
    files = [figures.draw_strip(take_pictures(), place / "domains.png")]
    files.append(figures.draw_figure("method", [], place / "method.png"))
    for name, domain, methods in _wanted():
        chosen = [folder for folder in folders if _is(folder, domain, methods)]
        if chosen:
            runs = [(folder.manifest, folder.read()) for folder in chosen]
            path = place / (f"{name}.png" if name in METHODS else f"{domain}-{name}.png")
            files.append(figures.draw_figure(name, runs, path))
    for folder in folders:
        if _is(folder, folder.manifest.spec["domain"], ("napping",)):
            path = place / f"{folder.path.name}-embedding-map.png"
            Figure("embedding-map", (folder.path,), path)()
            files.append(path)
    for domain in dict.fromkeys(folder.manifest.spec["domain"] for folder in folders):
        paths = tuple(folder.path for folder in folders if folder.manifest.spec["domain"] == domain)
        Report(paths, out / domain, "median" if domain == "cartpole" else "mean")()
        files.append(out / domain / "report.html")
    return [str(file) for file in files]


def _wanted() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """(figure, domain, methods) of all figures that are made from rows."""
    from nappingrl.registry import domains

    for name, methods in METHODS.items():
        yield name, name.split("-")[0], methods
    for domain in domains.names():
        yield "regions-over-time", domain, ("napping",)
        yield "detection-delay", domain, ("frozen",)


def _is(folder: "RunFolder", domain: str, methods: tuple[str, ...]) -> bool:
    spec = folder.manifest.spec
    return bool(spec["domain"] == domain and spec["method"] in methods)
