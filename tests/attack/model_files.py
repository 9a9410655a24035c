"""Mutated model files (SB3 zips, normalisers, cards, levels): each is refused with one line, or loaded and used."""

import io
import json
import os
import pickle
import pickletools
import resource
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.random import Generator
from stable_baselines3 import DQN, PPO, SAC
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from nappingrl import agents
from nappingrl.domains.angrybirds.levels import files as levels
from nappingrl.errors import NappingError
from tests.attack.outcome import Outcome

N_FILES = 6000
MAX_GROWTH = 800_000
"""kB of resident memory that all files together may cost."""
MAX_LINE = 1000
LEVEL = (
    "<Level width='2'><Camera x='0' y='-1' minWidth='20' maxWidth='30'/><Birds><Bird type='BirdRed'/></Birds>"
    "<Slingshot x='-8' y='-2.5'/><GameObjects><Block type='RectBig' material='wood' x='1' y='-3' rotation='0'/>"
    "<Pig type='BasicSmall' material='' x='2' y='-3' rotation='0'/></GameObjects></Level>"
)
VALUES: list[Any] = [
    None, True, -1, 0, 1, 3, 10**9, 2**63, 10**400, 0.5, 1e308, float("nan"), float("inf"), "", "x" * 5000, "1" * 5000,
    "<class 'os.system'>", "[nan nan]", "[" * 100, "\ud800", "\n", [], {}, [[]], [0], [-1, 4], [10**12], {"a": 1},
]  # fmt: skip
Files = dict[str, bytes]


def base_files(folder: Path) -> Files:
    """Whole files of every kind, by name; the suffix tells how they are used."""
    torch.set_num_threads(1)
    made: Files = {}
    envs = VecNormalize(DummyVecEnv([lambda: gymnasium.make("CartPole-v1")]))
    envs.reset()
    for protocol in (2, 5):
        made[f"protocol-{protocol}.pkl"] = pickle.dumps(envs, protocol)
    for kind, env, options in (
        (PPO, "CartPole-v1", {"n_steps": 32, "batch_size": 32}),
        (DQN, "CartPole-v1", {"buffer_size": 50, "learning_starts": 10}),
        (SAC, "Pendulum-v1", {"buffer_size": 50, "learning_starts": 10}),
    ):
        model: Any = kind("MlpPolicy", env, policy_kwargs={"net_arch": [8]}, device="cpu", seed=0, **options)
        model.learn(32)
        model.save(folder / "model.zip")
        made[f"{kind.__name__}.zip"] = (folder / "model.zip").read_bytes()
        old = io.BytesIO()
        torch.save(model.policy.state_dict(), old, _use_new_zipfile_serialization=False)
        with_old = partial(_instead, old.getvalue())
        made[f"{kind.__name__}-old.zip"] = edit_zip(made[f"{kind.__name__}.zip"], "policy.pth", with_old)
    made["card.json"] = json.dumps(agents.card("cartpole", "ppo") | {"weights": "card.npz"}).encode()
    weights = io.BytesIO()
    np.savez_compressed(weights, **agents.load("ppo", "cartpole").weights())  # type: ignore[attr-defined]
    made["card.npz"] = weights.getvalue()
    return made | {"level.xml": LEVEL.encode()}


def _instead(new: bytes, old: bytes) -> bytes:
    return new


def edit_zip(content: bytes, name: str, edit: Callable[[bytes], bytes]) -> bytes:
    """The zip with one of its members edited."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.namelist():
            new.writestr(member, edit(old.read(member)) if member == name else old.read(member))
    return out.getvalue()


def mutate(name: str, content: bytes, rng: Generator) -> bytes:
    """Another file, near to this one."""
    choice = rng.integers(4)
    if name.endswith(".zip") and choice:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            member = str(rng.choice(["data", *(name for name in archive.namelist() if name.startswith("policy"))]))
        return edit_zip(content, member, lambda data: mutate_member(member, data, rng))
    if name.endswith(".json") and choice:
        return mutate_json(content, rng)
    if name.endswith(".pkl") and choice:
        return mutate_pickle(content, rng)
    return mutate_bytes(content, rng)


def mutate_member(member: str, content: bytes, rng: Generator) -> bytes:
    """Another member of an SB3 zip."""
    if member == "data":
        return mutate_json(content, rng)
    if content[:2] != b"PK" or not rng.integers(4):
        return mutate_bytes(content, rng)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        inner = str(rng.choice(archive.namelist()))
        pickled = next(name for name in archive.namelist() if name.endswith("data.pkl"))
    if rng.integers(3):
        return edit_zip(content, pickled, lambda data: mutate_pickle(data, rng))
    return edit_zip(content, inner, lambda data: mutate_bytes(data, rng))


def mutate_json(content: bytes, rng: Generator) -> bytes:
    """One to three entries, at any depth, take other values or vanish."""
    data = json.loads(content)
    for _ in range(rng.integers(1, 4)):
        place, key = data, ""
        while isinstance(place, dict) and place:
            parent, key = place, str(rng.choice(list(place)))
            place = parent[key]
            if not rng.integers(3):
                break
        if key and rng.integers(6):
            parent[key] = VALUES[rng.integers(len(VALUES))]
        elif key:
            parent.pop(key)
    return json.dumps(data).encode()


def mutate_pickle(content: bytes, rng: Generator) -> bytes:
    """Opcodes are removed, repeated, exchanged and inserted, their arguments too."""
    codes = list(pickletools.genops(content))
    ends = [place for _, _, place in codes[1:]] + [len(content)]
    pieces = [content[place:end] for (_, _, place), end in zip(codes, ends, strict=True)]
    for _ in range(rng.integers(1, 5)):
        at, other = rng.integers(len(pieces), size=2)
        what = rng.integers(5)
        if what == 0:
            pieces[at] = b""
        elif what == 1:
            pieces[at] = pieces[other]
        elif what == 2:
            pieces[at] += pieces[other]
        elif what == 3 and len(pieces[at]) > 1:
            pieces[at] = pieces[at][:1] + mutate_bytes(pieces[at][1:], rng)
        else:
            opcode = pickletools.opcodes[rng.integers(len(pickletools.opcodes))]
            pieces[at] = opcode.code.encode("latin1") + rng.bytes(int(rng.integers(9))) + pieces[at]
    return b"".join(pieces)


def mutate_bytes(content: bytes, rng: Generator) -> bytes:
    """Bytes are flipped, cut, repeated, overwritten with large numbers or inserted."""
    data = bytearray(content)
    for _ in range(rng.integers(1, 6)):
        at, n = int(rng.integers(len(data) + 1)), int(rng.integers(1, 65))
        what = rng.integers(6)
        if what == 0 and data:
            data[min(at, len(data) - 1)] ^= 1 << int(rng.integers(8))
        elif what == 1:
            del data[at : at + n]
        elif what == 2:
            data[at:at] = data[at : at + n]
        elif what == 3:
            data[at : at + 4] = rng.choice([b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", bytes(4), b"\x00\x00\x00\x40"])
        elif what == 4:
            data[at:at] = rng.bytes(n)
        elif not rng.integers(20):
            del data[at:]
    return bytes(data)


def use(path: Path, folder: Path) -> None:
    """Load a file and use what was loaded."""
    if path.suffix == ".xml":
        levels.text_of(levels.read(path))
        return
    if path.suffix == ".pkl":
        agent = agents.load(folder / "PPO.zip", normaliser=path)
    else:
        agent = agents.load(folder / "card.json" if path.suffix == ".npz" else path)
    shape = agent.observation_shape
    assert shape is not None
    decision = agent.forward(np.zeros((3, *shape), np.float32))
    assert len(decision.actions) == 3
    if agent.n_actions:
        assert ((decision.actions >= 0) & (decision.actions < agent.n_actions)).all()


def attack(budget: float, seed: int) -> Outcome:
    """Mutate files of every kind; then give paths that are no files."""
    outcome, counts = Outcome("model_files"), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        originals = base_files(folder)
        for file, content in originals.items():
            (folder / file).write_bytes(content)
        for file in originals:
            use(folder / file, folder)  # a failure here is one of the attack
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for i in range(max(int(N_FILES * budget), len(originals))):
            rng = np.random.default_rng([seed, i])
            file = list(originals)[i % len(originals)]
            path = folder / file
            path.write_bytes(mutate(file, originals[file], rng))
            counts[path.suffix] += 1
            try_file(path, folder, outcome, f"{file}, mutation {i} of seed {seed}")
            path.write_bytes(originals[file])
        os.mkfifo(folder / "pipe")
        for odd in ("/dev/zero", "/dev/stdin", "/", folder / "pipe", "a\0b", "x" * 300, "~nobody-at-all/x.zip"):
            try_file(Path(odd), folder, outcome, f"path {str(odd)[:40]!r}")
        growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    if growth > MAX_GROWTH:
        outcome.fail(f"memory grew by {growth // 1000} MB; seed {seed}")
    outcome.notes.append(", ".join(f"{n} {suffix}" for suffix, n in counts.items()) + f"; +{growth // 1000} MB")
    return outcome


def try_file(path: Path, folder: Path, outcome: Outcome, what: str) -> None:
    """Use a file; refused in one line, or used without an error."""
    outcome.tried += 1
    try:
        with np.errstate(all="ignore"):
            use(path, folder)
        outcome.survived += 1
    except NappingError as error:
        outcome.refused += 1
        if "\n" in str(error) or len(str(error)) > MAX_LINE:
            outcome.fail(f"{what}: not one clear line: {error!r:.300}")
    except Exception as error:  # what an attack looks for
        outcome.fail(f"{what}: {type(error).__name__}: {error}")
