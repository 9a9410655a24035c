"""Results of the games on a server: the tables of the original game, and our own records."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from nappingrl.domains.angrybirds.server.harness import Entry
from nappingrl.domains.angrybirds.server.protocol import Likelihood
from nappingrl.errors import BadRunError
from nappingrl.files import defuse

EVALUATION_FILE, LIKELIHOOD_FILE, DESCRIPTION_FILE = "EvaluationData.csv", "Likelihood.csv", "Description.csv"
_PLACE = ("trial", "levelName", "playStatus", "informed", "novelty")
COLUMNS = {
    EVALUATION_FILE: (
        "EvaluationIndex", "LevelIndex", "Score", "LevelStatus", "birdsRemaining", "pigsRemaining", "birdsAtStart",
        "pigsAtStart", *_PLACE,
    ),
    LIKELIHOOD_FILE: (
        "EvaluationIndex", "LevelIndex", "InteractionIndex", "HasNoveltyLikelihood", "NoNoveltyLikelihood",
        "novel object IDs", "novelty level", "novelty description", *_PLACE,
    ),
    DESCRIPTION_FILE: ("EvaluationIndex", "LevelIndex", "InteractionIndex", "novelty description"),
}  # fmt: skip
"""The first two are those of the original, which has no table of descriptions. EvaluationIndex counts rows from 1."""

PASS, FAIL, PLAYING = "Pass", "Fail", "Playing"
Cell = str | int | float


@dataclass(frozen=True, slots=True)
class Episode:
    """One level, from its entry until it is decided or left."""

    agent: int
    """Number of the game on this server, from 1."""
    agent_id: int
    """The id that the agent gives itself."""
    entry: Entry
    status: str
    """Pass, Fail, or Playing if it was left undecided."""
    score: int
    n_shots: int
    birds_left: int
    pigs_left: int
    n_birds: int
    n_pigs: int
    """At the start."""


class Results:
    """All games of a server: the first with results writes into the folder itself, the others into subfolders."""

    def __init__(self, out: Path | None) -> None:
        self._out = out
        self._n_folders = 0
        self._lock = Lock()
        if out is not None:
            _check_fresh(out)

    def journal(self) -> "Journal":
        """The journal of one more game."""
        return Journal(self)

    def take_folder(self) -> Path | None:
        """The folder of a game that has results."""
        if self._out is None:
            return None
        with self._lock:
            self._n_folders += 1
            return self._out if self._n_folders == 1 else self._out / f"agent-{self._n_folders}"


class Journal:
    """The results of one game, written at once.

    Attributes:
        episodes: All episodes so far.
    """

    def __init__(self, results: Results) -> None:
        self._results = results
        self._is_begun = False
        self._folder: Path | None = None
        self._n_rows: dict[str, int] = {}
        self.episodes: list[Episode] = []

    def add_episode(self, episode: Episode) -> None:
        """Add a level that was decided or left."""
        self.episodes.append(episode)
        entry = episode.entry
        row: list[Cell] = [entry.number, episode.score, episode.status]
        row += [episode.birds_left, episode.pigs_left, episode.n_birds, episode.n_pigs, *place_of(entry)]
        self._write(EVALUATION_FILE, row)

    def add_likelihood(self, index: tuple[int, int], report: Likelihood, place: tuple[str, ...]) -> None:
        """Add an agent's report on novelty."""
        ids = " ".join(map(str, report.objects))
        likelihoods = f"{report.novel:.7g}", f"{report.not_novel:.7g}"
        self._write(LIKELIHOOD_FILE, [*index, *likelihoods, ids, report.level, report.text, *place])

    def add_description(self, index: tuple[int, int], text: str) -> None:
        """Add an agent's description of a novelty."""
        self._write(DESCRIPTION_FILE, (*index, text))

    def _write(self, name: str, row: Iterable[Cell]) -> None:
        if not self._is_begun:
            self._is_begun = True
            self._folder = self._results.take_folder()
            for file in (EVALUATION_FILE, LIKELIHOOD_FILE):
                self._append(file, COLUMNS[file])
        if name == DESCRIPTION_FILE and self._folder is not None and not (self._folder / name).exists():
            self._append(name, COLUMNS[name])
        self._n_rows[name] = self._n_rows.get(name, 0) + 1
        self._append(name, (self._n_rows[name], *row))

    def _append(self, name: str, row: Iterable[Cell]) -> None:
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / name).open("a", encoding="utf-8", newline="") as file:
            cells = [defuse(cell) if isinstance(cell, str) else cell for cell in row]
            csv.writer(file, lineterminator="\n").writerow(cells)


def place_of(entry: Entry | None) -> tuple[str, ...]:
    """Trial, level, mode, informed and novelty in the terms of the original tables; empty outside a level."""
    if entry is None:
        return ("",) * len(_PLACE)
    informed = "informed" if entry.is_informed else "uninformed"
    return entry.trial, entry.source.name, entry.mode, informed, "novel" if entry.source.is_novel else "basic"


def _check_fresh(out: Path) -> None:
    if out.is_file():
        raise BadRunError(f"{out} is a file; --out takes a folder")
    if (out / EVALUATION_FILE).exists():
        raise BadRunError(f"{out} already holds {EVALUATION_FILE}; use another --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadRunError(f"{out} cannot be made a folder ({error.strerror}); use another --out") from error
