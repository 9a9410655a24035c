"""A method beside its controls: paired on the same trials, so that it cannot look better than it is."""

from collections.abc import Sequence

from nappingrl.report.runs import SAME_DRAWS, Comparison, Run

PAIRED = (*SAME_DRAWS, "novelty", "agent", "detector")
"""What two runs must share to have met the same novelties under the same conditions."""


def best_control(run: Run, runs: Sequence[Run]) -> Comparison | None:
    """The run against the control with the highest final level that can be paired with it; None: there is none."""
    controls = [
        other
        for other in runs
        if other.manifest.role == "control" and all(other.spec[key] == run.spec[key] for key in PAIRED)
    ]
    if not controls:
        return None
    return run.compare(max(controls, key=lambda control: float(control.levels["level"].to_numpy().mean())))


def find_frozen(run: Run, runs: Sequence[Run]) -> Run | None:
    """The frozen run of the same agent on the same draws; the detector does not matter to it."""
    keys = [key for key in PAIRED if key != "detector"]
    return next(
        (other for other in runs if other.method == "frozen" and all(other.spec[k] == run.spec[k] for k in keys)), None
    )
