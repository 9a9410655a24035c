"""Pass rates as text, for commands that look at runs whose returns say passed or not."""

from typing import TYPE_CHECKING, Any

from nappingrl.cli.console import print_table

if TYPE_CHECKING:
    from pathlib import Path

    from nappingrl.report.best_control import Run


def find_rates(runs: "list[Run]") -> dict[str, Any] | None:
    """The rates as plain values; None where the returns are no passes."""
    from nappingrl.report.pass_rates import measure_gains, measure_rates, rates_json

    return rates_json(measure_rates(runs), measure_gains(runs)) if _has_rates(runs) else None


def print_rates(runs: "list[Run]") -> None:
    """Print the tables; nothing where the returns are no passes."""
    from nappingrl.report import pass_rates as rates

    if not _has_rates(runs):
        return
    measured, gains = rates.measure_rates(runs), rates.measure_gains(runs)
    print_table(rates.HEAD, rates.rates_table(measured, gains))
    if others := rates.gains_table(gains):
        print_table(rates.GAIN_HEAD, others)
    print(rates.WORDS)


def write_markdown(runs: "list[Run]", path: "Path") -> None:
    """Write the tables as Markdown."""
    from nappingrl.report import pass_rates as rates

    path.write_text(rates.rates_markdown(rates.measure_rates(runs), rates.measure_gains(runs)), "utf-8")


def _has_rates(runs: "list[Run]") -> bool:
    from nappingrl.report.summary import is_rate

    return bool(runs) and all(is_rate(manifest, rows) for manifest, rows in runs)
