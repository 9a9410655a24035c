"""`napping report`."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tyro.conf import Positional

from nappingrl.cli import argv
from nappingrl.cli.birds.rates_table import find_rates, print_rates
from nappingrl.cli.console import print_table, warn_incomplete
from nappingrl.domains import find_domain
from nappingrl.errors import BadRunError, BadSpecError, NappingError, check_name
from nappingrl.explain import ReadableRule, summarise_principles
from nappingrl.methods.napping import Napping
from nappingrl.methods.napping.candidates import choice_names
from nappingrl.registry import methods
from nappingrl.report import figures, page
from nappingrl.report.best_control import Comparison, best_control
from nappingrl.report.page.rules import MAX_STORED, TrialRules, median_trial, read_table, stored_tables
from nappingrl.report.runs import Loaded, load_runs
from nappingrl.report.summary import is_rate, summarise
from nappingrl.trials.runner import replay
from nappingrl.trials.store import RunFolder, make_folder


@dataclass(frozen=True)
class Report:
    """Compare runs in a table, a picture and an HTML page.

    Example: napping report runs/cartpole-ppo-frozen-1 runs/cartpole-ppo-napping-1 --out report
    """

    runs: Positional[tuple[Path, ...]]
    """Folders of runs, all of one domain."""
    out: Path | None = None
    """Folder for curves.png and report.html. Default: the folder of the first run."""
    statistic: str = ""
    """Curve to draw, and to show first on the page: median or mean over trials.
    Default: median, or mean if returns are passes and failures."""
    trial: str = ""
    """Number or id of the trial whose rules the page shows, or none. Default: the trial with the median final level."""
    partial: bool = False
    """Accept unfinished runs and use their finished parts."""
    json: bool = False
    """Print a single machine-readable object."""

    def __call__(self) -> None:
        """Write the picture and the page, print the table."""
        if self.statistic:
            check_name("statistic", self.statistic, ("median", "mean"))
        if not self.runs:
            raise BadSpecError("no run given; give the --out folder of at least one run")
        page.plotly_script()
        runs = load_runs(list(self.runs), self.partial)
        compared = [(run.label, summarise(run.manifest, run.rows), _against(run, runs)) for run in runs]
        statistic = self.statistic or ("mean" if all(is_rate(*run.run) for run in runs) else "median")
        rules, why_no_rules = _find_rules(runs, self.trial)
        out = self.out or self.runs[0]
        make_folder(out)
        picture = figures.curves([run.run for run in runs], out / "curves.png", statistic)
        content = page.Content(runs, compared, statistic, argv.rebuild(replace(self, json=False)), rules, why_no_rules)
        opened = page.write(out / "report.html", content)
        warn_incomplete(runs)
        if self.json:
            by_run = {
                str(path): asdict(summary) | {"best_control": against and asdict(against)}
                for path, (_, summary, against) in zip(self.runs, compared, strict=True)
            }
            found = {"runs": by_run, "picture": str(picture), "page": str(opened)}
            rates = find_rates([run.run for run in runs])
            print(json.dumps(found if rates is None else found | {"rates": rates}))
            return
        print_table(page.HEAD, page.table(compared))
        print_rates([run.run for run in runs])
        print(f"picture: {picture}\nopen {opened} in a browser")


def _against(run: Loaded, runs: list[Loaded]) -> Comparison | None:
    """The run beside its best control; None where there is none, or partial runs have no trial in common."""
    try:
        return best_control(run.run, [other.run for other in runs])
    except BadRunError:
        return None


def _find_rules(runs: list[Loaded], trial: str) -> tuple[list[TrialRules], str]:
    """The rules of the chosen trial, then of those that `napping replay` has stored; or why there are none."""
    if trial == "none":
        return [], "not asked for (--trial none)"
    learners = [run for run in runs if _has_principles(run)]
    learners.sort(key=lambda run: run.manifest.role != "method")  # controls such as napping-no-memory come last
    if not learners:
        methods = ", ".join(dict.fromkeys(str(run.manifest.spec["method"]) for run in runs))
        if trial:
            raise BadSpecError(f"--trial {trial}: no run here has principles (methods: {methods}); give one of napping")
        return [], f"no run here has principles (methods: {methods})"
    first = learners[0]
    found, why = [], ""
    try:
        found = [_rules_of(first, trial or median_trial(first), is_default=not trial)]
    except NappingError as error:
        if trial:
            raise
        why = str(error)
    for run in learners:
        for name, file in list(stored_tables(run).items())[:MAX_STORED]:
            if name not in {one.trial for one in found if one.run == run.label}:
                rules = tuple(_read_rules(run, read_table(file)))
                found.append(TrialRules(run.label, name, f"Read from {file.parent.name}/{file.name}", rules))
    return found, why


def _rules_of(run: Loaded, trial: str, is_default: bool) -> TrialRules:
    """The rules of one trial: stored, or run again by the code of `napping replay`."""
    chosen = "The trial with the median final level of those with principles; " if is_default else ""
    trials = run.rows.select("number", "trial").unique(maintain_order=True).rows()
    ids = {str(number): name for number, name in reversed(trials)}  # of several novelties: the first, like `replay`
    if (file := stored_tables(run).get(name := ids.get(trial, trial))) is not None:
        origin = f"{chosen}read from {file.parent.name}/{file.name}, which napping replay wrote"
        return TrialRules(run.label, name, origin[:1].upper() + origin[1:], tuple(_read_rules(run, read_table(file))))
    again = replay(RunFolder.open(run.path), trial)
    same = "it gave the same rows as stored" if again.is_same else "IT GAVE OTHER ROWS THAN STORED"
    origin = f"{chosen}run again for this page: {same}"
    return TrialRules(run.label, again.id, origin[:1].upper() + origin[1:], tuple(_read_rules(run, again.table)))


def _read_rules(run: Loaded, table: dict[str, Any]) -> list[ReadableRule]:

    domain = find_domain(run.manifest.spec["domain"])
    return summarise_principles(table, domain.describe, choice_names(domain)) if table else []


def _has_principles(run: Loaded) -> bool:

    return issubclass(methods.get(run.manifest.spec["method"]), Napping)
