"""What a chunk costs besides its trials, in CPU time, for the chunk sizes of `trials/chunks.py`.

python benchmarks/chunk_overhead.py

Overhead is what a worker does once per chunk: it builds an engine and plays one episode of one trial (which is also
work, so the share is a little too high). The rows, packed, sent, unpacked and written as a part, cost the same in
chunks of any size. The best of --rounds, after a run that compiles the kernels.
"""

import argparse
import pickle
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from threadpoolctl import threadpool_limits

from nappingrl.agents import load
from nappingrl.trials.chunks import chunk_size
from nappingrl.trials.engine import Engine
from nappingrl.trials.manifest import make_manifest
from nappingrl.trials.parts import write_part
from nappingrl.trials.spec import RunSpec

CASES = (
    ("cartpole", "ppo", "frozen"),
    ("cartpole", "ppo", "napping"),
    ("cartpole", "dqn", "napping"),
    ("mountaincar", "dqn", "frozen"),
    ("crossroad", "ppo", "frozen"),
    ("crossroad", "ppo", "napping"),
    ("cartpole", "ppo", "foresight"),
    ("angrybirds", "naive", "frozen"),
)


def cpu(function: Callable[[], object], rounds: int) -> float:
    """The least CPU seconds of a call."""
    spent = []
    for _ in range(rounds):
        started = time.process_time()
        function()
        spent.append(time.process_time() - started)
    return min(spent)


def measure(domain: str, agent: str, method: str, rounds: int) -> tuple[int, float, float, float]:
    """Trials of a chunk, its CPU seconds, those that are overhead, and those that its rows take."""
    spec = RunSpec(domain, agent, method, seed=3).complete()
    size, loaded = chunk_size(spec), load(spec.agent, domain)
    spec, one = replace(spec, trials=size), replace(spec, trials=1, protocol="0+1")
    Engine(spec, loaded).run_trials(spec.trial_specs(0, 2))
    rows = Engine(spec, loaded).run_trials(spec.trial_specs())
    run = cpu(lambda: Engine(spec, loaded).run_trials(spec.trial_specs()), 1)
    fixed = cpu(lambda: Engine(one, loaded).run_trials(one.trial_specs()), rounds)
    manifest = make_manifest(spec, loaded.sha256, "")
    with tempfile.TemporaryDirectory() as folder:

        def hand_over() -> None:
            write_part(Path(folder, "part"), pickle.loads(pickle.dumps(rows)), manifest, 0)

        handed = cpu(hand_over, rounds)
    return size, run + handed, fixed, handed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs=3, action="append", metavar=("DOMAIN", "AGENT", "METHOD"))
    options = parser.parse_args()
    print("| domain | agent | method | trials per chunk | CPU s | rows (ms) | overhead (ms) | share |")
    print("|---|---|---|---|---|---|---|---|")
    with threadpool_limits(1):
        for case in options.only or CASES:
            size, whole, overhead, rows = measure(*case, options.rounds)
            times = f"{whole:.2f} | {1000 * rows:.1f} | {1000 * overhead:.1f} | {100 * overhead / whole:.2f} %"
            print(f"| {' | '.join(case)} | {size} | {times} |", flush=True)


if __name__ == "__main__":
    main()
