"""A method beside its controls: paired on the same trials, so that it cannot look better than it is."""

from dataclasses import dataclass

import polars as pl

from nappingrl.report.statistics import Interval, mean_t, pair
from nappingrl.report.summary import final_levels
from nappingrl.trials.store import Manifest

Run = tuple[Manifest, pl.DataFrame]
PAIRED = ("domain", "agent", "novelty", "seed", "strength", "detector", "protocol")
"""What two runs must share so that they met the same novelties under the same conditions."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A method's final level minus that of its best control, over the trials that both ran."""

    control: str
    difference: float
    interval: Interval | None
    """95 % of the mean paired difference; None with one trial only."""

    @property
    def is_better(self) -> bool:
        """Whether the whole interval is above zero."""
        return self.interval is not None and self.interval.low > 0

    def words(self, digits: int) -> str:
        """The verdict as a cell of a table."""
        if self.interval is None:
            return f"{self.difference:+.{digits}f} to {self.control} (one trial: no interval)"
        span = f"{self.interval.low:+.{digits}f} to {self.interval.high:+.{digits}f}"
        verdict = "better" if self.is_better else "NOT better"
        return f"{self.difference:+.{digits}f} ({span}), {verdict} than {self.control}"


def best_control(run: Run, runs: list[Run]) -> Comparison | None:
    """The control with the highest final level among the runs that can be paired with this one; None: there is none."""
    manifest, rows = run
    found = []
    for other, other_rows in runs:
        if other.role == "control" and all(other.spec[key] == manifest.spec[key] for key in PAIRED):
            levels = final_levels(other, other_rows)
            found.append((float(levels["level"].to_numpy().mean()), str(other.spec["method"]), levels))
    if not found:
        return None
    _, name, theirs = max(found, key=lambda entry: entry[0])
    difference = pair(final_levels(manifest, rows), theirs, "level").difference
    return Comparison(name, float(difference.mean()), mean_t(difference))
