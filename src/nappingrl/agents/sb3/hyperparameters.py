"""What SB3's zips and live models tell of their training, by SB3's names; a schedule is {"from": a, "to": b}.

Pickles are never loaded: where a number is only in one, the list of its opcodes is searched for it.
"""

import base64
import pickletools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SCHEDULES = ("learning_rate", "clip_range", "clip_range_vf")
_MAX_BYTES = 1 << 26


def plain_numbers(data: Mapping[str, Any]) -> dict[str, Any]:
    """The public entries that are plain numbers: gamma, batch_size, n_steps, a constant learning rate, ..."""
    return {key: value for key, value in data.items() if isinstance(value, int | float) and not key.startswith("_")}


def of_zip(data: Mapping[str, Any], normaliser: Path | None) -> dict[str, Any]:
    """Of the `data` of a zip and the vecnormalize.pkl beside it; "unreadable" names what only a pickle tells."""
    read: dict[str, Any] = {"train_freq": _train_freq(data.get("train_freq"))}
    for name in SCHEDULES:
        value = data.get(name)
        told = value if isinstance(value, dict) else {}
        # SB3's LinearSchedule shows its numbers as fields, or as text inside a FloatSchedule.
        text = f"start={told.get('start')} end={told.get('end')} {told.get('value_schedule')}"
        read[name] = _schedule(text)
    unreadable = [name for name, value in read.items() if value is None and isinstance(data.get(name), dict)]
    known = plain_numbers(data) | {name: value for name, value in read.items() if value is not None}
    known |= {"unreadable": unreadable} if unreadable else {}
    return known if normaliser is None else known | {"normalise": _scales_rewards(normaliser)}


def of_model(model: Any) -> dict[str, Any]:
    """Of a live model."""
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
    found = dict(re.findall(r"\b(val|start|end)=(\d[\d.]{0,30}(?:e-?\d{1,3})?)", text[:500]))
    if "val" in found:
        return float(found["val"])
    return {"from": float(found["start"]), "to": float(found["end"])} if {"start", "end"} <= set(found) else None


def _train_freq(value: Any) -> int | None:
    """The steps between updates: the only number in the pickle of a TrainFreq that counts steps."""
    text = value.get(":serialized:") if isinstance(value, dict) else None
    codes = _opcodes(text) if isinstance(text, str) and len(text) < 2000 else []
    numbers = [arg for name, arg in codes if name.startswith("BININT")]
    return int(numbers[0]) if len(numbers) == 1 and "step" in [arg for _, arg in codes] else None


def _scales_rewards(path: Path) -> bool:
    """Whether a VecNormalize pickle says norm_reward=True, its default."""
    codes = _opcodes(path.read_bytes()) if path.is_file() and path.stat().st_size <= _MAX_BYTES else []
    at = next((i for i, (_, arg) in enumerate(codes) if arg == "norm_reward"), len(codes))
    flags = [name for name, _ in codes[at : at + 4] if name in ("NEWTRUE", "NEWFALSE")]
    return flags[:1] != ["NEWFALSE"]


def _opcodes(pickled: bytes | str) -> list[tuple[str, Any]]:
    """Names and arguments of the opcodes of a pickle, or of one in base64; none of a damaged one."""
    try:
        pickled = base64.b64decode(pickled) if isinstance(pickled, str) else pickled
        return [(code.name, arg) for code, arg, _ in pickletools.genops(pickled)]
    except Exception:  # a damaged pickle can raise anything
        return []
