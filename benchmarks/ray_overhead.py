"""The overhead of Ray per chunk: the same frozen CartPole run with local workers and with Ray.

python benchmarks/ray_overhead.py
"""

import argparse
import time

import nappingrl
from nappingrl.trials.chunks import CHUNK
from nappingrl.trials.workers import default_workers

PROTOCOL, EPISODES = "0+1", 1  # short chunks, to make the overhead visible


def measure(executor: str, address: str, chunks: int, workers: int) -> tuple[float, float]:
    """Seconds until the workers are warm (two chunks each), and seconds per chunk from then on."""
    warm_at = 2 * workers * CHUNK * EPISODES
    started = time.perf_counter()
    progress: list[tuple[float, int]] = []

    def on_progress(done: int, total: int) -> None:
        if done >= warm_at and (not progress or done > progress[-1][1]):
            progress.append((time.perf_counter(), done))

    nappingrl.run(
        "cartpole", "ppo", "frozen", protocol=PROTOCOL, trials=chunks * CHUNK, workers=workers,
        executor=executor, address=address, on_progress=on_progress,
    )  # fmt: skip
    (warm, done), (end, total) = progress[0], progress[-1]
    return warm - started, (end - warm) / (total - done) * CHUNK * EPISODES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=60)
    parser.add_argument("--workers", type=int, default=default_workers())
    parser.add_argument("--address", default="", help="of a Ray cluster; default: a Ray on this machine")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    print(f"{options.chunks} chunks of {CHUNK} trials, {options.workers} workers")
    print("executor  start (s)  per chunk (ms)")
    for _ in range(options.repeat):
        for executor, address in (("local", ""), ("ray", options.address)):
            start, per_chunk = measure(executor, address, options.chunks, options.workers)
            print(f"{executor:8}  {start:9.1f}  {1000 * per_chunk:14.1f}", flush=True)


if __name__ == "__main__":
    main()
