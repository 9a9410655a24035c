"""What a visitor can change: parameters with their ranges, named novelties, and what has changed in words."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, isfinite

import numpy as np

from nappingrl.agents.zoo import agent_names, find_domain_options
from nappingrl.domains import find_domain
from nappingrl.domains.base import check_parameters
from nappingrl.domains.from_env import DrawnGymnasiumDomain, GymnasiumDomain, default_novelties
from nappingrl.domains.transformed import with_transforms
from nappingrl.errors import BadSpecError
from nappingrl.novelties.description import read_description
from nappingrl.novelties.novelty import Novelty
from nappingrl.novelties.terms import REMAP, TERMS, limits_of, neutral_of, say, split_name, transforms_of
from nappingrl.types import DomainSpec

LOG_RATIO = 20.0
"""A positive range whose ends differ by this factor gets a logarithmic slider."""
SWITCHES = {
    REMAP: ("reversed controls", "every action does what its opposite did"),
    "action-scale": ("reversed controls", "every action is multiplied by -1"),
    "obs-noise": ("noisy sensors", "noise of a tenth of each sensor's range"),
    "action-delay": ("late controls", "actions take effect some steps late"),
}
"""Terms that are shown as switches: name and explanation."""
MAX_SLIDERS = 40
MAX_SAID = 6
"""Changes that are said in words; of more, the first ones."""


@dataclass(frozen=True, slots=True)
class Slider:
    """One number of the world."""

    name: str
    trained: float
    low: float
    high: float
    paper: tuple[float, float] | None
    """The range of the domain's novelties; None: none of them changes it."""
    is_log: bool


@dataclass(frozen=True, slots=True)
class Switch:
    """A change that is on or off."""

    name: str
    title: str
    about: str
    values: Mapping[str, float]
    """The numbers that it sets."""


class World:
    """A domain as the playground uses it, and everything that can be changed in it."""

    def __init__(self, name: str, novelty: str = "", agent: str = "") -> None:
        """`novelty`: a description whose changes of actions and observations are to be possible too.

        `agent`: who plays, by name or path, in the domain with that agent's options; default: the domain's agent.
        """
        domain = find_domain(name)
        self.agent = agent or domain.defaults.agent or next(iter(agent_names(domain.name)), "")
        """The agent that plays; empty: none is named, and none is shipped."""
        self.plain = _with_constants(domain.with_options(find_domain_options(self.agent, domain.name)))
        """The domain without changes of actions and observations: what an oracle knows."""
        self._subject = replace(self.plain, constants=self.plain.parameters)
        self.switches = tuple(self._read_switches())
        flats = [flat for switch in self.switches for flat in switch.values]
        texts = [*(default_novelties(self._subject, self.plain.scale).values() if self.switches else ()), novelty]
        for text in texts:
            flats += read_description(text, self._subject).ranges if "=" in text else ()
        neutral = transforms_of({flat: neutral_of(flat, self._subject) for flat in flats})
        self.domain = with_transforms(self.plain, neutral)
        self._settings = {name for novelty in self.plain.novelties.values() for name in novelty.setting}
        """Parameters that select levels: no change of the world."""
        self.sliders = tuple(self._read_sliders())
        self.novelties: dict[str, Novelty] = dict(self.plain.novelties)
        self.is_live = self.plain.action_mask is None
        """Whether changes take effect within an episode; Angry Birds changes with the next level."""
        oracle = self.plain.make_oracle()
        self.has_oracle = oracle is not None and not oracle.plans_episodes
        """Whether it has an oracle that can keep up."""

    def _read_switches(self) -> list[Switch]:
        domain = self._subject
        if domain.action_mask is not None or domain.observation_low.ndim != 1:
            return []
        switches = []
        texts = {name: text for name, text in default_novelties(domain, domain.scale).items() if name in SWITCHES}
        for name, text in texts.items():
            ranges = read_description(text, domain).ranges
            values = {
                flat: float(round((low + high) / 2)) if low != high else low for flat, (low, high) in ranges.items()
            }
            changed = {flat: value for flat, value in values.items() if value != neutral_of(flat, domain)}
            switches.append(Switch(name, *SWITCHES[name], changed))
        return switches

    def _read_sliders(self) -> list[Slider]:
        sliders = []
        for name, trained in list(self.plain.parameters.items())[:MAX_SLIDERS]:
            if name in self._settings:
                continue
            spans = [novelty.ranges[name] for novelty in self.plain.novelties.values() if name in novelty.ranges]
            paper = (min(low for low, _ in spans), max(high for _, high in spans)) if spans else None
            low, high = _widened(*paper) if paper else _guess_range(float(trained))
            low, high = min(low, float(trained)), max(high, float(trained))
            is_log = low > 0 and high / low >= LOG_RATIO
            sliders.append(Slider(name, float(trained), low, high, paper, is_log))
        return sliders

    def check(self, changes: Mapping[str, float]) -> dict[str, float]:
        """The numbers that differ from the trained ones; raise in one line where one makes no sense."""
        trained = self.domain.parameters
        checked = {name: float(value) for name, value in check_parameters(self.domain, changes).items()}
        for name, value in checked.items():
            if split_name(name)[0] in TERMS:
                low, high, is_whole = limits_of(name, self._subject)
                if not low <= value <= high or (is_whole and not value.is_integer()):
                    raise BadSpecError(f"{name}={value:g} is outside its range, {low:g} to {high:g}")
        return {name: value for name, value in checked.items() if value != trained[name]}

    def draw(self, name: str, rng: np.random.Generator) -> dict[str, float]:
        """The numbers that a draw of a novelty changes; an empty name: the domain's default one."""
        if "=" in name:
            description = read_description(name, self._subject)
            novelty = Novelty(name, description.ranges, whole=description.whole(self._subject))
        else:
            novelty = self.plain.novelty(name or self.plain.defaults.novelty)
        if any(flat not in self.domain.parameters for flat in novelty.ranges):
            raise BadSpecError(f"novelty '{novelty.name}' cannot be applied in the playground; use napping run")
        sampled = novelty.sample(rng, self.domain.parameters)
        return self.check({flat: _short(value) for flat, value in sampled.items()})

    def describe(self, changes: Mapping[str, float]) -> str:
        """What differs from the world that the agent was trained in, in words."""
        said = []
        for flat, value in changes.items():
            name, entry = split_name(flat)
            if name in self._settings:
                continue
            if entry is not None and name in SWITCHES:
                said.append(": ".join(SWITCHES[name]))
            else:
                said.append(say(flat, (value, value), self._subject).replace("_", " "))
        said = list(dict.fromkeys(said))
        if len(said) > MAX_SAID:
            said = [*said[: MAX_SAID - 1], f"and {len(said) - MAX_SAID + 1} more"]
        return "; ".join(said) or "as trained"

    def text(self, changes: Mapping[str, float]) -> str:
        """The changes as `--novelty` takes them."""
        terms = {flat: f"{flat}={value:.12g}" for flat, value in changes.items() if split_name(flat)[0] != REMAP}
        remapped = {flat for flat in changes if split_name(flat)[0] == REMAP}
        table = [changes.get(f"{REMAP}[{i}]", float(i)) for i in range(self.domain.n_actions)]
        own = [f"{REMAP}={','.join(f'{value:g}' for value in table)}"] if remapped else []
        return ";".join([*terms.values(), *own]) or "none"


def _with_constants(domain: DomainSpec) -> DomainSpec:
    """An environment of gymnasium with all its constants as parameters, and pictures.

    Without its flags: they choose between worlds when an environment is made, and break one that runs.
    """
    if domain.simulator is not GymnasiumDomain:
        return domain
    numbers = {name: value for name, value in domain.constants.items() if not isinstance(value, bool)}
    constants = {name: float(value) for name, value in numbers.items() if isfinite(float(value))}
    return replace(domain, parameters=constants, simulator=DrawnGymnasiumDomain)


def _widened(low: float, high: float) -> tuple[float, float]:
    """A little more than the paper's range, so that it can be seen; a single value (full strength) is the end."""
    if low == high:
        return low, high
    if low > 0:
        return low / 1.5, high * 1.5
    room = 0.15 * (high - low)
    return low - room, high + room


def _guess_range(trained: float) -> tuple[float, float]:
    """From a fifth to five times; a strength or a switch that is 0, up to 1."""
    if trained == 0:
        return 0.0, 1.0
    low, high = sorted((trained / 5, trained * 5))
    return low, high


def _short(value: float) -> float:
    """Four digits: what the page shows is what holds."""
    return float(f"{value:.4g}") if abs(value) < inf else value
