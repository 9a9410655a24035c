"""Hyperparameters of SB3's zips and live models, by SB3's names; a schedule is {"from": a, "to": b}.

Pickles are never loaded. Numbers that are only in a pickle are searched in the list of its opcodes.
"""

import base64
import io
import re
from collections.abc import Mapping
from typing import Any

from nappingrl.agents.sb3.inert import opcodes
from nappingrl.errors import BadAgentError

SCHEDULES = ("learning_rate", "clip_range", "clip_range_vf")
MAX_TEXT = 2000
"""Longer pickles are not looked into."""


def plain_numbers(data: Mapping[str, Any]) -> dict[str, Any]:
    """The public entries that are numbers: gamma, batch_size, n_steps, a constant learning rate, ..."""
    return {key: value for key, value in data.items() if isinstance(value, int | float) and not key.startswith("_")}


def of_zip(data: Mapping[str, Any], scales_rewards: bool | None) -> dict[str, Any]:
    """The hyperparameters in the `data` of a zip; "unreadable" names those that are only in a pickle.

    `scales_rewards`: whether its VecNormalize scales rewards; None if it has no VecNormalize.
    """
    parsed: dict[str, Any] = {"train_freq": _train_freq(data.get("train_freq"))}
    for name in SCHEDULES:
        value = data.get(name)
        fields = value if isinstance(value, dict) else {}
        # SB3's LinearSchedule shows its numbers as fields, or as text inside a FloatSchedule.
        text = f"start={fields.get('start')} end={fields.get('end')} {fields.get('value_schedule')}"
        parsed[name] = _schedule(text)
    known = plain_numbers(data) | {name: value for name, value in parsed.items() if value is not None}
    unreadable = [name for name, value in parsed.items() if value is None and isinstance(data.get(name), dict)]
    if unreadable:
        known["unreadable"] = unreadable
    if scales_rewards is not None:
        known["normalise"] = scales_rewards
    return known


def of_model(model: Any) -> dict[str, Any]:
    """The hyperparameters of a live model."""
    known = plain_numbers(vars(model))
    train_freq = getattr(model, "train_freq", None)
    if isinstance(train_freq, tuple) and str(getattr(train_freq[1], "value", train_freq[1])) == "step":
        known["train_freq"] = int(train_freq[0])
    for name in SCHEDULES:
        schedule = getattr(model, name, None)
        if callable(schedule):
            first, last = float(schedule(1.0)), float(schedule(0.0))
            known[name] = first if first == last else {"from": first, "to": last}
    envs = model.get_vec_normalize_env() if hasattr(model, "get_vec_normalize_env") else None
    return known if envs is None else known | {"normalise": bool(envs.norm_reward)}


def _schedule(text: str) -> float | dict[str, float] | None:
    """The number of "ConstantSchedule(val=.2)"; the ends of "LinearSchedule(start=.2, end=0, ...)"."""
    numbers = dict(re.findall(r"\b(val|start|end)=(\d[\d.]{0,30}(?:e-?\d{1,3})?)", text[:500]))
    if "val" in numbers:
        return float(numbers["val"])
    if "start" in numbers and "end" in numbers:
        return {"from": float(numbers["start"]), "to": float(numbers["end"])}
    return None


def _train_freq(value: Any) -> int | None:
    """Steps between updates, if a pickled TrainFreq counts steps: the only number in it."""
    text = value.get(":serialized:") if isinstance(value, dict) else None
    codes = _opcodes(text) if isinstance(text, str) and len(text) < MAX_TEXT else []
    numbers = [arg for name, arg in codes if name.startswith("BININT")]
    return int(numbers[0]) if len(numbers) == 1 and "step" in [arg for _, arg in codes] else None


def _opcodes(pickled: str) -> list[tuple[str, Any]]:
    """Names and arguments of the opcodes in a pickle as base64 text; empty if it is damaged."""
    try:
        return list(opcodes(io.BytesIO(base64.b64decode(pickled)), MAX_TEXT))
    except (BadAgentError, ValueError):
        return []
