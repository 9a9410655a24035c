"""Callbacks that watch an agent live: `agent.on_episode(TensorBoard("logs"))`, or any function of an `Episode`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nappingrl.errors import import_extra
from nappingrl.types import Rows

if TYPE_CHECKING:
    from nappingrl.agent import NappingAgent


@dataclass(frozen=True, slots=True)
class Episode:
    """An episode that just ended."""

    env: int
    """Which of the agent's environments."""
    number: int
    """Counted from 0, by environment."""
    total: float
    """Sum of the rewards."""
    length: int
    """Steps."""
    detected: bool
    """Whether the detector believes that the environment has changed."""
    context: str
    """Its name, such as "as trained" or "novelty 1"."""
    acting: str
    """What acts, such as the name of a method; empty: the frozen agent."""
    regions: int
    """Principles, or rules, learned so far."""

    def scalars(self) -> dict[str, float]:
        """Its numbers, as loggers take them."""
        return {
            "episode/return": self.total,
            "episode/length": float(self.length),
            "adaptation/detected": float(self.detected),
            "adaptation/acting": float(bool(self.acting)),
            "adaptation/regions": float(self.regions),
        }


OnEpisode = Callable[[Episode], None]


def ended_episodes(agent: "NappingAgent", rows: Rows) -> Iterator[Episode]:
    """The episodes that are ending in these environments."""
    adaptation = agent.adaptation
    regions, _ = agent.method.regions(rows)
    for row, n_regions in zip(rows.tolist(), regions.tolist(), strict=True):
        yield Episode(
            env=row,
            number=int(agent.episodes[row]),
            total=float(adaptation.returns[row]),
            length=agent.journal.steps(row),
            detected=bool(adaptation.contexts[row]),
            context=agent.names.of(int(adaptation.contexts[row])),
            acting=agent.method.acting(row),
            regions=n_regions,
        )


class TensorBoard:
    """Writes every episode to TensorBoard, one run of it per environment: `tensorboard --logdir FOLDER`.

    Needs the extra tensorboard.
    """

    def __init__(self, folder: str | Path) -> None:
        self._make = import_extra("tensorboard.summary", "the TensorBoard callback", "tensorboard").Writer
        self._folder = Path(folder)
        self._writers: dict[int, Any] = {}

    def __call__(self, episode: Episode) -> None:
        """Write the numbers of an episode."""
        if episode.env not in self._writers:
            self._writers[episode.env] = self._make(str(self._folder / f"env-{episode.env}"))
        writer = self._writers[episode.env]
        for name, value in episode.scalars().items():
            writer.add_scalar(name, value, episode.number)
        writer.flush()

    def close(self) -> None:
        """Finish the files."""
        for writer in self._writers.values():
            writer.close()


class WeightsAndBiases:
    """Logs every episode to a run of Weights & Biases: `WeightsAndBiases(wandb.init(project="mine"))`.

    `run` is anything with a method log(numbers); None starts a run. Needs the extra wandb only then.
    """

    def __init__(self, run: Any = None) -> None:
        self.run = run if run is not None else import_extra("wandb", "the W&B callback", "wandb").init()

    def __call__(self, episode: Episode) -> None:
        """Log the numbers of an episode."""
        prefix = f"env-{episode.env}/" if episode.env else ""
        numbers = {f"{prefix}{name}": value for name, value in episode.scalars().items()}
        self.run.log(numbers | {f"{prefix}episode/number": episode.number})
