"""Name -> thing, as data. Entries are dotted strings, imported when they are first asked for."""

import difflib
import re
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from nappingrl.errors import UnknownNameError


def check_name(kind: str, name: str, allowed: Iterable[str]) -> str:
    """Return `name` if it is allowed, else raise with the nearest match."""
    names = sorted(allowed)
    if name in names:
        return name
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.5)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    raise UnknownNameError(f"unknown {kind} '{name}'; allowed: {', '.join(names)}.{hint}")


class Registry:
    """A table of lazily imported things of one kind."""

    def __init__(self, kind: str, entries: dict[str, str], pattern: str = "", maker: str = "") -> None:
        """`maker` names a function that makes the things whose names fit `pattern` and that are not in the table."""
        self.kind = kind
        self._entries = dict(entries)
        self._pattern, self._maker = pattern, maker

    def names(self) -> list[str]:
        """The names there are, in the order of registration."""
        return list(self._entries)

    def add(self, name: str, target: str) -> None:
        """Register `package.module:attribute` under a new name."""
        self._entries[name] = target

    def get(self, name: str) -> Any:
        """The registered thing; did-you-mean if there is none."""
        if name not in self._entries and self._maker and re.fullmatch(self._pattern, name):
            return _find(self._maker)(name)
        check_name(self.kind, name, self._entries)
        return _find(self._entries[name])


def _find(target: str) -> Any:
    module, attribute = target.split(":")
    return getattr(import_module(module), attribute)


domains = Registry(
    "domain",
    {
        "cartpole": "nappingrl.domains.cartpole:CartPole",
        "mountaincar": "nappingrl.domains.mountaincar:MountainCar",
        "crossroad": "nappingrl.domains.crossroad:CrossRoad",
        "angrybirds": "nappingrl.domains.birds.domain:AngryBirds",
    },
    pattern=r".+-v[0-9]+",
    maker="nappingrl.domains.gymnasium:domain_of",
)

methods = Registry(
    "method",
    {
        "frozen": "nappingrl.methods.frozen:Frozen",
        "foresight": "nappingrl.methods.foresight:Foresight",
        "online": "nappingrl.methods.online:Online",
        "finetune": "nappingrl.methods.finetune:FineTune",
        "napping": "nappingrl.methods.napping:Napping",
        "napping-ucb": "nappingrl.methods.napping_ucb:NappingUcb",
        "napping-wiped": "nappingrl.methods.controls:NappingWiped",
        "random": "nappingrl.methods.controls:Random",
        "flip": "nappingrl.methods.controls:Flip",
        "replay-success": "nappingrl.methods.controls:ReplaySuccess",
        "controller": "nappingrl.methods.controls:BareController",
        "oracle": "nappingrl.methods.oracle:Oracle",
    },
)

players = Registry(
    "player",
    {
        "angrybirds-naive": "nappingrl.players.naive:Naive",
        "angrybirds-naive-adaptation": "nappingrl.players.naive_adaptation:NaiveAdaptation",
        "angrybirds-datalab": "nappingrl.players.datalab:DataLab",
        "angrybirds-replanner": "nappingrl.players.replanner:Replanner",
        "angrybirds-hydra": "nappingrl.players.hydra_birds:HydraBirds",
        "cartpole-hydra": "nappingrl.players.hydra_cartpole:HydraCartPole",
    },
)
"""Agents that play by rules of their own, by domain and name."""

detectors = Registry(
    "detector",
    {
        "rolling-mean": "nappingrl.detect.returns:RollingMean",
        "page-hinkley": "nappingrl.detect.returns:PageHinkley",
        "cusum": "nappingrl.detect.returns:Cusum",
        "adwin": "nappingrl.detect.adwin:Adwin",
        "ks": "nappingrl.detect.features:KsFeatures",
        "given": "nappingrl.detect.base:Given",
        "residual": "nappingrl.detect.residual:Residual",
        "never": "nappingrl.detect.base:Never",
    },
)
