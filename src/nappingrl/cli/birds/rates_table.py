"""Pass rates as text, for commands that show runs whose returns are passed or not."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nappingrl.cli.console import print_table

if TYPE_CHECKING:
    from nappingrl.report.runs import Run


def find_rates(runs: "Sequence[Run]") -> dict[str, Any] | None:
    """The rates as plain values; None where the returns are not passed or not."""
    from nappingrl.report.pass_rates import has_rates, measure_gains, measure_rates, rates_json

    return rates_json(measure_rates(runs), measure_gains(runs)) if has_rates(runs) else None


def print_rates(runs: "Sequence[Run]") -> None:
    """Print the tables; nothing where the returns are not passed or not."""
    from nappingrl.report import pass_rates as rates

    if not rates.has_rates(runs):
        return
    measured, gains = rates.measure_rates(runs), rates.measure_gains(runs)
    print_table(rates.HEAD, rates.rates_table(measured, gains))
    if others := rates.gains_table(gains):
        print_table(rates.GAIN_HEAD, others)
    print(rates.WORDS)
