"""Angry Birds: its server for agents of the Science Birds protocol; with the other sub-commands of `napping birds`."""

import ipaddress
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import subcommand

from nappingrl.cli.birds.external import External
from nappingrl.cli.birds.levels import Levels
from nappingrl.cli.birds.play import Play
from nappingrl.cli.birds.rates import again, given, option_of, print_rates, rate, rates
from nappingrl.cli.console import say
from nappingrl.errors import BadRunError, BadSpecError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nappingrl.domains.angrybirds.physics.scene import Level
    from nappingrl.domains.angrybirds.server.results import Episode
    from nappingrl.domains.angrybirds.server.trial_plan import Plan

DEFAULT_LEVELS = 40
"""Before the novelty, and after it: as in the paper's trials."""
_OF_OWN_LEVELS = ("levels", "novel_levels", "attempts", "selectable", "informed", "report_step")


@dataclass(frozen=True)
class Serve:
    """Let agents of the Science Birds protocol play: each one that connects gets a game of its own.

    One trial of own levels, with --novelty followed by novel ones; or the trials of a config.xml. Ctrl-C ends it.

    Example: napping birds serve --levels 10 --novelty bone --out served
    """

    out: Path
    """New or empty folder for EvaluationData.csv and Likelihood.csv, written as they come, and run/ at the end."""
    port: int = 2004
    """Where agents connect; 0: a free one."""
    levels: int = 0
    """Own levels before the novelty. Default: 40."""
    trials: Path | None = None
    """A config.xml of the original framework, instead of own levels."""
    preset: str = "phyq"
    """Constants of the physics: phyq or sailon."""
    novelty: str = ""
    """Novelty of the novel levels; see `napping birds levels --help` for their names. Default: none."""
    novel_levels: int = 0
    """Own levels after the novelty. Default: as many as before."""
    seed: int = 0
    """Which of the own levels are played, and the noise of what agents are told."""
    attempts: int = 1
    """How often each own level may be entered; 0: any number of times."""
    selectable: bool = False
    """Own levels may be chosen in any order (code 51), as Phy-Q's agents do."""
    informed: bool = False
    """Agents may ask whether the novelty has begun (code 69)."""
    report_step: int = 0
    """Ask for a novelty likelihood after so many shots; 0: never."""
    dev: bool = False
    """Developer mode: labels say what things are, and nothing is noisy."""
    agents: int = 0
    """Stop when so many agents have played to the end and left; 0: at Ctrl-C."""
    host: str = "127.0.0.1"
    """Where to listen; anything but loopback lets others on the network in."""
    observer_port: int | None = None
    """Port for observers, who may only look. Default: none."""
    json: bool = False
    """Print one JSON object on the last line of standard output."""

    def __call__(self) -> None:
        """Serve, then write the runs and the summary."""
        from nappingrl.domains.angrybirds.novelties import make_change
        from nappingrl.domains.angrybirds.physics.presets import preset_by_name
        from nappingrl.domains.angrybirds.physics.world import World
        from nappingrl.domains.angrybirds.server.server import Settings, serve

        self._check()
        preset_by_name(self.preset)
        change = make_change({self.novelty: 1.0} if self.novelty else {})
        plan = self._plan()
        if not _is_loopback(self.host):
            say(f"warning: {self.host} can be reached by others, and the protocol has neither password nor encryption")
        episodes = serve(
            plan,
            lambda source: World(source.level, self.preset, change if source.is_novel else None),
            self.host,
            self.port,
            self.out,
            observer_port=self.observer_port,
            settings=Settings(is_dev=self.dev, seed=self.seed),
            on_trial=_tell_trial,
            say=say,
            n_agents=self.agents,
        )
        self._finish(episodes)

    def _check(self) -> None:
        """Refuse what cannot be meant, before anything is made."""
        for name in ("levels", "novel_levels", "seed", "attempts", "report_step", "agents"):
            if (value := getattr(self, name)) < 0:
                raise BadSpecError(f"{option_of(name)} {value} is negative; allowed: 0, 1, 2, ...")
        if self.trials is not None:
            if twice := [option_of(name) for name in given(self) if name in _OF_OWN_LEVELS]:
                raise BadSpecError(f"{', '.join(twice)} with --trials: these are of own levels; the file decides them")
        elif self.novel_levels and not self.novelty:
            raise BadSpecError(f"--novel-levels {self.novel_levels} without a novelty; add --novelty NAME")
        if self.out.is_dir() and any(self.out.iterdir()):
            raise BadRunError(f"{self.out} is not empty; use another --out")

    def _plan(self) -> "Plan":
        from nappingrl.domains.angrybirds.server.trial_plan import one_trial, read_trials

        if self.trials is not None:
            return read_trials(self.trials)
        n_before = self.levels or DEFAULT_LEVELS
        n_novel = (self.novel_levels or n_before) if self.novelty else 0
        drawn = draw_levels(n_before + n_novel, self.novelty, self.seed)
        return one_trial(
            drawn[:n_before],
            drawn[n_before:],
            report_step=self.report_step,
            is_informed=self.informed,
            attempts=self.attempts,
            is_selectable=self.selectable,
        )

    def _finish(self, episodes: "Sequence[Episode]") -> None:
        """Write the runs, and say what there is and where."""
        from nappingrl.cli.birds.runs import write_runs

        novelty = self.novelty or ("novel" if self.trials else "none")
        runs = write_runs(self.out, episodes, novelty, self.seed, again(self, "napping", "birds", "serve"))
        if self.json:
            print(json.dumps({"out": str(self.out), "runs": [str(run) for run in runs], **rates(episodes)}))
            return
        if not episodes:
            print(f"no level was played; nothing is in {self.out}")
            return
        print_rates(episodes)
        print(f"results: {self.out / 'EvaluationData.csv'}   next: napping report {runs[0]}")
        if runs[1:]:
            print(f"other agents and unfinished trials: {', '.join(map(str, runs[1:]))}")


Birds = Annotated[
    Annotated[Serve, subcommand("serve")]
    | Annotated[External, subcommand("external")]
    | Annotated[Play, subcommand("play")]
    | Annotated[Levels, subcommand("levels")],
    subcommand(
        "birds",
        description="Angry Birds: play a level, serve agents of the Science Birds protocol, write levels.\n\n"
        "Example: napping birds play --novelty bone",
    ),
]
"""`napping birds`."""


def draw_levels(n: int, novelty: str, seed: int) -> "list[Level]":
    """Some of the own levels, no two alike: those of the novelty's template, or of all where it has none."""
    import numpy as np

    from nappingrl.domains.angrybirds.levels.templates import LEVELS, TEMPLATES, make_level

    templates = [novelty] if novelty in TEMPLATES else list(TEMPLATES)
    n_all = LEVELS * len(templates)
    if n > n_all:
        raise BadSpecError(f"{n} levels asked for; of {', '.join(templates)} there are {n_all}")
    chosen = np.random.default_rng(seed).choice(n_all, n, replace=False).tolist()
    return [make_level(templates[i // LEVELS], i % LEVELS) for i in chosen]


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _tell_trial(episodes: "tuple[Episode, ...]") -> None:
    """One line for a trial that is over."""
    if episodes:
        last, all_in_all = episodes[-1], rate(episodes)
        where = f"game {last.agent} (agent {last.agent_id}), trial {last.entry.trial}"
        say(f"{where}: {all_in_all['passed']} of {all_in_all['levels']} levels passed")
