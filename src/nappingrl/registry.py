"""The only list of domains, methods, detectors and agents.

An `Entry` carries everything that other parts need to know before they import the thing itself: title, role, colour,
marker, what it can do. `register` adds one, and so does an installed package with an entry point in the group
`nappingrl.domains`, `nappingrl.methods`, `nappingrl.detectors` or `nappingrl.agents`.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nappingrl.errors import BadSpecError, check_name
from nappingrl.gymnasium_ids import add_id, is_imported, remove_id, when_imported

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PALETTE = ("#117733", "#aa4499", "#44aa99", "#999933", "#661100", "#6699cc", "#ddaa33", "#004488")
"""Colours of entries that name none, in the order of registration: Paul Tol's, apart from those of the built-ins."""
MARKERS = ("H", "8", "1", "2", "3", "4", "+", "x")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
CAPABILITIES = (
    "takes_score", "needs_discrete", "can_be_saved", "is_privileged", "accepts_stateful_agents", "learns_from_others",
    "needs_domain", "is_stateful",
)  # fmt: skip
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
ROLES = ("method", "baseline", "control", "oracle")


@dataclass(frozen=True, slots=True)
class Entry:
    """A registered domain, method, detector or agent."""

    kind: str
    """domain, method, detector or agent."""
    name: str
    """As on the command line; an agent's is its domain and its own name, "angrybirds-naive"."""
    target: Any
    """The thing itself, or `package.module:attribute`, imported when it is first asked for."""
    title: str = ""
    """As in figures and tables."""
    colour: str = ""
    marker: str = ""
    """A letter of matplotlib's; it tells lines apart where print has no colour."""
    role: str = ""
    """How reports read a method's results: method, baseline, control or oracle."""
    no_rules: str = ""
    """Why a report shows no rules of a method; empty: it shows them."""
    cost: float = 1.0
    """CPU microseconds of a step, as `napping bench` measures them: in a domain with the frozen agent; what a method
    or a scripted agent adds."""
    cost_in: Mapping[str, float] = field(default_factory=dict, hash=False)
    """The same of a method in domains where it differs."""
    in_paper: bool = True
    """Whether `napping paper` runs it, or leaves it to `napping run`."""
    env_id: str = ""
    """A domain's id with gymnasium."""
    env_class: str = "nappingrl.domains.as_env:DomainEnv"
    """The class of that environment."""
    horizon: int = 0
    """A domain's steps per episode."""
    usual_length: float = 0.0
    """The mean steps per episode that its evaluation had; 0: unknown, so that estimates count `horizon`."""
    is_stateful: bool = False
    """Whether an agent learns by itself; reports then label it by its own title, not by the method `frozen`."""
    origin: str = "nappingrl"
    """The package that registered it."""

    def load(self) -> Any:
        """The thing itself."""
        if not isinstance(self.target, str):
            return self.target
        module, _, attribute = self.target.partition(":")
        return getattr(import_module(module), attribute)

    def source_sha256(self) -> str:
        """Hash of the module that defines it; empty for what belongs to this package, or has no file."""
        if self.origin == "nappingrl":
            return ""
        import hashlib  # late, as all that `import nappingrl` does not need

        file = getattr(sys.modules.get(getattr(self.load(), "__module__", "")), "__file__", None)
        return "" if file is None else hashlib.sha256(Path(file).read_bytes()).hexdigest()

    @property
    def capabilities(self) -> tuple[str, ...]:
        """What its class declares: such as takes_score, needs_discrete, can_be_saved."""
        return tuple(name for name in CAPABILITIES if getattr(self.load(), name, False))

    @property
    def about(self) -> str:
        """The first line of its documentation."""
        return (self.load().__doc__ or "").strip().partition("\n")[0]


_FACTS = tuple(f.name for f in fields(Entry) if f.name not in ("kind", "name", "target", "origin"))


class Registry:
    """The entries of one kind, in the order of registration."""

    def __init__(self, kind: str, entries: dict[str, Entry]) -> None:
        self.kind = kind
        self._entries = entries
        self._added: list[str] = []

    def names(self) -> list[str]:
        """All names."""
        return [*self._entries, *(name for name in self._installed if name not in self._entries)]

    def entries(self) -> list[Entry]:
        """All entries; the packages of entry points are imported, and one that cannot be is named on stderr."""
        entries = []
        for name in self.names():
            try:
                entries.append(self.entry(name))
            except BadSpecError as error:
                print(f"napping: {error}", file=sys.stderr)
        return entries

    def entry(self, name: str) -> Entry:
        """One entry; did-you-mean where there is none."""
        if name not in self._entries and name in self._installed:
            self._add_installed(self._installed[name])
        return self._entries[check_name(self.kind, name, self.names())]

    def _add_installed(self, point: "EntryPoint") -> None:
        package = point.dist.name if point.dist is not None else point.module
        try:
            target = point.load()
        except Exception as error:  # whatever a package raises while it is imported
            why = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no message'}"
            raise BadSpecError(
                f"{self.kind} '{point.name}' of package {package} cannot be loaded ({why}); mend or uninstall it"
            ) from error
        self.add(point.name, target, origin=package)

    def get(self, name: str) -> Any:
        """The registered thing itself."""
        return self.entry(name).load()

    def __contains__(self, name: str) -> bool:
        return name in self._entries or name in self._installed

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def add(self, name: str, target: Any, *, origin: str = "", **facts: Any) -> Entry:
        """Register a thing; facts that are not given are those of its class, else defaults."""
        if not _NAME.fullmatch(name):
            raise BadSpecError(f"{self.kind} name '{name}' has other characters than letters, digits, '-' and '_'")
        if name in self._entries:
            raise BadSpecError(f"a {self.kind} called '{name}' is registered already; choose another name")
        if not isinstance(target, str) and not callable(target):
            raise BadSpecError(f"{self.kind} '{name}' must be a class or 'package.module:Class', not {target!r:.60}")
        for fact in facts:
            check_name(f"fact of a {self.kind}", fact, _FACTS)
        known = {
            fact: getattr(target, fact) for fact in _FACTS if isinstance(getattr(target, fact, None), str | int | float)
        }
        number = len(self._added)
        defaults = {
            "title": name,
            "colour": PALETTE[number % len(PALETTE)],
            "marker": MARKERS[number % len(MARKERS)],
            "role": ROLES[0] if self.kind == "method" else "",
        }
        if self.kind == "domain":
            defaults["env_id"] = f"nappingrl/{name}-v0"
        facts = defaults | {fact: value for fact, value in (known | facts).items() if value not in ("", None)}
        if self.kind == "method":
            check_name("role", facts["role"], ROLES)
        if not _COLOUR.fullmatch(str(facts["colour"])):
            raise BadSpecError(f"colour '{facts['colour']}' of {self.kind} '{name}' is not of the form #rrggbb")
        entry = Entry(self.kind, name, target, origin=origin or _package(target), **facts)
        self.put(entry)
        return entry

    def put(self, entry: Entry) -> None:
        """Take an entry as it is."""
        self._entries[entry.name] = entry
        if entry.name not in self._added:
            self._added.append(entry.name)
        if self.kind == "domain" and is_imported():
            add_id(entry)

    def remove(self, name: str) -> None:
        """Take back an entry that was added."""
        self._added.remove(check_name(f"{self.kind} added by register", name, self._added))
        entry = self._entries.pop(name)
        if self.kind == "domain" and is_imported():
            remove_id(entry.env_id)

    def added(self) -> list[Entry]:
        """Entries that are not built in."""
        return [self._entries[name] for name in self._added]

    def built_in(self) -> list[Entry]:
        """The other entries."""
        return [entry for name, entry in self._entries.items() if name not in self._added]

    @cached_property
    def _installed(self) -> "dict[str, EntryPoint]":
        from importlib.metadata import entry_points  # a quarter of the time of `import nappingrl`

        return {point.name: point for point in entry_points(group=f"nappingrl.{self.kind}s")}


def _package(target: Any) -> str:
    module: str = target if isinstance(target, str) else getattr(target, "__module__", "")
    return re.split(r"[.:]", module)[0]


def _built_in(kind: str, *entries: tuple[str, str, dict[str, Any]]) -> Registry:
    return Registry(kind, {name: Entry(kind, name, f"nappingrl.{target}", **facts) for name, target, facts in entries})


domains = _built_in(
    "domain",
    ("cartpole", "domains.cartpole:CartPole",
     {"title": "CartPole", "colour": "#0072b2", "marker": "o", "env_id": "nappingrl/CartPole-v0", "horizon": 200,
      "usual_length": 140.0, "cost": 0.8}),
    ("mountaincar", "domains.mountaincar:MountainCar",
     {"title": "MountainCar", "colour": "#d55e00", "marker": "s", "env_id": "nappingrl/MountainCar-v0",
      "horizon": 500, "usual_length": 150.0, "cost": 1.6}),
    ("crossroad", "domains.crossroad:CrossRoad",
     {"title": "CrossRoad", "colour": "#009e73", "marker": "^", "env_id": "nappingrl/CrossRoad-v0", "horizon": 100,
      "usual_length": 11.0, "cost": 1.5}),
    ("angrybirds", "domains.angrybirds.domain:AngryBirds",
     {"title": "Angry Birds", "colour": "#cc79a7", "marker": "v", "env_id": "nappingrl/AngryBirds-v0",
      "env_class": "nappingrl.domains.angrybirds.env:AngryBirdsEnv", "horizon": 5,
      "usual_length": 1.4, "cost": 8000.0}),
)  # fmt: skip

_WEIGHTS = "it changes the network's weights and learns no rules"
_CONTROL = "it is a control and learns no rules"

methods = _built_in(
    "method",
    ("frozen", "methods.frozen:Frozen",
     {"title": "Frozen", "colour": "#d55e00", "marker": "s", "role": "baseline",
      "no_rules": "the frozen agent learns nothing", "cost": 0.0}),
    ("auto", "methods.auto:Auto",
     {"title": "Auto", "colour": "#e31a1c", "marker": "P", "role": "method",
      "cost": 400.0, "cost_in": {"cartpole": 48.0, "mountaincar": 100.0, "crossroad": 1500.0, "angrybirds": 2500.0}}),
    ("foresight", "methods.foresight:Foresight",
     {"title": "Foresight", "colour": "#6a3d9a", "marker": "D", "role": "method", "in_paper": False,
      "cost": 23.0, "cost_in": {"cartpole": 11.0, "mountaincar": 130.0, "crossroad": 160.0}}),
    ("facts", "methods.facts:FactsMethod",
     {"title": "Facts", "colour": "#666600", "marker": "h", "role": "method", "in_paper": False,
      "no_rules": "it plans over single facts and learns no rules", "cost": 12.0, "cost_in": {"crossroad": 420.0}}),
    ("plan", "methods.plan:Plan",
     {"title": "Plan", "colour": "#b15928", "marker": "*", "role": "method", "in_paper": False,
      "no_rules": "it plans every step anew and learns no rules", "cost": 40.0, "cost_in": {"mountaincar": 200.0}}),
    ("recall", "methods.recall:Recall",
     {"title": "Recall", "colour": "#4a6fe3", "marker": "H", "role": "method", "in_paper": False,
      "no_rules": "it compares the outcomes of single actions and learns no rules", "cost": 20000.0}),
    ("reground", "methods.reground:Reground",
     {"title": "Re-grounding", "colour": "#1b9e77", "marker": "d", "role": "method", "in_paper": False,
      "no_rules": "it translates actions and sensors and learns no rules",
      "cost": 130.0, "cost_in": {"crossroad": 50.0, "angrybirds": 2000.0}}),
    ("online", "methods.online:Online",
     {"title": "Online", "colour": "#009e73", "marker": "^", "role": "baseline", "no_rules": _WEIGHTS,
      "cost": 55.0, "cost_in": {"mountaincar": 420.0}}),
    ("finetune", "methods.finetune:FineTune",
     {"title": "FineTune", "colour": "#cc79a7", "marker": "v", "role": "baseline", "no_rules": _WEIGHTS,
      "cost": 40.0, "cost_in": {"cartpole": 15.0, "mountaincar": 130.0}}),
    ("napping", "methods.napping:Napping",
     {"title": "NAPPING", "colour": "#0072b2", "marker": "o", "role": "method",
      "cost": 0.3, "cost_in": {"crossroad": 3.0}}),
    ("napping-ucb", "methods.napping_ucb:NappingUcb",
     {"title": "NAPPING-UCB", "colour": "#a6761d", "marker": ">", "role": "method", "in_paper": False,
      "cost": 6.0, "cost_in": {"cartpole": 3.0, "mountaincar": 12.0}}),
    ("napping-no-memory", "methods.controls:NappingNoMemory",
     {"title": "NAPPING, no memory", "colour": "#56b4e9", "marker": "p", "role": "control",
      "no_rules": "it forgets its principles after every episode",
      "cost": 1.1, "cost_in": {"cartpole": 0.3, "crossroad": 5.0}}),
    ("random", "methods.controls:Random",
     {"title": "Random", "colour": "#888888", "marker": "X", "role": "control", "no_rules": _CONTROL}),
    ("switch-on-failure", "methods.controls:SwitchOnFailure",
     {"title": "Switch on failure", "colour": "#e69f00", "marker": "<", "role": "control", "no_rules": _CONTROL,
      "in_paper": False}),
    ("replay-success", "methods.controls:ReplaySuccess",
     {"title": "Replay success", "colour": "#882255", "marker": "h", "role": "control", "no_rules": _CONTROL}),
    ("controller", "methods.controls:BareController",
     {"title": "Controller", "colour": "#332288", "marker": "P", "role": "control", "no_rules": _CONTROL}),
    ("oracle", "methods.oracle:Oracle",
     {"title": "Oracle", "colour": "#000000", "marker": "*", "role": "oracle",
      "no_rules": "it is given the true parameters and learns no rules",
      "cost": 1.0, "cost_in": {"cartpole": 3.8, "mountaincar": 0.3, "crossroad": 0.1, "angrybirds": 13000.0}}),
)  # fmt: skip

_STATEFUL = {"is_stateful": True}

agents = _built_in(
    "agent",
    ("angrybirds-naive", "scripted.naive:Naive", {"title": "Naive", "colour": "#56b4e9", "marker": "<", **_STATEFUL}),
    ("angrybirds-naive-adaptation", "scripted.naive_adaptation:NaiveAdaptation",
     {"title": "Naive Adaptation", "colour": "#009e73", "marker": "^", **_STATEFUL}),
    ("angrybirds-datalab", "scripted.datalab:DataLab",
     {"title": "DataLab", "colour": "#cc79a7", "marker": "v", **_STATEFUL, "cost": 4000.0}),
    ("angrybirds-replanner", "scripted.replanner:Replanner",
     {"title": "Replanner", "colour": "#e69f00", "marker": "D", **_STATEFUL}),
    ("angrybirds-hydra", "scripted.hydra_angrybirds:HydraAngryBirds",
     {"title": "HYDRA", "colour": "#8c510a", "marker": ">", **_STATEFUL, "cost": 8000.0}),
    ("cartpole-hydra", "scripted.hydra_cartpole:HydraCartPole",
     {"title": "HYDRA", "colour": "#8c510a", "marker": ">", "in_paper": False, **_STATEFUL}),
)  # fmt: skip
"""Scripted agents, as DOMAIN-NAME; trained ones lie in `agents/zoo`."""

detectors = _built_in(
    "detector",
    ("rolling-mean", "detectors.returns:RollingMean", {"title": "Rolling mean", "colour": "#0072b2", "marker": "o"}),
    ("page-hinkley", "detectors.returns:PageHinkley", {"title": "Page-Hinkley", "colour": "#d55e00", "marker": "s"}),
    ("cusum", "detectors.returns:Cusum", {"title": "CUSUM", "colour": "#009e73", "marker": "^"}),
    ("adwin", "detectors.adwin:Adwin", {"title": "ADWIN", "colour": "#cc79a7", "marker": "v"}),
    ("ks", "detectors.observations:KsFeatures",
     {"title": "Kolmogorov-Smirnov", "colour": "#e69f00", "marker": "D"}),
    ("given", "detectors.base:Announced", {"title": "Given", "colour": "#000000", "marker": "*"}),
    ("residual", "detectors.residual:Residual", {"title": "Residual", "colour": "#6a3d9a", "marker": "P"}),
    ("critic", "detectors.critic:Critic", {"title": "Critic", "colour": "#b15928", "marker": "h"}),
    ("auto", "detectors.auto:AutoDetector", {"title": "Auto", "colour": "#1b9e77", "marker": "d"}),
    ("never", "detectors.base:Never", {"title": "Never", "colour": "#888888", "marker": "X"}),
)  # fmt: skip

REGISTRIES = {registry.kind: registry for registry in (domains, methods, detectors, agents)}


def register(kind: str, name: str, target: Any, **facts: Any) -> None:
    """Add a domain, method, detector or scripted agent of yours to everything that lists them.

    `target` is a class, or "package.module:attribute" that names one. Facts are `title`, `colour`, `marker`,
    `cost`, for a domain `env_id`, and for a method `role`, `no_rules` and `in_paper`; each has a default. A scripted
    agent is registered as DOMAIN-NAME.

    Examples:
        >>> from nappingrl.methods.base import Method
        >>> class Lazy(Method):
        ...     "Acts as the frozen agent does."
        >>> register("method", "lazy", Lazy, title="Lazy")
        >>> methods.entry("lazy").role
        'method'
        >>> unregister("method", "lazy")
    """
    REGISTRIES[check_name("kind", kind, REGISTRIES)].add(name, target, **facts)


def unregister(kind: str, name: str) -> None:
    """Take back a `register`."""
    REGISTRIES[check_name("kind", kind, REGISTRIES)].remove(name)


def list_available(kind: str | None = None) -> dict[str, list[Entry]]:
    """Entries by kind: domain, method, detector and agent; or those of one kind."""
    kinds = list(REGISTRIES) if kind is None else [check_name("kind", kind, REGISTRIES)]
    return {name: REGISTRIES[name].entries() for name in kinds}


def added_entries() -> list[Entry]:
    """Entries that this process registered, for its worker processes."""
    return [entry for registry in REGISTRIES.values() for entry in registry.added()]


def add_entries(entries: Iterable[Entry]) -> None:
    """Register what another process had registered."""
    for entry in entries:
        REGISTRIES[entry.kind].put(entry)


def register_with_gymnasium() -> None:
    """Register the environments of domains: now, or as soon as gymnasium is imported."""
    when_imported(_add_ids)


def _add_ids() -> None:
    for entry in (*domains.built_in(), *domains.added()):
        add_id(entry)
