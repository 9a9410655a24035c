"""VecNormalize statistics: parity with SB3, old pickles, refusals, and no pickle is ever run."""

import os
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from bounded_memory import refusal
from nappingrl import agents
from nappingrl.agents.sb3 import vecnormalize
from nappingrl.errors import BadAgentError


@pytest.fixture
def statistics() -> VecNormalize:
    """Statistics of a CartPole that was pushed to the right for a while."""
    envs = VecNormalize(DummyVecEnv([lambda: gymnasium.make("CartPole-v1")]), clip_obs=1.5, epsilon=1e-4)
    envs.seed(3)
    envs.reset()
    for _ in range(60):
        envs.step(np.array([1]))
    return envs


@pytest.mark.parametrize("kind", ["ppo", "dqn"])
@pytest.mark.parametrize("place", ["vecnormalize.pkl", "agent/vecnormalize.pkl"])
def test_parity(
    kind: str,
    place: str,
    statistics: VecNormalize,
    make_model: Any,
    parity: Any,
    observations: NDArray[np.float32],
    tmp_path: Path,
) -> None:
    """The statistics beside a zip are found and applied as SB3 applies them."""
    model = make_model(kind)
    model.save(tmp_path / "agent.zip")
    (tmp_path / place).parent.mkdir(exist_ok=True)
    statistics.save(str(tmp_path / place))
    fed = statistics.normalize_obs(observations)
    parity(agents.load(tmp_path / "agent.zip"), model, observations, fed)
    parity(agents.load(tmp_path / "agent.zip", normaliser=tmp_path / place), model, observations, fed)
    parity(agents.load(tmp_path / "agent.zip", normaliser=None), model, observations)
    parity(agents.load(model), model, observations)
    parity(agents.load(model, normaliser=str(tmp_path / place)), model, observations, fed)
    hashes = {agents.load(tmp_path / "agent.zip", normaliser=way).sha256 for way in ("auto", None)}
    assert len(hashes) == 2


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_every_protocol(protocol: int, statistics: VecNormalize, tmp_path: Path) -> None:
    """Arrays and scalars are rebuilt bit by bit from any protocol, C or Fortran order, any float and byte order."""
    assert not isinstance(statistics.obs_rms, dict)
    rms = statistics.obs_rms
    statistics.epsilon = np.float64(1e-4)  # type: ignore[assignment]
    rms.mean = np.asfortranarray(rms.mean.reshape(2, 2)).astype(">f8")
    rms.var = rms.var.reshape(2, 2).astype(np.float32)  # type: ignore[assignment]
    (tmp_path / "v.pkl").write_bytes(pickle.dumps(statistics, protocol))
    read = vecnormalize.read(tmp_path / "v.pkl")
    assert read is not None
    np.testing.assert_array_equal(read.mean, rms.mean)
    np.testing.assert_array_equal(read.var, rms.var)
    assert (read.epsilon, read.clip) == (1e-4, 1.5)


def test_pickle_of_old_gym(statistics: VecNormalize, tmp_path: Path) -> None:
    """Classes that are not installed do not matter, nor does where numpy kept its functions."""
    content = pickle.dumps(statistics, protocol=2)
    for new, old in (
        (b"cgymnasium.spaces.box\n", b"cgym.spaces.box\n"),
        (b"cgymnasium.spaces.discrete\n", b"cgym.spaces.discrete\n"),
        (b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n"),
        (b"cstable_baselines3.common", b"cold_stable_baselines3.common"),
    ):
        assert new in content
        content = content.replace(new, old)
    (tmp_path / "v.pkl").write_bytes(content)
    read = vecnormalize.read(tmp_path / "v.pkl")
    assert read is not None
    assert not isinstance(statistics.obs_rms, dict)
    np.testing.assert_array_equal(read.mean, statistics.obs_rms.mean)


def test_reward_only(statistics: VecNormalize, tmp_path: Path) -> None:
    """norm_obs=False means no normaliser."""
    statistics.norm_obs = False
    statistics.save(str(tmp_path / "v.pkl"))
    assert vecnormalize.read(tmp_path / "v.pkl") is None


def test_refusals(make_model: Any, constant: Any, statistics: VecNormalize, tmp_path: Path) -> None:
    """What holds no usable statistics is refused in one line that names the file."""
    whole = pickle.dumps(statistics)
    space = spaces.Dict({"a": spaces.Box(-1, 1, (3,), np.float32)})
    dictionary = pickle.dumps(VecNormalize(DummyVecEnv([lambda: constant(space)])))
    statistics.obs_rms.var = np.full(4, -1.0)  # type: ignore[union-attr]
    negative = pickle.dumps(statistics)
    statistics.obs_rms.mean = np.array(["a", None], object)  # type: ignore[union-attr]
    objects = pickle.dumps(statistics)
    bad = [b"", b"hello", whole[: len(whole) // 2], dictionary, negative, objects]
    bad += [pickle.dumps(value) for value in ({"obs_rms": 1}, 3, np.zeros(3), OrderedDict(a=1))]
    for content in bad:
        (tmp_path / "v.pkl").write_bytes(content)
        with pytest.raises(BadAgentError) as caught:
            vecnormalize.read(tmp_path / "v.pkl")
        assert "v.pkl" in str(caught.value)
        assert "\n" not in str(caught.value)
    with pytest.raises(BadAgentError, match=r"missing\.pkl"):
        vecnormalize.read(tmp_path / "missing.pkl")
    model = make_model("ppo", gymnasium.make("MountainCar-v0"))
    model.save(tmp_path / "agent.zip")
    (tmp_path / "vecnormalize.pkl").write_bytes(whole)
    with pytest.raises(BadAgentError, match=r"shape \(4,\).*normaliser=None"):
        agents.load(tmp_path / "agent.zip")


def test_nothing_is_run(statistics: VecNormalize, trap: Any, make_model: Any, tmp_path: Path) -> None:
    """Pickles that run code: alone, among the statistics, by every opcode that calls something."""
    marker, content, _ = trap
    body = content[2:-1]  # without PROTO and STOP
    spoiled = pickle.dumps(statistics, protocol=2)[:-1] + b"0" + content[2:]  # the statistics are dropped
    shell = f"cposix\nsystem\n(S'touch {marker}'\ntR.".encode()
    instance = f"(S'touch {marker}'\niposix\nsystem\n.".encode()
    object_ = f"(cposix\nsystem\nS'touch {marker}'\no.".encode()
    evaluated = f"c__builtin__\neval\n(S'open({str(marker)!r}, \"w\")'\ntR.".encode()
    for bad in (content, spoiled, shell, instance, object_, evaluated):
        (tmp_path / "v.pkl").write_bytes(bad)
        with pytest.raises(BadAgentError):
            vecnormalize.read(tmp_path / "v.pkl")
    hidden = b"\x80\x02" + body + b"0" + pickle.dumps(statistics, protocol=2)[2:]  # the trap first, then dropped
    (tmp_path / "vecnormalize.pkl").write_bytes(hidden)
    make_model("ppo").save(tmp_path / "agent.zip")
    assert agents.load(tmp_path / "agent.zip").normaliser is not None  # type: ignore[attr-defined]
    assert not marker.exists()
    pickle.loads(hidden)
    assert marker.exists(), "the same bytes are dangerous for a plain unpickler"


def test_paths_that_are_no_files(make_model: Any, tmp_path: Path) -> None:
    """Devices, pipes, folders and endless files are refused before they are read."""
    make_model("ppo").save(tmp_path / "agent.zip")
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    reasons = {"/dev/zero": "a device", tmp_path / "pipe": "a named pipe", tmp_path: "a folder"}
    for path, reason in (reasons | {tmp_path / "sparse": "at most 16,777,216"}).items():
        with pytest.raises(BadAgentError, match=f"{reason}.*normaliser=None"):
            agents.load(tmp_path / "agent.zip", normaliser=path)


@pytest.mark.parametrize(
    ("name", "value"),
    [("clip_obs", 10**400), ("clip_obs", -(10**400)), ("clip_obs", float("nan")), ("clip_obs", 0), ("clip_obs", "10"),
     ("epsilon", float("nan")), ("epsilon", float("inf")), ("epsilon", -1.0), ("epsilon", None), ("epsilon", 10**400),
     ("var", np.full(4, -1.0)), ("var", np.full(4, np.nan)), ("mean", np.full(4, np.inf)), ("var", np.ones(3)),
     ("mean", np.float64(1.0)), ("mean", np.ones(4, np.int64)), ("mean", np.ones(4, complex))],
)  # fmt: skip
def test_impossible_numbers(name: str, value: Any, statistics: VecNormalize, tmp_path: Path) -> None:
    """Numbers that do not standardise are refused in one line."""
    setattr(statistics if name in ("clip_obs", "epsilon") else statistics.obs_rms, name, value)
    (tmp_path / "v.pkl").write_bytes(pickle.dumps(statistics))
    with pytest.raises(BadAgentError, match=r"^normaliser file '.*v\.pkl': [^\n]*$"):
        vecnormalize.read(tmp_path / "v.pkl")


HOSTILE = {
    "memo": b"\x80\x02Nr\xff\xff\xff\x1f.",  # LONG_BINPUT: nine bytes for a memo of 4 GiB
    "bytes": b"\x80\x05\x8e" + (1 << 40).to_bytes(8, "little") + b".",
    "operations": b"\x80\x04" + b"N0" * 2_000_000 + b"N.",
    "names": b"\x80\x02" + b"".join(b"cm\nname%d\n0" % i for i in range(500_000)) + b"N.",
    "nested": b"\x80\x02" + b"]" * 3_000_000 + b"a" * 2_999_999 + b".",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_memory_is_bounded(name: str, tmp_path: Path) -> None:
    """Pickles that ask for gigabytes, or for long work, are refused in a process that has 300 MB more than it needs."""
    (tmp_path / "v.pkl").write_bytes(HOSTILE[name])
    reader = "from nappingrl.agents.sb3 import vecnormalize"
    assert refusal(tmp_path / "v.pkl", reader, "vecnormalize.read(path)", 300_000_000).startswith("normaliser file")
