"""`napping birds serve`."""

import ipaddress
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from nappingrl.cli.argv import line
from nappingrl.cli.birds.served import Served, print_rates
from nappingrl.cli.console import print_note
from nappingrl.domains.angrybirds.levels.draw import draw_levels
from nappingrl.domains.angrybirds.server.pass_rates import pass_rate, pass_rates
from nappingrl.domains.angrybirds.server.results import Episode
from nappingrl.domains.angrybirds.server.server import serve
from nappingrl.domains.angrybirds.server.trial_plan import Plan, one_trial, read_trials
from nappingrl.trials.limits import MAX_COUNT


@dataclass(frozen=True, kw_only=True)
class Serve(Served):
    """Serve agents that speak the Science Birds protocol.

    Each agent that connects plays a separate game: one trial of our levels, followed by novel ones with --novelty, or
    the trials of a config.xml. Ctrl-C ends it. --out receives EvaluationData.csv and Likelihood.csv while agents play,
    and run/ at the end.

    Example: napping birds serve --levels 10 --novelty bone --out served
    """

    attempts: int = 1
    """Attempts per level; 0: unlimited."""
    selectable: bool = False
    """Agents may choose levels in any order (code 51), as Phy-Q's do."""
    report_step: int = 0
    """Ask for a novelty likelihood after this number of shots; 0: never."""
    agents: int = 0
    """Stop after this number of agents have finished; 0: at Ctrl-C."""
    host: str = "127.0.0.1"
    """Address to listen on; anything but loopback exposes the server to the network."""

    groups: ClassVar = {
        "agents": ("agents", "attempts", "selectable", "report_step", "host"),
        "levels": ("levels", "novelty", "novel_levels", "trials", "preset", "seed"),
        "the server": ("port", "observer_port", "informed", "dev"),
        "results": ("out", "json"),
    }
    bounds: ClassVar = {
        **Served.bounds, "attempts": (0, MAX_COUNT), "report_step": (0, MAX_COUNT), "agents": (0, MAX_COUNT),
    }  # fmt: skip
    decided_by_trials: ClassVar = (*Served.decided_by_trials, "attempts", "selectable", "report_step")

    def __call__(self) -> None:
        """Serve, then write the runs and the summary."""
        self._check()
        make_world = self._make_world()
        plan = self._plan()
        if not _is_loopback(self.host):
            print_note(f"warning: {self.host} exposes the server, and the protocol has neither password nor encryption")
        with self._locked_out():
            episodes = serve(
                plan,
                make_world,
                self.host,
                self.port,
                self.out,
                observer_port=self.observer_port,
                settings=self._settings(),
                on_trial=_print_trial,
                say=print_note,
                n_agents=self.agents,
            )
            self._finish(episodes)

    def _plan(self) -> Plan:
        if self.trials is not None:
            return read_trials(self.trials)
        n_before, n_novel = self._n_levels()
        levels = draw_levels(n_before + n_novel, self.novelty, self.seed)
        return one_trial(
            levels[:n_before],
            levels[n_before:],
            report_step=self.report_step,
            is_informed=self.informed,
            attempts=self.attempts,
            is_selectable=self.selectable,
        )

    def _finish(self, episodes: Sequence[Episode]) -> None:
        """Write the runs and print the result."""
        runs = self._write_runs(episodes)
        if self.json:
            print(json.dumps({"out": str(self.out), "runs": [str(run) for run in runs], **pass_rates(episodes)}))
            return
        if not episodes:
            print(f"no level was played; {self.out} has no results")
            return
        print_rates(episodes)
        print(f"results: {self.out / 'EvaluationData.csv'}   next: {line('report', runs[0])}")
        if runs[1:]:
            print(f"other agents and unfinished trials: {', '.join(map(str, runs[1:]))}")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _print_trial(episodes: tuple[Episode, ...]) -> None:
    """Print one line for a finished trial."""
    if episodes:
        last = episodes[-1]
        rate = pass_rate(episodes)
        where = f"game {last.agent} (agent {last.agent_id}), trial {last.entry.trial}"
        print_note(f"{where}: {rate['passed']} of {rate['levels']} levels passed")
