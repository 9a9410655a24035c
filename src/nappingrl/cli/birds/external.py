"""`napping birds external`."""

import json
import shlex
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

from nappingrl.cli.argv import line
from nappingrl.cli.birds.served import Served, print_rates
from nappingrl.cli.console import print_note
from nappingrl.domains.angrybirds.server.pass_rates import pass_rates
from nappingrl.domains.angrybirds.server.supervise import Patience, Supervised, Supervisor
from nappingrl.domains.angrybirds.server.trial_plan import Plan, read_trials
from nappingrl.errors import BadRunError, BadSpecError
from nappingrl.trials.limits import MAX_COUNT, MAX_LEVELS
from nappingrl.trials.science_birds import external_trial
from nappingrl.trials.store import write_output

STARTS_FILE = "starts.json"


@dataclass(frozen=True, kw_only=True)
class External(Served):
    """Start an agent that speaks the Science Birds protocol, supervise it and score it.

    It plays the trials of `napping run angrybirds --protocol LEVELS+NOVEL_LEVELS`. Only the server's record counts. An
    agent that crashes, hangs or disconnects is restarted and continues with the levels that it has not entered; levels
    it never enters count as failed. --out receives start-1/ (tables, the agent's output), start-2/, ..., and run/.

    Example: napping birds external --command "java -jar agent.jar 1" --novelty bone --out scored
    """

    command: str
    """The agent's program and arguments, without a shell; {port} is the port, {here} this folder. It runs in a
    temporary folder; a word with a dot or slash that names a file here becomes its absolute path."""
    count: int = 1
    """Number of trials."""
    timeout: float = 300.0
    """Seconds without a shot after which the agent is restarted."""
    restarts: int = 3
    """Maximum number of restarts."""

    groups: ClassVar = {
        "the agent": ("command", "count", "timeout", "restarts"),
        "levels": ("levels", "novelty", "novel_levels", "trials", "preset", "seed"),
        "the server": ("port", "observer_port", "informed", "dev"),
        "results": ("out", "json"),
    }
    bounds: ClassVar = {**Served.bounds, "count": (1, MAX_LEVELS), "restarts": (0, MAX_COUNT)}
    decided_by_trials: ClassVar = (*Served.decided_by_trials, "count")

    def __call__(self) -> None:
        """Play, then write the runs and the summary."""
        self._check()
        patience = Patience(self.timeout, self.restarts)
        make_world = self._make_world()
        words = self._words()
        supervisor = Supervisor(
            self._plan(),
            make_world,
            lambda port: [word.replace("{port}", str(port)) for word in words],
            self.out,
            self.port,
            patience,
            self._settings(),
            print_note,
            self.observer_port,
        )
        with self._locked_out():
            self._finish(supervisor.run())

    def _check(self) -> None:
        super()._check()
        if (n_levels := self.count * sum(self._n_levels())) > MAX_LEVELS:
            raise BadSpecError(
                f"{self.count} trials have {n_levels} levels; at most {MAX_LEVELS}: give a smaller --count"
            )
        if self.port == 0 and "{port}" not in self.command:
            raise BadSpecError("--port 0 takes any free port, so the agent must be told: put {port} in --command")

    def _words(self) -> list[str]:
        """The agent's command in words that mean the same in another working folder."""
        try:
            words = shlex.split(self.command)
        except ValueError as error:
            raise BadSpecError(f"--command {self.command!r} cannot be split into words: {error}") from error
        words = [word.replace("{here}", str(Path.cwd())) for word in words]
        words = [str(Path(word).absolute()) if _is_file_here(word) else word for word in words]
        if not words or shutil.which(words[0]) is None:
            name = f"'{words[0]}'" if words else "an empty text"
            raise BadSpecError(f"--command begins with {name}, which is no program here; install it or give its path")
        return words

    def _plan(self) -> Plan:
        if self.trials is not None:
            return read_trials(self.trials)
        n_before, n_novel = self._n_levels()
        numbers = range(self.count)
        return Plan(
            tuple(external_trial(self.novelty, n_before, n_novel, self.seed, i, self.informed) for i in numbers)
        )

    def _finish(self, result: Supervised) -> None:
        """Write the runs and print the result."""
        starts = [asdict(start) for start in result.starts]
        text = json.dumps({"command": self.command, "starts": starts, "missing": len(result.missing)}, indent=2)
        write_output(self.out / STARTS_FILE, f"{text}\n".encode())
        if not result.episodes:
            if result.interruption:
                raise result.interruption
            raise BadRunError(
                f"the agent entered no level in {len(starts)} starts: there is nothing to score; "
                f"see its output in {self.out}/start-*/agent.log"
            )
        episodes = (*result.episodes, *result.missing)
        runs = self._write_runs(episodes)
        if result.missing:
            print_note(f"{len(result.missing)} of {len(episodes)} levels were never entered: they count as failed")
        if self.json:
            summary = {"out": str(self.out), "runs": [str(run) for run in runs], **pass_rates(episodes)}
            print(json.dumps({**summary, "missing": len(result.missing), "starts": starts}))
        else:
            print_rates(episodes)
            print(f"starts: {len(starts)}   results: {runs[0]}   next: {line('report', runs[0])}")
        if result.interruption:
            raise result.interruption


def _is_file_here(word: str) -> bool:
    return ("." in word or "/" in word) and Path(word).is_file()
