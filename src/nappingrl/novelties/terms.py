"""The terms of a description beside a domain's own numbers: what each means, its limits, its entries."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isfinite

from nappingrl.errors import BadSpecError
from nappingrl.types import DomainSpec

OTHER = "other-env"
REMAP, OBS_REMAP, DROP = "action-remap", "obs-remap", "obs-drop"
TABLES = (REMAP, OBS_REMAP)
"""Terms whose entries make sense only together."""


@dataclass(frozen=True, slots=True)
class Term:
    """A kind of change beside the domain's numbers."""

    neutral: float
    """The value that changes nothing."""
    words: str
    """What the agent meets; {} is the value."""
    low: float = -inf
    high: float = inf
    is_whole: bool = False
    actions: str = ""
    """discrete or continuous: the actions it needs."""


TERMS: dict[str, Term] = {
    REMAP: Term(0.0, "action {entry} does what action {} did", low=0.0, is_whole=True, actions="discrete"),
    "action-delay": Term(0.0, "actions take effect {} steps late", low=0.0, high=1000.0, is_whole=True),
    "action-noise": Term(0.0, "{what} is random, or noisy, by a share of {}", low=0.0, high=1.0),
    "action-scale": Term(1.0, "{what} is multiplied by {}", actions="continuous"),
    "action-shift": Term(0.0, "{} is added to {what}", actions="continuous"),
    OBS_REMAP: Term(0.0, "observation {entry} shows what observation {} showed", low=0.0, is_whole=True),
    "obs-shift": Term(0.0, "{} is added to {where}"),
    "obs-scale": Term(1.0, "{where} is multiplied by {}"),
    "obs-noise": Term(0.0, "Gaussian noise of {} is added to {where}", low=0.0),
    "obs-quantise": Term(0.0, "{where} comes in steps of {}", low=0.0),
    DROP: Term(0.0, "{where} reads 0", low=0.0, high=1.0, is_whole=True),
    "reward-scale": Term(1.0, "rewards are multiplied by {}"),
    "reward-shift": Term(0.0, "{} is added to rewards"),
    OTHER: Term(0.0, "another environment takes its place", low=0.0, is_whole=True),
}


def split_name(flat: str) -> tuple[str, int | None]:
    """A name and its entry: ("AVAIL_TORQUE", 2) of "AVAIL_TORQUE[2]"."""
    name, _, rest = flat.partition("[")
    return name, int(rest[:-1]) if rest else None


def is_transform(flat: str) -> bool:
    """Whether a number changes actions, observations or rewards, not the environment itself."""
    name, _ = split_name(flat)
    return name in TERMS and name != OTHER


def transforms_of(values: Mapping[str, float]) -> dict[str, float]:
    """Those among flat numbers."""
    return {flat: value for flat, value in values.items() if is_transform(flat)}


def neutral_of(flat: str, domain: DomainSpec) -> float:
    """The value of one number before the novelty."""
    name, entry = split_name(flat)
    if name not in TERMS:
        return float(domain.constants[flat])
    return float(entry or 0) if name in TABLES else TERMS[name].neutral


def count_entries(name: str, domain: DomainSpec) -> int:
    """How many entries a term or an attribute has; 0: it is one number."""
    if name not in TERMS:
        return sum(flat.endswith("]") and split_name(flat)[0] == name for flat in domain.constants)
    if name.startswith("obs-"):
        return domain.observation_low.size
    if name == REMAP:
        return domain.n_actions
    return len(domain.action_low) if name in ("action-noise", "action-scale", "action-shift") else 0


def limits_of(flat: str, domain: DomainSpec) -> tuple[float, float, bool]:
    """The least and the greatest value of one number, and whether it is whole."""
    name, _ = split_name(flat)
    if name in TABLES:
        return 0.0, count_entries(name, domain) - 1.0, True
    if name in TERMS:
        return TERMS[name].low, TERMS[name].high, TERMS[name].is_whole
    is_flag = isinstance(domain.constants[flat], bool)
    return (0.0, 1.0, True) if is_flag else (-inf, inf, False)


def check_term(flat: str, domain: DomainSpec) -> None:
    """Raise in one line where a term makes no sense in this domain."""
    name, entry = split_name(flat)
    needs = TERMS[name].actions
    if needs and (needs == "discrete") != (domain.n_actions > 0):
        instead = "action-scale or action-shift" if needs == "discrete" else REMAP
        theirs = "continuous" if needs == "discrete" else "discrete"
        raise BadSpecError(f"{name} needs {needs} actions, but those of {domain.name} are {theirs}; use {instead}")
    ends = (*domain.action_low.ravel().tolist(), *domain.action_high.ravel().tolist())
    if name in ("action-noise", "action-scale", "action-shift") and not all(map(isfinite, ends)):
        raise BadSpecError(f"{name} needs actions with bounds, but those of {domain.name} have none")
    if name.startswith("obs-") and domain.observation_low.ndim != 1:
        raise BadSpecError(f"{name} needs observations that are one row of numbers, unlike those of {domain.name}")
    if domain.action_mask is not None and (name == REMAP or name.startswith("obs-")):
        raise BadSpecError(
            f"{name} cannot be changed in {domain.name}: observations tell which of its actions are valid"
        )
    n_entries = count_entries(name, domain)
    if entry is not None and entry >= n_entries:
        allowed = f"allowed: {name}[0] to {name}[{n_entries - 1}]" if n_entries else f"{name} has no entries"
        raise BadSpecError(f"{domain.name} has no {flat}; {allowed}")


def say(flat: str, span: tuple[float, float], domain: DomainSpec) -> str:
    """One number of a description in words."""
    name, entry = split_name(flat)
    amount = f"{span[0]:g}" if span[0] == span[1] else f"{span[0]:g} to {span[1]:g}"
    if name not in TERMS:
        return f"{flat} is {amount} instead of {float(domain.constants[flat]):g}"
    where = "the whole observation" if entry is None else f"observation {entry}"
    what = "each action" if entry is None else f"entry {entry} of each action"
    return TERMS[name].words.format(amount, entry=entry, where=where, what=what)
