"""Files of torch.save: equal to torch.load, and other tensors, storages and pickles refused with bounded memory."""

import io
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bounded_memory import refusal
from nappingrl.agents.sb3 import tensors
from nappingrl.agents.sb3.tensors import read_tensors
from nappingrl.errors import BadAgentError

LIMIT = 1 << 24


def saved(value: Any, is_new: bool = True) -> bytes:
    """What torch.save writes, in the format of today or of torch before 1.6."""
    content = io.BytesIO()
    torch.save(value, content, _use_new_zipfile_serialization=is_new)
    return content.getvalue()


@pytest.mark.parametrize("is_new", [True, False])
def test_parity_with_torch(is_new: bool) -> None:
    """Float types, views, parameters, shared storages and nested dictionaries."""
    matrix = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    state = OrderedDict(
        plain=matrix,
        transposed=matrix.T,
        part=matrix[1:4, 1],
        expanded=torch.ones(1).expand(4),
        parameter=torch.nn.Parameter(matrix),
        double=matrix.double(),
        half=matrix.half(),
        bfloat=matrix.bfloat16(),
        scalar=torch.tensor(3.0),
        empty=torch.zeros(0),
        count=torch.tensor([1, 2]),
        nested={0: {"step": torch.tensor(7.0), "lr": 0.1}},
    )
    state._metadata = {"": {"version": 1}}  # type: ignore[attr-defined]  # as modules add it
    found = read_tensors(saved(state, is_new), LIMIT)
    assert list(found) == list(state)
    assert found["nested"][0]["lr"] == 0.1
    assert found["nested"][0]["step"] == 7.0
    for name, tensor in state.items():
        if isinstance(tensor, torch.Tensor):
            assert found[name].dtype == (np.int64 if name == "count" else np.float32)
            np.testing.assert_array_equal(found[name], tensor.detach().float().numpy())


OTHERS = {
    "sparse": lambda: torch.eye(3).to_sparse(),
    "sparse ": lambda: torch.eye(3).to_sparse_csr(),
    "quantised": lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8),
    "meta": lambda: torch.zeros(3, device="meta"),
    "ComplexFloatStorage": lambda: torch.zeros(3, dtype=torch.complex64),
    "BoolStorage": lambda: torch.zeros(3, dtype=torch.bool),
    "_rebuild_tensor_v3": lambda: torch.zeros(3, dtype=torch.float8_e4m3fn),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
}


@pytest.mark.filterwarnings("ignore")  # torch says that sparse CSR, quantised and nested tensors are not finished
@pytest.mark.parametrize("word", OTHERS)
def test_other_tensors_are_named(word: str) -> None:
    """Sparse, quantised, meta, complex and nested tensors."""
    with pytest.raises(BadAgentError, match=word.strip()):
        read_tensors(saved({"a": OTHERS[word]()}), LIMIT)


def rewritten(content: bytes, old: bytes = b"", new: bytes = b"", **members: bytes) -> bytes:
    """The zip of torch.save with bytes of its pickle replaced, or members."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as before, zipfile.ZipFile(out, "w") as after:
        for name in before.namelist():
            data = members.get(name.rpartition("/")[2], before.read(name))
            if name.endswith("data.pkl"):
                assert old in data
                data = data.replace(old, new)
            after.writestr(name, data)
    return out.getvalue()


def test_tensor_beyond_its_storage() -> None:
    """torch.load would enlarge the storage, and show what was in that memory."""
    good = saved({"a": torch.zeros(77)})
    with pytest.raises(BadAgentError, match=r"shape \(250,\) that is larger than its storage of 77"):
        read_tensors(rewritten(good, b"KM\x85q", b"K\xfa\x85q"), LIMIT)
    with pytest.raises(BadAgentError, match="storage '0'"):
        read_tensors(rewritten(good, **{"0": bytes(7)}), LIMIT)
    with pytest.raises(BadAgentError, match="larger than 16,777,216"):
        read_tensors(saved({"a": torch.zeros(1).expand(1 << 30)}), LIMIT)
    shared = torch.zeros(1000)
    with pytest.raises(BadAgentError, match="larger than 20,000"):
        read_tensors(saved({str(i): shared for i in range(6)}), 20_000)


def test_dictionaries_that_hold_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """2^30 entries in a kilobyte, and a dictionary within itself."""
    monkeypatch.setattr(tensors, "MAX_OPCODES", 10_000)
    nested: dict[Any, Any] = {}
    for _ in range(7):
        nested = dict.fromkeys(range(20), nested)
    with pytest.raises(BadAgentError, match="more than 10,000 entries"):
        read_tensors(saved(nested), LIMIT)
    cycle: dict[Any, Any] = {}
    cycle["a"] = cycle
    with pytest.raises(BadAgentError, match="levels"):
        read_tensors(saved(cycle), LIMIT)


@pytest.mark.parametrize("content", [b"", b"PK", b"text", b"\x80\x02.", pickle.dumps({"a": 1}), saved([1]), saved(3)])
def test_other_files_are_refused(content: bytes) -> None:
    """One of the two errors that the reader of zips catches."""
    with pytest.raises((BadAgentError, OSError)) as caught:
        read_tensors(content, LIMIT)
    assert "\n" not in str(caught.value)


class Call:
    """Pickles as a call of a function."""

    def __init__(self, function: Any, *args: Any) -> None:
        self.call = function, args

    def __reduce__(self) -> Any:
        """What is called."""
        return self.call


HOSTILE = {
    "memo": rewritten(saved({"a": 1}), **{"data.pkl": b"\x80\x02Nr\xff\xff\xff\x1f."}),
    "bytearray": saved({"a": Call(bytearray, 10**10)}),
    "tensor": saved({"a": Call(torch.Tensor, 10**10)}),
    "legacy": saved({"a": torch.zeros(77)}, is_new=False).replace(b"KM", b"J\xff\xff\xff\x7f"),
    "strings": rewritten(saved({"a": 1}), **{"data.pkl": b"\x80\x02\x8d" + (1 << 40).to_bytes(8, "little") + b"."}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_memory_is_bounded(name: str, tmp_path: Path) -> None:
    """Small files that ask for gigabytes are refused in a process that has 400 MB more than it needs."""
    (tmp_path / "file").write_bytes(HOSTILE[name])
    reader = "from nappingrl.agents.sb3.tensors import read_tensors"
    assert refusal(tmp_path / "file", reader, "read_tensors(path.read_bytes(), 1 << 24)", 400_000_000).startswith("it ")
