"""An experiment: a run and its trials, as plain records."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from nappingrl.adaptation import AdaptationSpec
from nappingrl.agents.zoo import agent_names, find_domain_options
from nappingrl.domains import find_domain, imports_module
from nappingrl.errors import BadSpecError, check_whole
from nappingrl.novelties.novelty import Novelty
from nappingrl.options import read_values
from nappingrl.trials.limits import MAX_SEED, MAX_TEXT, MAX_TRIALS
from nappingrl.trials.protocol import RETURN, episode_counts, phases
from nappingrl.trials.spec_record import RunRecord, Text
from nappingrl.types import DomainSpec

_NUMBER = re.compile("0|[1-9][0-9]{0,17}")


@dataclass(frozen=True, slots=True)
class RunSpec(RunRecord):
    """A run that can be completed, and split into trials."""

    def complete(self) -> "RunSpec":
        """Checked, with every default filled in."""
        for name in ("domain", "agent", "method", "novelty", "score", "detector", "protocol"):
            _check_text(name, getattr(self, name))
        trials = check_whole("trials", self.trials, 1, MAX_TRIALS)
        seed = check_whole("seed", self.seed, 0, MAX_SEED)
        phases(self.protocol)
        domain = find_domain(self.domain, self.domain_options)
        method = self.method or domain.defaults.method
        adaptation = replace(self.adaptation, method=method).resolve(domain)
        agent = self.agent or domain.defaults.agent or next(iter(agent_names(self.domain)), "")
        full = replace(
            self,
            agent=agent,
            method=method,
            novelty=self.novelty or domain.defaults.novelty or "none",
            protocol={"paper": domain.defaults.protocol, "return": RETURN}.get(self.protocol, self.protocol),
            score=adaptation.score,
            detector=adaptation.detector,
            options=dict(adaptation.options),
            trials=trials,
            seed=seed,
            domain_options=self._complete_domain_options(domain, agent),
        )
        if full.novelty not in ("all", "none"):
            full = replace(full, novelty=domain.novelty(full.novelty).name)
        for name in full.novelty_names:
            (Novelty("none", {}) if name == "none" else domain.novelty(name)).check_strength(self.strength)
        if full.n_trials > MAX_TRIALS:
            raise BadSpecError(f"{full.n_trials} trials of {len(full.novelty_names)} novelties; at most {MAX_TRIALS}")
        return replace(full, strength=float(self.strength))

    def _complete_domain_options(self, domain: DomainSpec, agent: str) -> dict[str, Any]:
        """The options given and, for others, those that the agent plays with."""
        of_agent = find_domain_options(agent, self.domain)
        kind = f"option of domain {self.domain}"
        return read_values(kind, domain.options, of_agent | self.domain_options, stated=of_agent)

    @property
    def adaptation(self) -> AdaptationSpec:
        """How the agent adapts."""
        return AdaptationSpec(self.method, self.score, self.detector, self.options, self.guard)

    @property
    def domain_spec(self) -> DomainSpec:
        """The domain, with the parameters that its novelties change."""
        return find_domain(self.domain, self.domain_options).for_novelties(self.novelty_names)

    @property
    def novelty_names(self) -> list[str]:
        """The novelties of its trials."""
        return list(find_domain(self.domain).novelties) if self.novelty == "all" else [self.novelty]

    @property
    def n_trials(self) -> int:
        """Trials of all its novelties."""
        return len(self.novelty_names) * self.trials

    @property
    def module_ids(self) -> list[str]:
        """Environments named as module:id, in place of the domain or in the novelty: finding one imports its module."""
        others = [text.partition("=")[2] or text for text in self.novelty.split(";")]
        return [name.strip() for name in (self.domain, *others) if imports_module(name)]

    def find_trial(self, text: str) -> int | None:
        """The place of the trial with this id or number (the first one's of several novelties); None: it has none."""
        digits = text.rpartition("/")[2].partition("-")[0]
        if not _NUMBER.fullmatch(digits) or int(digits) >= self.trials:
            return None
        number, names = int(digits), self.novelty_names
        if text == digits:
            return number
        ids = self.trial_ids((name, number) for name in names)
        return ids.index(text) * self.trials + number if text in ids else None

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
        return self.run.trial_ids([(self.novelty, self.number)])[0]

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


def _check_text(name: str, value: object) -> None:
    try:
        msgspec.convert(value, Text)
    except msgspec.ValidationError:
        raise BadSpecError(
            f"{name} is {value!a:.60}; allowed: a line of at most {MAX_TEXT} characters without control characters"
        ) from None
