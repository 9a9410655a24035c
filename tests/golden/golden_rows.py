"""Golden rows: small runs of every domain and method, and a sha256 of the rows of each.

Record them anew with `python tests/golden/golden_rows.py --record`, in a commit that changes rows on purpose. Without
`--record` the script prints every case whose rows differ. Floats depend on the CPU's vector units and on the kernels
that OpenBLAS chooses for it, so the file names the CPU type that it was recorded on and has hashes for each kernel:
OPENBLAS_CORETYPE=Haswell in front of the command records those of another one. Hashes of other kernels are dropped
where they are of another CPU type or of other source.
"""

import argparse
import contextlib
import hashlib
import importlib
import io
import json
import platform
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl
import threadpoolctl

from nappingrl._build import source_sha256

FILE = Path(__file__).with_name("rows.json")
RENAMED = {"return": "restored", "again": "recurred"}
"""Phases by their names at commit bb3bd05, where the hashes were recorded first."""
RENAMED_METHODS = {"/flip/": "/switch-on-failure/", "/napping-wiped/": "/napping-no-memory/"}
"""The same for methods, as they stand in a trial's id."""

LATER = {"acted", "why_not"}
"""Columns that came later, and are not in the hashes."""

_SEED = ["--seed", "5", "--workers", "1"]
_RULES = ("printed", "text", "revised", "fallback")


def _in(domain: str, agent: str, trials: int, protocol: str) -> list[str]:
    world = ["--env", domain] if "-v" in domain else [domain]
    return [*world, "--agent", agent, "--trials", str(trials), "--protocol", protocol, *_SEED]


def _cases() -> dict[str, list[str]]:
    cases: dict[str, list[str]] = {}

    def add(base: list[str], *words: str) -> None:
        cases[" ".join([*base, *words])] = [*base, *words]

    for domain, agent, trials, protocol in (
        ("cartpole", "ppo", 6, "6+14"),
        ("cartpole", "dqn", 4, "6+14"),
        ("mountaincar", "dqn", 2, "4+10"),
        ("mountaincar", "ppo-strong", 3, "4+12"),
        ("crossroad", "dqn", 8, "6+14"),
        ("crossroad", "ppo", 8, "6+14"),
        ("angrybirds", "dqn", 2, "2+10"),
        ("angrybirds", "dqn-rel", 2, "2+8"),
    ):
        base = _in(domain, agent, trials, protocol)
        add(base, "--method", "frozen")
        for rule in _RULES:
            add(base, "--method", "napping", "--rule", rule)
        add(base, "--method", "napping", "--guard")
        add(base, "--method", "napping-ucb")
        if domain != "angrybirds":  # 322 observations are too many for foresight
            add(base, "--method", "foresight", "--detector", "given")
            add(base, "--method", "foresight")
        if domain != "angrybirds" and (domain, agent) != ("mountaincar", "dqn"):
            for method in ("online", "finetune", "oracle"):
                add(base, "--method", method)
    for method in ("online", "finetune", "oracle"):
        add(_in("mountaincar", "dqn", 1, "1+6"), "--method", method)
    for domain, agent in (("cartpole", "ppo"), ("crossroad", "dqn")):
        base = _in(domain, agent, 4, "4+12")
        for method in ("random", "replay-success", "controller", "switch-on-failure", "napping-no-memory"):
            add(base, "--method", method)
        add(base, "--method", "napping", "--space", "raw", "--option", "choice=preference")
        add(base, "--method", "napping", "--option", "search=same-key", "layer=1")
        add(base, "--method", "foresight", "--guard")
        add(base, "--method", "online", "--guard")
    for detector in ("rolling-mean", "page-hinkley", "cusum", "adwin", "ks", "given", "residual", "never"):
        add(_in("cartpole", "ppo", 4, "20+12"), "--method", "napping", "--detector", detector)
    add(_in("cartpole", "ppo", 3, "40+6+6+6"), "--method", "foresight", "--strength", "0.5")
    for method in ("napping", "napping-ucb"):
        add(_in("cartpole", "ppo", 3, "4+6+6+6"), "--method", method, "--detector", "given")
    add(_in("cartpole", "ppo", 3, "1..6+4"), "--method", "napping", "--novelty", "none", "--detector", "given")
    add(_in("crossroad", "ppo", 2, "2+12"), "--method", "napping", "--novelty", "all")
    add(_in("angrybirds", "dqn", 1, "1+8"), "--method", "napping", "--novelty", "all")
    add(_in("angrybirds", "dqn", 2, "2+10"), "--method", "recall", "--detector", "given", "--novelty", "green-egg")
    for agent in ("naive", "naive-adaptation", "datalab", "replanner", "hydra"):
        add(_in("angrybirds", agent, 2, "2+6"), "--method", "frozen")
    add(_in("cartpole", "hydra", 1, "2+2"), "--method", "frozen")
    for env, agent, novelty in (
        ("Acrobot-v1", "dqn", "LINK_LENGTH_1=1.5; action-remap=2,1,0"),
        ("Pendulum-v1", "sac", "g=15"),
        ("MountainCarContinuous-v0", "sac", "power=0.0008"),
    ):
        base = _in(env, agent, 1, "2+3")
        for method in ("frozen", "napping", "foresight"):
            add(base, "--method", method, "--novelty", novelty)
        add(base, "--method", "napping", "--guard", "--novelty", novelty)
    return cases


CASES = _cases()


def rows_sha256(rows: pl.DataFrame) -> str:
    """Hash of every value of the rows, but for the hash at the end of a trial's id."""
    digest = hashlib.sha256()
    for name in rows.columns:
        if name in LATER:
            continue
        column = rows[name]
        digest.update(f"{name} {column.dtype}\n".encode())
        if name == "trial":
            column = column.str.replace("-[0-9a-f]{8}$", "").str.replace_many(RENAMED_METHODS)
        if column.dtype == pl.String:
            digest.update("\n".join(RENAMED.get(value, value) for value in column.to_list()).encode())
        else:
            digest.update(repr(column.null_count()).encode() + column.fill_null(-1).to_numpy().tobytes())
    return digest.hexdigest()


def run_case(words: list[str]) -> str:
    """Run `napping run ...` in this process and hash its rows."""
    from nappingrl.cli import main

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            main(["run", *words, "--out", str(out)])
        return rows_sha256(pl.concat(pl.read_parquet(part) for part in sorted(out.glob("part-*.parquet"))))


def cpu_type() -> str:
    """The name of this machine's CPU, and whether it has AVX-512: virtual machines give many types the same name."""
    try:
        words = dict(line.split(":", 1) for line in Path("/proc/cpuinfo").read_text().splitlines() if ":" in line)
        names = {name.strip(): text.strip() for name, text in words.items()}
        return names["model name"] + ", AVX-512" * ("avx512f" in names["flags"].split())
    except (OSError, KeyError):
        return f"{platform.machine()} {platform.processor()}".strip()


def blas_kernels() -> str:
    """The kernels that numpy's BLAS has chosen: Haswell, SkylakeX."""
    importlib.import_module("numpy")  # its BLAS is known once it is loaded
    return next(info["architecture"] for info in threadpoolctl.threadpool_info() if info["user_api"] == "blas")


def origin() -> dict[str, str]:
    """What hashes in one file share."""
    return {"cpu": cpu_type(), "source_sha256": source_sha256()}


def is_of_this(stored: dict[str, Any]) -> bool:
    """Whether a file was recorded on this type of CPU with this source."""
    return stored.items() >= origin().items()


def merge(stored: dict[str, Any], rows: dict[str, str]) -> dict[str, Any]:
    """The content of the file with these rows for the present kernels."""
    return origin() | {"rows": (stored["rows"] if is_of_this(stored) else {}) | {blas_kernels(): rows}}


def main() -> None:
    """Record or compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", action="store_true", help="write the hashes anew")
    parser.add_argument("--only", default="", help="only cases that contain this text")
    arguments = parser.parse_args()
    stored = json.loads(FILE.read_text()) if FILE.exists() else {"rows": {}}
    if arguments.record and arguments.only and not is_of_this(stored):
        sys.exit(f"{FILE} is of another CPU type or of other source; record every case: leave --only out")
    recorded = stored["rows"].get(blas_kernels(), {})
    found, n_other = {}, 0
    for name, words in CASES.items():
        if arguments.only not in name:
            continue
        started = time.perf_counter()
        try:
            found[name] = run_case(words)
        except SystemExit as error:
            sys.exit(f"napping run {name}: ended with {error}")
        is_same = recorded.get(name) == found[name]
        n_other += not is_same
        print(f"{'same ' if is_same else 'OTHER'} {time.perf_counter() - started:5.1f} s  {name}", flush=True)
    if arguments.record:
        FILE.write_text(json.dumps(merge(stored, recorded | found if arguments.only else found), indent=1) + "\n")
        print(f"recorded {len(found)} cases in {FILE}")
    elif n_other:
        sys.exit(f"{n_other} of {len(found)} cases have other rows")


if __name__ == "__main__":
    main()
