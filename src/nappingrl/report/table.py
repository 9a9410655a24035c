"""The table of runs that `napping run` and `napping report` print, as rows of text."""

from collections.abc import Sequence
from dataclasses import dataclass

from nappingrl.errors import BadRunError
from nappingrl.report.alarms import AGENT
from nappingrl.report.best_control import best_control, find_frozen
from nappingrl.report.runs import Comparison, Run
from nappingrl.report.summary import Summary

HEAD = (
    "run", "trials", "before", "episode 0", "last 10", "solved", "failed", "alarms", "acted", "regions",
    "paired difference",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Result:
    """A run in numbers, and how it compares with its best control and with the frozen agent."""

    label: str
    summary: Summary
    best_control: Comparison | None = None
    """None: there is no control beside it."""
    over_frozen: Comparison | None = None
    """None: there is no frozen run beside it."""


def summarise_runs(runs: Sequence[Run]) -> list[Result]:
    """Every run in numbers, beside its best control and the frozen agent among these runs."""
    return [Result(run.label, run.summary(), *_comparisons(run, runs)) for run in runs]


def _comparisons(run: Run, runs: Sequence[Run]) -> tuple[Comparison | None, Comparison | None]:
    frozen = find_frozen(run, runs)
    try:
        return best_control(run, runs), None if frozen is None or frozen is run else run.compare(frozen)
    except BadRunError:  # partial runs without a trial in common
        return None, None


def runs_table(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """The runs as rows of text, under HEAD."""
    return [_row(result) for result in results]


def table_digits(return_range: tuple[float, float] | None) -> int:
    """Digits of a return in the table of runs."""
    return 1 if return_range is not None and return_range[1] - return_range[0] > 10 else 2


def _row(result: Result) -> tuple[str, ...]:
    s = result.summary
    digits = table_digits(s.return_range)
    return (
        result.label,
        str(s.trials * len(s.by_novelty)) + (f" ({s.diverged} diverged)" if s.diverged else ""),
        "-" if s.pre_mean is None else f"{s.pre_mean:.{digits}f}",
        f"{s.mean[0]:.{digits}f}",
        f"{s.last10_mean:.{digits}f}",
        "-" if s.solved is None else f"{s.solved:.0%}",
        "-" if s.failed is None else str(s.failed),
        _alarms(s),
        _acted(s),
        "-" if s.regions_mean is None else f"{s.regions_mean:.0f}",
        _difference(result, digits),
    )


def _alarms(s: Summary) -> str:
    """Detection rate, median delay and false alarms: "95% after 12 steps, 1 false"; the frozen agent heeds none."""
    if s.detector == "given":
        return "-" if s.method == "frozen" else "given"
    if s.false_alarms is None:
        return "-"
    rate = "none" if not s.detection_rate else f"{s.detection_rate:.0%}"
    delay = "" if s.detection_delay is None else f" after {s.detection_delay:.0f} steps"
    return f"{rate}{delay}" + (f", {s.false_alarms} false" if s.false_alarms else "")


def _acted(s: Summary) -> str:
    """In which share of the changed episodes something else than the frozen agent acted: "foresight 95%"."""
    total = sum(s.acted.values())
    return ", ".join(f"{name} {n / total:.0%}" for name, n in s.acted.items() if name != AGENT) or "-"


def _difference(result: Result, digits: int) -> str:
    """The last ten episodes minus those of the best control, else of the frozen agent, on the same draws."""
    if result.summary.role != "method":
        return result.summary.role
    compared = result.best_control or result.over_frozen
    return "no control or frozen run beside it" if compared is None else compared.describe(digits)
