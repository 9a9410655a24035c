"""Trials that external agents play over the Science Birds protocol: which levels, and the results as run folders."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from nappingrl.domains.angrybirds.domain import AngryBirds
from nappingrl.domains.angrybirds.levels.draw import templates_for
from nappingrl.domains.angrybirds.levels.templates import LEVELS, make_level
from nappingrl.domains.angrybirds.server.results import PASS, Episode
from nappingrl.domains.angrybirds.server.trial_plan import LevelSet, Source, Trial
from nappingrl.trials.manifest import make_manifest
from nappingrl.trials.protocol import NOVEL, PRE
from nappingrl.trials.spec import RunSpec, TrialSpec
from nappingrl.trials.store import RunFolder

METHOD = "frozen"
NOTE = "played over the Science Birds protocol: no method adapts the agent; it may adapt itself"

Key = tuple[int, int, int]
"""Agent id, levels before the novelty, novel levels."""
Played = list[Episode]
"""The levels of one trial, in the order of play."""


def external_trial(
    novelty: str, n_before: int, n_novel: int, seed: int, number: int, is_informed: bool = False
) -> Trial:
    """The trial of `napping run angrybirds` with this novelty, seed, number and protocol: level by level the same."""
    spec = TrialSpec(RunSpec("angrybirds", seed=seed), novelty or "none", number)
    templates = templates_for(novelty)
    sources = []
    for i, (which, place) in enumerate(
        spec.stream("reset").random((n_before + n_novel, AngryBirds.spec.n_reset_draws))
    ):
        level = make_level(templates[int(which * len(templates))], int(place * LEVELS))
        sources.append(Source(level.name, level, i >= n_before))
    return Trial(str(number), LevelSet(tuple(sources)), is_informed=is_informed)


def write_runs(out: Path, episodes: Sequence[Episode], novelty: str, seed: int, command: str) -> list[Path]:
    """Write one run per agent and trial length: out/run for the one with most trials, then out/run-2, ...

    A trial that the agent left early counts as a shorter one. A trial without novel levels has novelty "none".
    """
    runs: dict[Key, list[Played]] = defaultdict(list)
    for trial in _trials(episodes):
        n_novel = sum(episode.entry.source.is_novel for episode in trial)
        runs[trial[0].agent_id, len(trial) - n_novel, n_novel].append(trial)
    largest_first = sorted(runs, key=lambda key: (-len(runs[key]), -key[1] - key[2], key))
    paths = []
    for i, key in enumerate(largest_first, 1):
        path = out / ("run" if i == 1 else f"run-{i}")
        spec = _spec(key, len(runs[key]), novelty, seed)
        folder = RunFolder.create(
            path, replace(make_manifest(spec, "", command, spec.trials), role="baseline", notes=[NOTE])
        )
        folder.write(0, pl.concat([_rows(spec, number, trial) for number, trial in enumerate(runs[key])]))
        paths.append(path)
    return paths


def _trials(episodes: Sequence[Episode]) -> list[Played]:
    """Group episodes by game and trial."""
    trials: dict[tuple[int, int], Played] = defaultdict(list)
    for episode in episodes:
        trials[episode.agent, episode.entry.evaluation].append(episode)
    return [trials[key] for key in sorted(trials)]


def _spec(key: Key, n_trials: int, novelty: str, seed: int) -> RunSpec:
    agent_id, n_before, n_novel = key
    protocol = f"{n_before}+{n_novel}" if n_novel else f"0+{n_before}"
    return RunSpec(
        domain="angrybirds",
        agent=f"agent-{agent_id}",
        method=METHOD,
        novelty=novelty if n_novel else "none",
        trials=n_trials,
        seed=seed,
        detector="never",
        protocol=protocol,
    )


def _rows(spec: RunSpec, number: int, trial: Played) -> pl.DataFrame:
    """The rows that the engine would write, plus the level, its score and its outcome."""
    novel = [episode for episode in trial if episode.entry.source.is_novel]
    before = [episode for episode in trial if not episode.entry.source.is_novel]
    ordered, first = (before + novel, -len(before)) if novel else (before, 0)
    n, is_won = len(ordered), [episode.status == PASS for episode in ordered]
    numbers = pl.arange(first, first + n, dtype=pl.Int32, eager=True)
    game = f"{trial[0].agent}.{trial[0].entry.evaluation}"
    return pl.DataFrame(
        {
            "trial": [f"{spec.domain}/{spec.agent}/{spec.method}/{spec.novelty}/{spec.seed}/{number}-game-{game}"] * n,
            "novelty": [spec.novelty] * n,
            "number": pl.Series([number] * n, dtype=pl.Int32),
            "phase": [PRE if episode < 0 else NOVEL for episode in numbers],
            "episode": numbers,
            "return": [float(won) for won in is_won],
            "length": pl.Series([episode.n_shots for episode in ordered], dtype=pl.Int32),
            "won": is_won,
            "detected": [False] * n,
            "detected_step": pl.Series([None] * n, dtype=pl.Int32),
            "regions": pl.Series([0] * n, dtype=pl.Int32),
            "open_regions": pl.Series([0] * n, dtype=pl.Int32),
            "status": ["ok"] * n,
            "level": [episode.entry.source.name for episode in ordered],
            "score": [episode.score for episode in ordered],
            "outcome": [episode.status for episode in ordered],
        }
    )
