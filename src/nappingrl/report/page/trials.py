"""Page section: the runs over their trials, beyond means."""

from collections.abc import Sequence

from nappingrl.report.aggregates import aggregate
from nappingrl.report.page.formats import Cell, Table, number, span_words
from nappingrl.report.runs import Run
from nappingrl.report.table import table_digits


def trials_table(runs: Sequence[Run]) -> Table:
    """IQM and probability of improvement of every run."""
    rows: list[list[Cell | str]] = []
    for run in runs:
        found, n = aggregate(run, runs), run.n_trials
        digits = table_digits(run.manifest.return_range)
        level = Cell(number(found.iqm, digits), (span_words(found.iqm_interval, digits, n),))
        better = Cell("-")
        if found.improvement is not None:
            better = Cell(number(found.improvement, 2), (span_words(found.improvement_interval, 2, n),))
        rows.append([run.label, level, better])
    return Table(
        "Typical trials, and how often adaptation helps", ("run", "IQM of the last 10", "better than frozen"), rows
    )
