"""The outcome of the runs of one domain in one sentence."""

from collections.abc import Sequence

import numpy as np

from nappingrl.report.looks import Look, domain_title, looks
from nappingrl.report.metrics import performance
from nappingrl.report.runs import Run
from nappingrl.report.summary import LAST, span_of
from nappingrl.types import Floats


def verdict(runs: Sequence[Run]) -> str:
    """How each method ends: as a share of the oracle, else of the level before the novelty, else as a return.

    Several agents count alike; shares are of performance, which is 0 at the lowest return and 1 at the highest.
    """
    span = span_of(runs[0].manifest, *(run.rows for run in runs))
    shown = looks(runs)
    levels = {run.label: float(run.levels["level"].to_numpy().mean()) for run in runs}
    reference, of_what = _reference(runs, levels, span)
    ends, controls = (_ends(runs, shown, levels, is_control) for is_control in (False, True))
    agents = len({look.agent for look in shown})
    where = f"{domain_title(runs[0].domain)}, {agents} agent{'s' * (agents != 1)}, last {LAST} episodes"

    def told(values: Sequence[float]) -> str:
        if reference is None:
            return f"{np.mean(values):.3g}"
        return f"{_performances(values, span).mean() / reference:.0%}"

    words = [f"{name} at {told(values)}" for name, values in ends]
    if words:
        words[0] = words[0].replace(" at ", " ends at ", 1) + of_what
    control = f"; the best control, {controls[0][0]}, at {told(controls[0][1])}" if controls else ""
    return f"{where}: {', '.join(words) or 'no method'}{control}."


def _reference(runs: Sequence[Run], levels: dict[str, float], span: tuple[float, float]) -> tuple[float | None, str]:
    """The performance that counts as 100 %, and its name."""
    oracles = [levels[run.label] for run in runs if run.manifest.role == "oracle"]
    before = [run.summary().pre_mean for run in runs]
    known = [value for value in before if value is not None]
    for values, name in ((oracles, " of the oracle"), (known, " of the level before the novelty")):
        if values and (reference := float(_performances(values, span).mean())) > 0:
            return reference, name
    return None, ""


def _ends(
    runs: Sequence[Run], shown: Sequence[Look], levels: dict[str, float], is_control: bool
) -> list[tuple[str, list[float]]]:
    """The final levels of each method, baseline and scripted agent, or of each control, by its title; best first."""
    groups: dict[str, list[float]] = {}
    for run, look in zip(runs, shown, strict=True):
        if look.role != "oracle" and is_control == (look.role == "control"):
            groups.setdefault(look.variant, []).append(levels[run.label])
    return sorted(groups.items(), key=lambda pair: -float(np.mean(pair[1])))


def _performances(values: Sequence[float], span: tuple[float, float]) -> Floats:
    return performance(np.asarray(values), span)
