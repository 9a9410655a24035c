"""Groundings in words."""

from nappingrl.methods.reground.maps import ContinuousMap, DiscreteMap, Grounding, SensorMap
from nappingrl.types import DomainSpec


def describe(grounding: Grounding, domain: DomainSpec) -> str:
    """The grounding in words; empty: nothing is translated."""
    words = [*_describe_sensors(grounding.sensors, domain)]
    if isinstance(grounding.actions, DiscreteMap):
        words += _describe_discrete(grounding.actions, domain)
    else:
        words += _describe_continuous(grounding.actions)
    if grounding.delay:
        words.append(f"actions take effect {grounding.delay} step{'s' if grounding.delay > 1 else ''} late")
    return "; ".join(words)


def _describe_discrete(actions: DiscreteMap, domain: DomainSpec) -> list[str]:
    words, labels = [], domain.action_labels
    for wanted, executed in enumerate(actions.instead.tolist()):
        is_swap = bool(actions.instead[executed] == wanted)
        if executed == wanted or (is_swap and executed < wanted):
            continue
        between = "<->" if is_swap else "instead of"
        pair = (wanted, executed) if is_swap else (executed, wanted)
        words.append(f"{labels[pair[0]]} {between} {labels[pair[1]]}")
    if not actions.is_permutation:
        changed = [(b, w) for b, w in enumerate(actions.acts_as.tolist()) if b != w]
        words += [f"{labels[b]} acts as {labels[w]}" for b, w in changed]
    return words


def _describe_continuous(actions: ContinuousMap) -> list[str]:
    words = []
    for j, (source, gain, offset) in enumerate(zip(actions.source, actions.gain, actions.offset, strict=True)):
        said = [f"acts from dimension {source}"] if source != j else []
        said += ["reversed"] if gain < 0 else []
        said += [f"gain {abs(gain):.2g}"] if abs(gain) != 1.0 else []
        said += [f"offset {offset:+.2g}"] if offset else []
        if said:
            words.append(f"action dimension {j}: {', '.join(said)}")
    return words


def _describe_sensors(sensors: SensorMap, domain: DomainSpec) -> list[str]:
    words = []
    for i, (source, gain, shift) in enumerate(zip(sensors.source, sensors.gain, sensors.shift, strict=True)):
        name = domain.observation_labels[i]
        if source != i and not (sensors.source[source] == i and i > source):
            is_swap = sensors.source[source] == i
            words.append(f"{name} {'<->' if is_swap else 'is read from'} {domain.observation_labels[source]}")
        if gain < 0:
            words.append(f"{name} is negated")
        if abs(gain) != 1.0:
            words.append(f"{name} is scaled by {abs(gain):.3g}")
        if shift:
            words.append(f"{name} is shifted by {shift:.3g}")
    return words
