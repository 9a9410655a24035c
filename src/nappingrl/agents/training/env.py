"""Training in any gymnasium environment: an SB3 zip with a card beside it, resumable to the same bits."""

import json
from pathlib import Path
from typing import Any

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.utils import FloatSchedule, LinearSchedule

from nappingrl.agents import load
from nappingrl.agents.training import checkpoint
from nappingrl.agents.training.cards import card
from nappingrl.agents.training.learning import Learned, OnEvaluation, learn
from nappingrl.agents.zoo import MAX_BYTES
from nappingrl.errors import BadAgentError, BadSpecError
from nappingrl.files import UnusableFileError, make_folder, read_file
from nappingrl.files.lock import locked
from nappingrl.types import OnProgress

STATISTICS = "vecnormalize.pkl"
SOURCE = "trained by `napping train`; the best checkpoint of the evaluations during training, by mean return"


def train_env(
    recipe: dict[str, Any],
    file: Path,
    command: str,
    on_progress: OnProgress | None = None,
    on_evaluation: OnEvaluation | None = None,
    tensorboard: Path | None = None,
) -> dict[str, Any]:
    """Train by a recipe of `make_recipe`, write the agent (.zip) and its card (.json), and return the card.

    A training that was interrupted is resumed; one that is finished is not repeated.
    """
    about = _finished(file, recipe)
    if about is None:
        _make_folder(file.parent)
        with locked(file.parent, file.stem):
            about = _finished(file, recipe)  # by another process in the meantime?
            if about is None:
                about = _train(recipe, file, command, on_progress, on_evaluation, tensorboard)
    return about


def _train(
    recipe: dict[str, Any], file: Path, command: str, on_progress: OnProgress | None,
    on_evaluation: OnEvaluation | None, tensorboard: Path | None,
) -> dict[str, Any]:  # fmt: skip
    """Train and write, as the only process that writes this agent; returns the card."""
    folder = file.with_name(f"{file.stem}-training")
    _make_folder(folder)
    learned = learn(recipe, folder, on_progress, on_evaluation, tensorboard)
    about = card(learned.agent, recipe, file.stem, recipe["env"], file.name, SOURCE)
    about |= {"checkpoint_step": learned.step, "command": command}
    _write(learned, about, folder / file.name)
    for name in (f"{file.stem}/{STATISTICS}", f"{file.stem}.json", file.name):  # the zip last: then all is there
        if (folder / name).exists():
            target = file.parent / name
            target.parent.mkdir(exist_ok=True)
            (folder / name).replace(target)
    checkpoint.remove(folder)
    return about


def _make_folder(path: Path) -> None:
    try:
        make_folder(path)
    except UnusableFileError as error:
        raise BadSpecError(f"{path} cannot be written to: {error}; use another --out") from error


def _finished(file: Path, recipe: dict[str, Any]) -> dict[str, Any] | None:
    """The card, if this training has been finished; one line of complaint if the file is another agent."""
    if not file.exists():
        return None
    try:
        about = json.loads(read_file(file.with_suffix(".json"), MAX_BYTES))
        if about["recipe"] == json.loads(json.dumps(recipe)):
            assert isinstance(about, dict)
            return about
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass  # no card, or none of ours: not this training
    raise BadSpecError(f"'{file}' is another agent, or one without its card; choose another --out, or delete it")


def _write(learned: Learned, about: dict[str, Any], file: Path) -> None:
    """Write SB3's zip, its VecNormalize statistics where `load` finds them, and the card."""
    _show_schedules(learned.model, about["recipe"])
    learned.model.save(file)
    envs = learned.model.get_vec_normalize_env()
    if envs is not None:
        statistics = file.with_suffix("") / STATISTICS
        statistics.parent.mkdir(exist_ok=True)
        envs.save(str(statistics))
    about["loads"] = _loads(file, learned)
    file.with_suffix(".json").write_text(json.dumps(about, indent=2) + "\n", "utf-8")


def _show_schedules(model: BaseAlgorithm, recipe: dict[str, Any]) -> None:
    """Replace schedules by SB3's own class, whose numbers can be read in the zip."""
    for name, value in recipe["hyperparameters"].items():
        if isinstance(value, dict):
            schedule = FloatSchedule(LinearSchedule(value["from"], value["to"], 1.0))
            setattr(model, name, schedule)
            if name == "learning_rate":
                model.lr_schedule = schedule


def _loads(file: Path, learned: Learned) -> bool:
    """Whether the zip can be loaded as an agent; one with images or dictionaries needs SB3's own `load`."""
    try:
        agent = load(file)
    except BadAgentError:
        return False
    assert agent.sha256 == learned.agent.sha256, "the written agent is the evaluated one"
    return True
