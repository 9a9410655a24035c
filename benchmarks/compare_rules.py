"""Every rule, space and score on the same draws: prints the tables of docs/results.md.

python benchmarks/compare_rules.py cartpole --trials 300 --seed 11
python benchmarks/compare_rules.py cartpole --scores-of-every-domain --trials 100 --seed 11
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nappingrl.agents import load, zoo_names
from nappingrl.domains import find_domain
from nappingrl.methods.napping.rules import RULES
from nappingrl.methods.napping.space import SPACES
from nappingrl.methods.scores import GENERAL_SCORES
from nappingrl.registry import domains
from nappingrl.report.runs import read_run
from nappingrl.report.summary import Summary
from nappingrl.report.table import table_digits
from nappingrl.trials.runner import run_into, why_not
from nappingrl.trials.spec import RunSpec
from nappingrl.trials.workers import default_workers
from nappingrl.types import DomainSpec


def settings(domain: DomainSpec) -> Iterator[dict[str, Any]]:
    """Frozen; every rule in every space with the default score; every other score with the defaults."""
    yield {"method": "frozen"}
    for rule in RULES:
        for space in SPACES:
            yield {"method": "napping", "options": {"rule": rule, "space": space}}
    for score in domain.scores:
        if score != domain.defaults.score:
            yield {"method": "napping", "score": score}


def general_settings() -> Iterator[dict[str, Any]]:
    """Frozen; the defaults, also with a calibrated threshold; every score that all domains have."""
    yield {"method": "frozen"}
    yield {"method": "napping"}
    yield {"method": "napping", "options": {"threshold": "auto"}}
    for score in GENERAL_SCORES:
        yield {"method": "napping", "score": score}


def row(summary: Summary, spec: RunSpec) -> str:
    """One line of the table."""
    reached = [i for i, value in enumerate(summary.median) if value >= 200.0]
    first = str(reached[0]) if reached else "never"
    what = "-" if spec.method != "napping" else f"{spec.options['rule']}, {spec.options['space']}, {spec.score}"
    what += ", threshold auto" if spec.options.get("threshold") == "auto" else ""
    digits = table_digits(summary.return_range)
    cells = [
        spec.agent,
        spec.method,
        what,
        f"{summary.last10_mean:.{digits}f}",
        f"{summary.solved:.2f}",
        str(summary.failed),
    ]
    if spec.domain == "cartpole":
        cells.append(first)
    return "| " + " | ".join([*cells, f"{summary.regions_mean:.0f}"]) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("domain", choices=domains.names())
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--novelty", default="")
    parser.add_argument("--agents", nargs="+", help="default: all shipped agents of the domain")
    parser.add_argument("--scores-of-every-domain", action="store_true", help="compare those instead of rules")
    parser.add_argument("--out", type=Path, default=Path("runs/compare"))
    arguments = parser.parse_args()
    domain: DomainSpec = find_domain(arguments.domain)
    head = ["agent", "method", "rule, space, score", "last 10", "solved", "failed"]
    head += ["median 200 at"] if arguments.domain == "cartpole" else []
    head.append("regions")
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head), flush=True)
    names = arguments.agents or zoo_names(arguments.domain)
    compared = list(general_settings() if arguments.scores_of_every_domain else settings(domain))
    wanted = [(name, setting) for name in names for setting in compared]
    for name, setting in [*wanted, (names[0], {"method": "oracle"})]:
        spec = RunSpec(
            arguments.domain,
            name,
            trials=arguments.trials,
            seed=arguments.seed,
            novelty=arguments.novelty,
            **setting,
        ).complete()
        if reason := why_not(spec):
            print(f"{name} {setting}: {reason}", file=sys.stderr)
            continue
        words = [
            word for value in setting.values() for word in (value.values() if isinstance(value, dict) else [value])
        ]
        folder = arguments.out / "-".join([arguments.domain, name, *words])
        run_into(folder, spec, load(name, arguments.domain), default_workers())
        print(row(read_run(folder).summary(), spec), flush=True)


if __name__ == "__main__":
    main()
