"""An experiment: a run and its trials, as plain records."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np

from nappingrl.adaptation import AdaptationSpec
from nappingrl.agents.zoo import agent_names
from nappingrl.domains import find_domain
from nappingrl.errors import BadSpecError
from nappingrl.novelties.novelty import Novelty
from nappingrl.trials.protocol import RETURN, episode_counts, phases
from nappingrl.types import DomainSpec


@dataclass(frozen=True, slots=True)
class RunSpec:
    """One agent and one method in one domain. Empty names mean: the domain's default."""

    domain: str
    agent: str = ""
    method: str = "napping"
    novelty: str = ""
    """A name, "all" (trials of each) or "none" (nothing changes: a control)."""
    trials: int = 100
    seed: int = 0
    strength: float = 1.0
    score: str = ""
    detector: str = ""
    protocol: str = "paper"
    """"paper" = the paper's in this domain (40+40 episodes), any PRE+POST such as 10+40, LEAST..MOST+POST, or
    "return" = 40+40+40+40: before the novelty, after it, the original domain again, and the novelty again."""
    options: dict[str, Any] = field(default_factory=dict)
    """Options of the method, such as NAPPING's `rule` and `space`."""
    guard: bool = False
    """Whether the frozen agent takes over where adaptation does not pay."""

    def complete(self) -> "RunSpec":
        """Checked, with every default filled in."""
        domain = find_domain(self.domain)
        adaptation = self.adaptation.resolve(domain)
        agent = self.agent or domain.defaults.agent or next(iter(agent_names(self.domain)), "")
        full = replace(
            self,
            agent=agent,
            novelty=self.novelty or domain.defaults.novelty or "none",
            protocol={"paper": domain.defaults.protocol, "return": RETURN}.get(self.protocol, self.protocol),
            score=adaptation.score,
            detector=adaptation.detector,
            options=dict(adaptation.options),
        )
        if full.novelty not in ("all", "none"):
            full = replace(full, novelty=domain.novelty(full.novelty).name)
        if self.trials < 1:
            raise BadSpecError(f"{self.trials} trials asked for; at least 1 is needed")
        for name in full.novelty_names:
            (Novelty("none", {}) if name == "none" else domain.novelty(name)).check_strength(self.strength)
        if self.seed < 0:
            raise BadSpecError(f"seed {self.seed} is negative; allowed: 0, 1, 2, ...")
        phases(full.protocol)
        return full

    @property
    def adaptation(self) -> AdaptationSpec:
        """How the agent adapts."""
        return AdaptationSpec(self.method, self.score, self.detector, self.options, self.guard)

    @property
    def domain_spec(self) -> DomainSpec:
        """The domain, with the parameters that its novelties change."""
        return find_domain(self.domain).for_novelties(self.novelty_names)

    @property
    def novelty_names(self) -> list[str]:
        """The novelties of its trials."""
        return list(find_domain(self.domain).novelties) if self.novelty == "all" else [self.novelty]

    @property
    def n_trials(self) -> int:
        """Trials of all its novelties."""
        return len(self.novelty_names) * self.trials

    def trial_specs(self, start: int = 0, stop: int | None = None) -> list["TrialSpec"]:
        """The trials of the run in the order of its rows; all, or those of a slice."""
        names = self.novelty_names
        return [TrialSpec(self, names[i // self.trials], i % self.trials) for i in range(self.n_trials)[start:stop]]


@dataclass(frozen=True, slots=True)
class TrialSpec:
    """One trial; its id together with the run's options rebuilds it."""

    run: RunSpec
    novelty: str
    number: int

    @property
    def id(self) -> str:
        """domain/agent/method/novelty/seed/number-hash, the hash being that of all other options."""
        run = self.run
        agent = run.agent.replace("\\", "/").rsplit("/", 1)[-1]
        return f"{run.domain}/{agent}/{run.method}/{self.novelty}/{run.seed}/{self.number}-{options_hash(run)}"

    def stream(self, purpose: str) -> np.random.Generator:
        """A random stream per purpose, the same for every agent and method."""
        return np.random.Generator(np.random.Philox(key=self._key(purpose, 16)))

    def key(self, purpose: str) -> int:
        """A 64-bit key for streams that are drawn inside kernels."""
        return self._key(purpose, 8)

    def parameters(self) -> dict[str, float] | None:
        """The parameters after the novelty; None where nothing changes."""
        if self.novelty == "none":
            return None
        domain = self.run.domain_spec
        return domain.novelty(self.novelty).sample(self.stream("novelty"), domain.parameters, self.run.strength)

    def setting(self) -> Mapping[str, float] | None:
        """The parameters before the novelty, where they are not the defaults."""
        if self.novelty == "none":
            return None
        return self.run.domain_spec.novelty(self.novelty).setting or None

    def skipped(self) -> int:
        """How many of the first episodes before the novelty this trial skips."""
        least, most, _ = episode_counts(self.run.protocol)
        return 0 if least == most else most - int(self.stream("protocol").integers(least, most + 1))

    def _key(self, purpose: str, n_bytes: int) -> int:
        text = f"{self.run.domain}/{self.novelty}/{self.run.seed}/{self.number}/{purpose}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:n_bytes], "little")


def options_hash(run: RunSpec) -> str:
    """Eight letters that differ where any option of the run differs that the id does not name."""
    names = ("strength", "score", "detector", "protocol", "options", "guard")
    stated = {name: getattr(run, name) for name in names if getattr(run, name)}
    return hashlib.sha256(msgspec.json.encode(stated, order="sorted")).hexdigest()[:8]
