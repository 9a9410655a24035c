"""False alarms and detection of the residual detector, offline: record episodes once, replay resampled trials.

python benchmarks/false_alarms.py record DOMAIN AGENT FOLDER --novelty TEXT --episodes 60+10 --rows 4
python benchmarks/false_alarms.py replay FOLDER --trials 30 --before 40 --after 40

`record` plays the frozen agent (`random`, `heuristic`, a shipped agent or a file) in the unchanged and in the changed
world, and keeps the transitions of each novelty in one file; it skips files that exist. `replay` draws trials from all
files of a folder: episodes before without replacement, and as many others after it, unchanged or changed.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import nappingrl
from nappingrl.agents.base import Agent
from nappingrl.detectors.residual import Residual, ResidualConfig
from nappingrl.domains import find_domain
from nappingrl.trials.engine import Engine
from nappingrl.trials.spec import RunSpec
from nappingrl.types import Decision, DomainSpec, Observations, Rows, Transition

Array = NDArray[Any]
UNCHANGED, CAUSES = "none", ("", "surprise", "drift", "start", "exchange", "contradiction", "strangeness")


class ScriptedPolicy(Agent):
    """Random actions, or the heuristic that gymnasium has for LunarLander."""

    embedding_dim = 1

    def __init__(self, name: str, domain: DomainSpec) -> None:
        self.name, self.domain, self.n_actions = name, domain, domain.n_actions
        self.observation_shape = domain.observation_low.shape
        if not domain.n_actions:
            self.action_low = domain.action_low.astype(np.float32)
            self.action_high = domain.action_high.astype(np.float32)
        self._rng = np.random.default_rng(0)

    def forward(self, observations: Observations) -> Decision:
        """Actions; nothing else is known."""
        m = len(observations)
        if self.name == "heuristic":
            actions = np.array([self._heuristic(observation) for observation in observations])
        elif self.n_actions:
            actions = self._rng.integers(self.n_actions, size=m)
        else:
            actions = self._rng.uniform(self.action_low, self.action_high, (m, len(self.domain.action_low)))
        actions = actions.astype(np.int64 if self.n_actions else np.float32)
        return Decision(actions, np.zeros((m, 1), np.float32), np.zeros((m, self.n_actions), np.float32))

    def _heuristic(self, observation: Array) -> Any:
        from gymnasium.envs.box2d.lunar_lander import heuristic

        class Env:
            continuous = not self.n_actions

        return heuristic(SimpleNamespace(unwrapped=Env), observation)


class Recorded(NamedTuple):
    """Transitions of several episodes, one after the other."""

    states: Array
    actions: Array
    next_states: Array
    rewards: Array
    terminated: Array
    truncated: Array
    starts: Array
    """Where each episode begins."""

    def episode(self, number: int) -> slice:
        """The steps of an episode."""
        ends = np.append(self.starts[1:], len(self.states))
        return slice(int(self.starts[number]), int(ends[number]))


def record(domain: str, agent_name: str, novelty: str, episodes: str, rows: int, seed: int) -> dict[str, Recorded]:
    """The unchanged and the changed episodes of the frozen agent."""
    run = RunSpec(domain, agent_name, "frozen", novelty=novelty, detector="never", protocol=episodes, trials=rows,
                  seed=seed).complete()  # fmt: skip
    is_scripted = agent_name in ("random", "heuristic")
    agent = ScriptedPolicy(agent_name, run.domain_spec) if is_scripted else nappingrl.load_agent(agent_name, domain)
    engine, played = Engine(run, agent, rows), []
    observe = engine.adaptation.observe

    def observe_and_keep(slots: Rows, t: Transition) -> Rows:
        numbers = engine._episode[slots] + engine.first_episode
        played.append((slots.copy(), numbers, t))
        return observe(slots, t)

    engine.adaptation.observe = observe_and_keep  # type: ignore[method-assign]
    engine.run_trials(run.trial_specs())
    slots, numbers = (np.concatenate([step[i] for step in played]) for i in (0, 1))
    fields = ("observations", "actions", "next_observations", "rewards", "terminated", "truncated")
    arrays = [np.concatenate([getattr(step[2], field) for step in played]) for field in fields]
    order = np.lexsort([np.arange(len(slots)), numbers, slots])
    out = {}
    for name, is_kept in (("unchanged", numbers[order] < 0), ("changed", numbers[order] >= 0)):
        kept = order[is_kept]
        keys = slots[kept] * 10**6 + numbers[kept]
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(kept) else np.zeros(0, np.int64)
        out[name] = Recorded(*(array[kept] for array in arrays), starts)
    return out


def save(path: Path, domain: str, agent: str, novelty: str, parts: dict[str, Recorded]) -> None:
    """Write what was recorded."""
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {f"{part}.{name}": array for part, r in parts.items() for name, array in r._asdict().items()}
    about = json.dumps({"domain": domain, "agent": agent, "novelty": novelty})
    np.savez_compressed(path, about=np.array(about), **arrays)


def load(path: Path) -> tuple[dict[str, str], dict[str, Recorded]]:
    """What `save` wrote."""
    with np.load(path) as arrays:
        about: dict[str, str] = json.loads(str(arrays["about"]))
        parts = {
            part: Recorded(*(arrays[f"{part}.{name}"] for name in Recorded._fields))
            for part in ("unchanged", "changed")
        }
    return about, parts


class Alarm(NamedTuple):
    """The first alarm of a trial; episode -1: none."""

    episode: int
    step: int
    n_steps: int
    """Steps after the change until then."""
    why: str


def replay(
    detector: Residual, unchanged: Recorded, after: Recorded, n_before: int, n_after: int, rng: np.random.Generator
) -> list[Alarm]:
    """Replay one trial in each row of the detector."""
    n = detector.n
    plans = [_plan(unchanged, after, n_before, n_after, rng) for _ in range(n)]
    detector.start(np.arange(n), -n_before)
    alarms = [Alarm(-1, -1, -1, "") for _ in range(n)]
    number, position, total = np.full(n, -n_before), np.zeros(n, np.int64), np.zeros(n, np.int64)
    running = np.arange(n)
    while len(running):
        steps = [plans[row][number[row] + n_before] for row in running]
        at = np.array([steps[i][1].start + position[row] for i, row in enumerate(running)])
        detector.step(running, _transition([source for source, _ in steps], at))
        position[running] += 1
        total[running] += number[running] >= 0
        for row in running[detector.context[running] > 0].tolist():
            why = f"{CAUSES[detector._cause[row]]}: {detector.explain(row)}"
            alarms[row] = Alarm(int(number[row]), int(position[row]), int(total[row]), why)
        is_over = np.array([at[i] + 1 == steps[i][1].stop for i in range(len(running))])
        ended = running[is_over]
        if len(ended):
            position[ended] = 0
            number[ended] += 1
            detector.end_episode(ended, np.zeros(len(ended)), number[ended])
        running = running[(detector.context[running] == 0) & (number[running] < n_after)]
    return alarms


def _plan(unchanged: Recorded, after: Recorded, n_before: int, n_after: int, rng: np.random.Generator) -> list[Any]:
    """Episodes of one trial, as (recording, steps)."""
    order = rng.permutation(len(unchanged.starts))
    before = [(unchanged, unchanged.episode(i)) for i in order[:n_before]]
    if after is unchanged:
        return before + [(unchanged, unchanged.episode(i)) for i in order[n_before : n_before + n_after]]
    return before + [(after, after.episode(i)) for i in rng.integers(len(after.starts), size=n_after)]


def _transition(sources: list[Recorded], at: Array) -> Transition:
    picked = [np.array([source[i][k] for source, k in zip(sources, at, strict=True)]) for i in range(6)]
    m = len(at)
    decision = Decision(picked[1], np.zeros((m, 1), np.float32), np.zeros((m, 0), np.float32))
    return Transition(picked[0], decision, *picked[1:])


def replay_file(path: Path, args: argparse.Namespace) -> None:
    """Print false alarms and detection of one recording."""
    about, parts = load(path)
    domain = find_domain(about["domain"])
    kinds = [UNCHANGED] if about["novelty"] == UNCHANGED else [about["novelty"]]
    for kind in kinds:
        unchanged = parts["unchanged"]
        after = unchanged if kind == UNCHANGED else parts["changed"]
        n_trials = args.trials if kind == UNCHANGED else args.changed_trials
        n_before, n_after = args.before, args.after if kind == UNCHANGED else min(args.after, 10)
        detector = Residual(n_trials, domain, ResidualConfig())
        began = time.perf_counter()
        alarms = replay(detector, unchanged, after, n_before, n_after, np.random.default_rng(args.seed))
        seconds = time.perf_counter() - began
        raised = [alarm for alarm in alarms if alarm.episode >= 0]
        steps = np.median([alarm.n_steps for alarm in raised]) if raised else float("nan")
        first = sum(alarm.episode == 0 for alarm in raised)
        print(f"{path.stem:44} {kind:28} {len(raised):3}/{n_trials:<3} alarms, {first:3} in the first episode, "
              f"median step {steps:5.0f}  {seconds:4.0f} s", flush=True)  # fmt: skip
        for alarm in raised[: args.why]:
            print(f"    episode {alarm.episode}, step {alarm.step}: {alarm.why}")
        if args.why and not raised and kind != UNCHANGED:
            print(f"    {detector.status(0)}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="play the frozen agent and keep its transitions")
    recording.add_argument("domain")
    recording.add_argument("agent")
    recording.add_argument("folder", type=Path)
    recording.add_argument("--novelty", default=UNCHANGED)
    recording.add_argument("--episodes", default="60+10", help="episodes of each row: unchanged+changed")
    recording.add_argument("--rows", type=int, default=4)
    recording.add_argument("--seed", type=int, default=5)
    replaying = commands.add_parser("replay", help="replay resampled trials through the detector")
    replaying.add_argument("folder", type=Path)
    replaying.add_argument("--only", default="", help="files whose name contains this text")
    replaying.add_argument("--trials", type=int, default=30)
    replaying.add_argument("--changed-trials", type=int, default=5)
    replaying.add_argument("--before", type=int, default=40)
    replaying.add_argument("--after", type=int, default=40)
    replaying.add_argument("--seed", type=int, default=0)
    replaying.add_argument("--why", type=int, default=0, help="explain this many alarms of each file")
    return parser


def main() -> int:
    """Run a command."""
    args = _parser().parse_args()
    if args.command == "replay":
        for path in sorted(path for path in args.folder.glob("*.npz") if args.only in path.name):
            replay_file(path, args)
        return 0
    words = [args.domain, Path(args.agent).stem, args.novelty]
    path = args.folder / ("_".join(words).replace("=", "").replace(";", "+").replace(" ", "") + ".npz")
    if not path.exists():
        parts = record(args.domain, args.agent, args.novelty, args.episodes, args.rows, args.seed)
        save(path, args.domain, args.agent, args.novelty, parts)
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
