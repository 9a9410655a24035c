"""`napping birds external`: an agent that is a program of its own plays the trials of our agents, under supervision."""

import json
import shlex
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nappingrl.cli.birds.rates import again, given, option_of, print_rates, rates
from nappingrl.cli.console import say
from nappingrl.errors import BadRunError, BadSpecError

if TYPE_CHECKING:
    from nappingrl.domains.angrybirds.server.supervise import Supervised
    from nappingrl.domains.angrybirds.server.trial_plan import Plan, Trial

DEFAULT_LEVELS = 40
_OF_OWN_LEVELS = ("levels", "novel_levels", "count", "informed")
STARTS_FILE = "starts.json"


@dataclass(frozen=True)
class External:
    """Start an agent of the Science Birds protocol, serve it, watch it, and score it in the trials of our own agents.

    Only what the server saw counts. An agent that crashes, hangs or hangs up is started again and goes on with the
    levels that it has not entered; those that it never enters count as failed.

    Example: napping birds external --command "java -jar agent.jar 1" --novelty bone --out scored
    """

    command: str
    """The agent's program and arguments, without a shell; {port} is the port, {here} this folder. It runs in a
    temporary folder; a word with a point or slash that names a file here is found all the same."""
    out: Path
    """New or empty folder for start-1/ (tables, the agent's output), start-2/, ..., and run/ at the end."""
    levels: int = 0
    """Levels before the novelty, as of `napping run angrybirds --protocol LEVELS+NOVEL_LEVELS`. Default: 40."""
    novelty: str = ""
    """Novelty of the novel levels; see `napping birds levels --help` for their names. Default: none."""
    novel_levels: int = 0
    """Levels after the novelty. Default: as many as before."""
    count: int = 1
    """How many such trials."""
    trials: Path | None = None
    """A config.xml of the original framework, instead of these."""
    preset: str = "phyq"
    """Constants of the physics: phyq or sailon."""
    port: int = 2004
    """Where the agent connects; 0: a free one, for commands with {port}."""
    seed: int = 0
    """Of the trials, and of the noise of what agents are told."""
    timeout: float = 300.0
    """Seconds without a shot after which the agent is stopped and started again."""
    restarts: int = 3
    """How often it is started again."""
    informed: bool = False
    """The agent may ask whether the novelty has begun (code 69)."""
    dev: bool = False
    """Developer mode: labels say what things are, and nothing is noisy."""
    json: bool = False
    """Print one JSON object on the last line of standard output."""

    def __call__(self) -> None:
        """Play, then write the runs and the summary."""
        from nappingrl.domains.angrybirds.novelties import make_change
        from nappingrl.domains.angrybirds.physics.presets import preset_by_name
        from nappingrl.domains.angrybirds.physics.world import World
        from nappingrl.domains.angrybirds.server.server import Settings
        from nappingrl.domains.angrybirds.server.supervise import Patience, Supervisor
        from nappingrl.trials.store import make_folder

        patience = Patience(self.timeout, self.restarts)
        self._check()
        preset_by_name(self.preset)
        change = make_change({self.novelty: 1.0} if self.novelty else {})
        words = self._words()
        supervisor = Supervisor(
            self._plan(),
            lambda source: World(source.level, self.preset, change if source.is_novel else None),
            lambda port: [word.replace("{port}", str(port)) for word in words],
            self.out,
            self.port,
            patience,
            Settings(is_dev=self.dev, seed=self.seed),
            say,
        )
        make_folder(self.out)
        self._finish(supervisor.run())

    def _check(self) -> None:
        """Refuse what cannot be meant, before anything is made."""
        for name in ("levels", "novel_levels", "seed"):
            if (value := getattr(self, name)) < 0:
                raise BadSpecError(f"{option_of(name)} {value} is negative; allowed: 0, 1, 2, ...")
        if self.count < 1:
            raise BadSpecError(f"--count {self.count}; at least 1 trial is needed")
        if self.trials is not None:
            if twice := [option_of(name) for name in given(self) if name in _OF_OWN_LEVELS]:
                raise BadSpecError(f"{', '.join(twice)} with --trials: the file decides that; leave one of them out")
        elif self.novel_levels and not self.novelty:
            raise BadSpecError(f"--novel-levels {self.novel_levels} without a novelty; add --novelty NAME")
        if self.port == 0 and "{port}" not in self.command:
            raise BadSpecError("--port 0 takes any free port, of which the agent must be told: put {port} in --command")
        if self.out.is_dir() and any(path.is_file() for path in self.out.rglob("*")):
            raise BadRunError(f"{self.out} is not empty; use another --out")

    def _words(self) -> list[str]:
        """The command in words that mean the same in another working folder."""
        try:
            words = shlex.split(self.command)
        except ValueError as error:
            raise BadSpecError(f"--command {self.command!r} cannot be taken apart into words: {error}") from error
        words = [word.replace("{here}", str(Path.cwd())) for word in words]
        words = [str(Path(word).absolute()) if _is_file_here(word) else word for word in words]
        if not words or shutil.which(words[0]) is None:
            name = f"'{words[0]}'" if words else "an empty text"
            raise BadSpecError(f"--command begins with {name}, which is no program here; install it or give its path")
        return words

    def _plan(self) -> "Plan":
        from nappingrl.domains.angrybirds.server.trial_plan import Plan, read_trials

        if self.trials is not None:
            return read_trials(self.trials)
        n_before = self.levels or DEFAULT_LEVELS
        n_novel = (self.novel_levels or n_before) if self.novelty else 0
        return Plan(
            tuple(own_trial(self.novelty, n_before, n_novel, self.seed, i, self.informed) for i in range(self.count))
        )

    def _finish(self, done: "Supervised") -> None:
        """Write the runs, and say what there is and where."""
        from nappingrl.cli.birds.runs import write_runs

        starts = [asdict(start) for start in done.starts]
        text = json.dumps({"command": self.command, "starts": starts, "missing": len(done.missing)}, indent=2)
        (self.out / STARTS_FILE).write_text(text + "\n", encoding="utf-8")
        if not done.episodes:
            if done.is_interrupted:
                raise KeyboardInterrupt
            raise BadRunError(
                f"the agent entered no level in {len(starts)} starts: there is nothing to score; "
                f"see its output in {self.out}/start-*/agent.log"
            )
        episodes = (*done.episodes, *done.missing)
        novelty = self.novelty or ("novel" if self.trials else "none")
        command = again(self, "napping", "birds", "external", last=("command", "out"))
        runs = write_runs(self.out, episodes, novelty, self.seed, command)
        if done.missing:
            say(f"{len(done.missing)} of {len(episodes)} levels were never entered: they count as failed")
        if self.json:
            told = {"out": str(self.out), "runs": [str(run) for run in runs], **rates(episodes)}
            print(json.dumps({**told, "missing": len(done.missing), "starts": starts}))
        else:
            print_rates(episodes)
            print(f"starts: {len(starts)}   results: {runs[0]}   next: napping report {runs[0]}")
        if done.is_interrupted:
            raise KeyboardInterrupt


def own_trial(novelty: str, n_before: int, n_novel: int, seed: int, number: int, is_informed: bool = False) -> "Trial":
    """A trial of `napping run angrybirds` with the same novelty, seed, number and protocol: level by level the same."""
    from nappingrl.domains.angrybirds.domain import AngryBirds
    from nappingrl.domains.angrybirds.levels.templates import LEVELS, TEMPLATES, make_level
    from nappingrl.domains.angrybirds.server.trial_plan import LevelSet, Source, Trial
    from nappingrl.trials.spec import RunSpec, TrialSpec

    spec = TrialSpec(RunSpec(AngryBirds.name, seed=seed), novelty or "none", number)
    templates = [novelty] if novelty in TEMPLATES else list(TEMPLATES)
    sources = []
    for i, (which, place) in enumerate(spec.stream("reset").random((n_before + n_novel, AngryBirds.n_reset_draws))):
        level = make_level(templates[int(which * len(templates))], int(place * LEVELS))
        sources.append(Source(level.name, level, i >= n_before))
    return Trial(str(number), LevelSet(tuple(sources)), is_informed=is_informed)


def _is_file_here(word: str) -> bool:
    return ("." in word or "/" in word) and Path(word).is_file()
