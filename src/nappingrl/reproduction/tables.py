"""Tables of an evaluation in Markdown: what every agent earns with every method, and how long the stages took."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from nappingrl.report.looks import domain_title, method_look
from nappingrl.report.runs import Run
from nappingrl.reproduction.columns import COLUMNS, columns_of
from nappingrl.reproduction.evaluation import Stage
from nappingrl.reproduction.published import times_of
from nappingrl.reproduction.times import Times

ORDER = ("frozen", *COLUMNS, "finetune", "online", "controller", "oracle")
"""Columns of the results: methods, and the columns of claims between them."""


def markdown(table: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table; its first row is the head."""
    head, *rows = table
    lines = (head, ["---"] * len(head), *rows)
    return [f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |" for cells in lines]


def results_markdown(runs: Sequence[Run]) -> str:
    """For each domain: the mean return of the last ten episodes, by agent and method.

    In brackets behind a mean: trials that never reach the goal, where there are any. In the head: the trials of a
    method, for each agent.
    """
    lines = []
    for domain in dict.fromkeys(run.domain for run in runs):
        lines += [
            f"### {domain_title(domain)}",
            "",
            *markdown(_results([run for run in runs if run.domain == domain])),
            "",
        ]
    return "\n".join(lines)


def _results(runs: Sequence[Run]) -> Iterable[Sequence[str]]:
    found = {(str(run.spec["agent"]), kind): run for run in runs for kind in _kinds(run)}
    kinds = [kind for kind in ORDER if any(kind == of_run for _, of_run in found)]
    trials = {kind: sorted({run.n_trials for (_, of_run), run in found.items() if of_run == kind}) for kind in kinds}
    yield "agent", "before", *(f"{_title(kind)} ({', '.join(map(str, trials[kind]))})" for kind in kinds)
    for agent in dict.fromkeys(agent for agent, _ in found):
        cells = {kind: found[agent, kind].summary() for kind in kinds if (agent, kind) in found}
        before = cells["frozen"].pre_mean if "frozen" in cells else None
        texts = {
            kind: f"{cell.last10_mean:.2f}" + (f" ({cell.failed})" if cell.failed else "")
            for kind, cell in cells.items()
        }
        best = max((cells[kind].last10_mean for kind in COLUMNS if kind in cells), default=None)
        for kind in COLUMNS:
            if kind in cells and cells[kind].last10_mean == best:
                texts[kind] = f"**{texts[kind]}**"
        yield agent, "" if before is None else f"{before:.2f}", *(texts.get(kind, "") for kind in kinds)


def _kinds(run: Run) -> list[str]:
    """The columns of the table that a run fills."""
    return [run.method] if run.method in ORDER else columns_of(run.spec)


def _title(kind: str) -> str:
    column = f"{kind}: " if kind in COLUMNS else ""
    return f"{column}{method_look(COLUMNS[kind].method if kind in COLUMNS else kind)[0]}"


def costs_markdown(runs: Sequence[Run]) -> str:
    """CPU seconds by method and domain: a number for each agent, in the order of the head.

    -: unknown, or not run; left out at the end.
    """
    seconds: dict[tuple[str, str, str], float] = defaultdict(float)
    for run in runs:
        seconds[run.domain, _kind(run), str(run.spec["agent"])] += times_of(run).cpu
    agents = {domain: list(dict.fromkeys(agent for of, _, agent in seconds if of == domain)) for domain, *_ in seconds}
    table: list[tuple[str, ...]] = [("method", *(f"{domain} ({', '.join(names)})" for domain, names in agents.items()))]
    for kind in dict.fromkeys(kind for _, kind, _ in seconds):
        cells = []
        for domain, names in agents.items():
            spent = [seconds.get((domain, kind, agent), 0.0) for agent in names]
            known = [f"{value:.0f}" if value else "-" for value in spent]
            while known and known[-1] == "-":
                del known[-1]
            cells.append(", ".join(known))
        table.append((f"`{kind}`", *cells))
    totals = [sum(value for (of, *_), value in seconds.items() if of == domain) for domain in agents]
    table.append((f"**all: {sum(totals):.0f}**", *(f"{total:.0f}" for total in totals)))
    return "\n".join([*markdown(table), ""])


def _kind(run: Run) -> str:
    """The method; of a folder named as those of `napping paper`, with what tells variants of it apart."""
    named = run.name.removeprefix(f"{run.domain}-{run.spec['agent']}-")
    return named if named.startswith(run.method) else run.method


def times_table(
    stages: Sequence[Stage], expected: Mapping[str, float], times: Mapping[str, Times]
) -> list[tuple[str, ...]]:
    """The estimated and the measured seconds of each stage over all calls, and their sums, as a table with a head."""
    rows: list[tuple[str, ...]] = []
    measured = [times.get(stage.folder.name, Times()) for stage in stages]
    for stage, spent in zip(stages, measured, strict=True):
        seconds = (f"{spent.wall:.0f}", f"{spent.cpu:.0f}") if spent.wall else ("", "")
        rows.append((stage.label, str(stage.spec.n_trials), f"{expected[stage.folder.name]:.0f}", *seconds))
    totals = sum(expected.values()), sum(spent.wall for spent in measured), sum(spent.cpu for spent in measured)
    rows.append(("all", str(sum(stage.spec.n_trials for stage in stages)), *(f"{total:.0f}" for total in totals)))
    return [("stage", "trials", "estimated seconds", "measured", "CPU seconds"), *rows]
