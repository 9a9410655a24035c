"""One page a person can open: the table of the runs and their picture, in a single HTML file."""

import base64
import html
from pathlib import Path

from nappingrl.report.controls import Comparison
from nappingrl.report.summary import Summary

_STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse;width:100%}th,td{padding:.35rem .6rem;border-bottom:1px solid #ddd;text-align:right}
th:first-child,td:first-child{text-align:left}img{max-width:100%}code{background:#f3f3f3;padding:.1rem .3rem}"""

HEAD = ("run", "trials", "before", "episode 0", "last 10", "solved", "failed", "regions", "over its best control")

Compared = tuple[str, Summary, Comparison | None]
"""Label and summary of a run, and how it stands against its controls."""


def table(runs: list[Compared]) -> list[tuple[str, ...]]:
    """The runs as rows of text, under HEAD."""
    return [_row(*run) for run in runs]


def _row(label: str, s: Summary, against: Comparison | None) -> tuple[str, ...]:
    digits = 1 if s.return_range[1] - s.return_range[0] > 10 else 2
    return (
        label,
        str(s.trials * len(s.by_novelty)) + (f" ({s.diverged} diverged)" if s.diverged else ""),
        "-" if s.pre_mean is None else f"{s.pre_mean:.{digits}f}",
        f"{s.mean[0]:.{digits}f}",
        f"{s.last10_mean:.{digits}f}",
        f"{s.solved:.0%}",
        str(s.failed),
        f"{s.regions_mean:.0f}",
        _verdict(s, against, digits),
    )


def _verdict(s: Summary, against: Comparison | None, digits: int) -> str:
    if s.role != "method":
        return s.role
    if against is None:
        return "no control run beside it"
    return against.words(digits)


def write(path: Path, runs: list[Compared], picture: Path, commands: list[str]) -> Path:
    """Write the page; the picture is inside it, so the file can be moved and needs no network."""
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in HEAD)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in table(runs))
    image = base64.b64encode(picture.read_bytes()).decode()
    again = "".join(f"<li><code>{html.escape(command)}</code></li>" for command in commands if command)
    path.write_text(
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>nappingrl report</title>"
        f"<style>{_STYLE}</style></head><body><h1>nappingrl report</h1>"
        f"<p>Mean returns over trials: before the novelty, in the first episode after it, and in the last ten. "
        f"The last column is the paired difference of the last ten to the best control among these runs, with its 95 % "
        f"interval; a method that is not better than a control has shown nothing.</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"<p><img alt='return per post-novelty episode' src='data:image/png;base64,{image}'></p>"
        f"<h2>Run it again</h2><ul>{again}</ul></body></html>",
        encoding="utf-8",
    )
    return path
