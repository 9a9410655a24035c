"""The overhead of Ray per chunk: the same frozen CartPole run with local workers and with Ray.

python benchmarks/ray_overhead.py
python benchmarks/ray_overhead.py --nodes 1 2

With `--nodes`, Ray is a cluster of this many nodes on this machine, each with one CPU.
"""

import argparse
import secrets
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from os import environ
from typing import Any

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


@contextmanager
def cluster(n_nodes: int) -> Iterator[str]:
    """The address of a Ray cluster of nodes with one CPU each, on this machine."""
    nodes: Any = import_module("ray.cluster_utils").Cluster(
        True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    try:
        for _ in range(n_nodes - 1):
            nodes.add_node(num_cpus=1)
        nodes.wait_for_nodes()
        yield str(nodes.address)
    finally:
        nodes.shutdown()


def measure_nodes(options: argparse.Namespace) -> None:
    """One line per number of nodes and repeat; the start is that of the workers, in nodes that run already."""
    print("nodes  start (s)  per chunk (ms)")
    with tempfile.TemporaryDirectory(prefix="nr-", ignore_cleanup_errors=True) as folder:  # sockets need short paths
        environ.update(RAY_TMPDIR=folder, RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))
        environ["RAY_worker_niceness"] = "0"  # else Ray's workers give way to all other processes
        for _ in range(options.repeat):
            for n_nodes in options.nodes:
                with cluster(n_nodes) as address:
                    start, per_chunk = measure("ray", address, options.chunks, n_nodes)
                print(f"{n_nodes:5}  {start:9.1f}  {1000 * per_chunk:14.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=60)
    parser.add_argument("--workers", type=int, default=default_workers())
    parser.add_argument("--address", default="", help="of a Ray cluster; default: a Ray on this machine")
    parser.add_argument(
        "--nodes", type=int, nargs="+", default=[], help="sizes of clusters to measure, and nothing else"
    )
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    if options.nodes:
        measure_nodes(options)
        return
    print(f"{options.chunks} chunks of {CHUNK} trials, {options.workers} workers")
    print("executor  start (s)  per chunk (ms)")
    for _ in range(options.repeat):
        for executor, address in (("local", ""), ("ray", options.address)):
            start, per_chunk = measure(executor, address, options.chunks, options.workers)
            print(f"{executor:8}  {start:9.1f}  {1000 * per_chunk:14.1f}", flush=True)


if __name__ == "__main__":
    main()
