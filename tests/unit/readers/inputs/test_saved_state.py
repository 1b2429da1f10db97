"""A state dict inside another file, as an old exported program keeps its weights."""

from __future__ import annotations

import zipfile

import pytest

from aotidoctor.model.artifact import PickledState
from aotidoctor.model.errors import InputsError
from aotidoctor.readers.inputs.saved_weights import read_saved_state

torch = pytest.importorskip("torch")


def place(tmp_path, value, before=b"-" * 100):
    torch.save(value, tmp_path / "state.pt")
    data = (tmp_path / "state.pt").read_bytes()
    (tmp_path / "archive").write_bytes(before + data + b"-" * 30)
    return str(tmp_path / "archive"), PickledState(member="state.pt", offset=len(before), size=len(data))


def test_tensors(tmp_path):
    base = torch.arange(12, dtype=torch.float32)
    state = {
        "w": torch.nn.Parameter(base.reshape(3, 4).t()),
        "tail": base[8:],
        "half": torch.ones(2, dtype=torch.bfloat16),
    }
    found = read_saved_state(*place(tmp_path, state))
    assert list(found) == ["w", "tail", "half"]
    assert [item.parameter for item in found.values()] == [True, False, False]
    assert (found["w"].stored.shape, found["w"].stored.stride) == ((4, 3), (1, 4))
    assert (found["tail"].stored.shape, found["tail"].stored.offset) == ((4,), 8)
    assert found["tail"].stored.content.read_at(32, 16) == base[8:].numpy().tobytes()
    assert (found["half"].stored.dtype, found["half"].stored.content.size) == ("bfloat16", 4)


def test_what_is_no_tensor_is_listed(tmp_path):
    found = read_saved_state(*place(tmp_path, {"a": 5, "b": [torch.ones(1)]}))
    assert [(name, item.stored.problem) for name, item in found.items()] == [("a", "no tensor"), ("b", "no tensor")]


def test_another_kind_of_tensor_has_no_bytes_to_compare(tmp_path):
    found = read_saved_state(*place(tmp_path, {"s": torch.eye(3).to_sparse()}))
    assert (found["s"].stored.content, found["s"].stored.problem) == (None, "a tensor of a different kind (sparse_coo)")


@pytest.mark.parametrize(("order", "problem"), [("little", None), ("big", "values of a big-endian machine")])
def test_values_of_a_big_endian_machine_are_not_taken_as_they_lie(order, problem, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.byteorder", order)  # what torch.save writes into its record
    place(tmp_path, {"w": torch.ones(2)})
    monkeypatch.undo()
    data = (tmp_path / "state.pt").read_bytes()
    found = read_saved_state(str(tmp_path / "state.pt"), PickledState(member="state.pt", offset=0, size=len(data)))
    assert found["w"].stored.problem == problem
    assert (found["w"].stored.content is None) == (problem is not None)
    assert (found["w"].stored.dtype, found["w"].stored.shape) == ("float32", (2,))


@pytest.mark.parametrize("cut", [1, 10, 200, 10_000])
def test_cut(cut, tmp_path):
    path, state = place(tmp_path, {"w": torch.ones(100)})
    with pytest.raises(InputsError):
        read_saved_state(path, PickledState(member="state.pt", offset=state.offset, size=max(0, state.size - cut)))


def test_a_record_shorter_than_its_storage(tmp_path):
    torch.save({"w": torch.ones(100)}, tmp_path / "whole.pt")
    with zipfile.ZipFile(tmp_path / "whole.pt") as whole, zipfile.ZipFile(tmp_path / "state.pt", "w") as short:
        for name in whole.namelist():
            data = whole.read(name)
            short.writestr(name, data[:80] if name.endswith("data/0") else data)
    size = (tmp_path / "state.pt").stat().st_size
    with pytest.raises(InputsError, match="observed 80 bytes, expected 400"):
        read_saved_state(str(tmp_path / "state.pt"), PickledState(member="state.pt", offset=0, size=size))


def test_not_a_dict_and_not_a_file(tmp_path):
    with pytest.raises(InputsError, match="a single value"):
        read_saved_state(*place(tmp_path, torch.ones(1)))
    with pytest.raises(InputsError):
        read_saved_state(str(tmp_path / "gone"), PickledState(member="x", offset=0, size=5))


@pytest.mark.parametrize(
    ("members", "observed"),
    [
        ({"archive/version": b"3\n"}, "no data.pkl"),
        ({"archive/data.pkl": b"\x80\x02(X"}, "a damaged pickle"),
        ({"archive/data.pkl": b"\x80\x02K\x05."}, "a single value"),
    ],
)
def test_a_state_that_is_none(tmp_path, members, observed):
    with zipfile.ZipFile(tmp_path / "archive", "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    state = PickledState(member="state.pt", offset=0, size=(tmp_path / "archive").stat().st_size)
    with pytest.raises(InputsError) as caught:
        read_saved_state(str(tmp_path / "archive"), state)
    assert (caught.value.cause, caught.value.subject) == ("inputs-file-corrupt", "state.pt")
    assert caught.value.observed.startswith(observed)
