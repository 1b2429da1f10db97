"""Arrays of this process, without torch: described as they are, and the file for a child as torch would write it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

import aotidoctor
from aotidoctor.api.live_arguments import LiveSource, described_inputs
from aotidoctor.api.returned_report import public_report
from aotidoctor.model.inputs import PlainValue, TensorDesc

CUDA = Path(__file__).parents[2] / "data" / "cuda" / "mlp.pt2"
np = pytest.importorskip("numpy")

BASE = np.arange(48, dtype=np.float32).reshape(6, 8)
ARRAYS = {
    "contiguous": BASE,
    "transposed": BASE.T,
    "strided": BASE[::2, 1::3],
    "broadcast": np.broadcast_to(BASE[0], (3, 8)),
    "scalar": np.array(7, dtype=np.int64),
    "empty": np.zeros((0, 4), dtype=np.int32),
    "bool": np.array([True, False]),
    "complex": np.array([1 + 2j], dtype=np.complex64),
    "half": np.array([0.5, np.nan], dtype=np.float16),
}


@pytest.fixture
def without_torch(monkeypatch):
    """As in a process that has not imported it."""
    monkeypatch.delitem(__import__("sys").modules, "torch", raising=False)


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_is_the_tensor_that_it_would_become(name, without_torch):
    array = ARRAYS[name]
    source = LiveSource(args=(array, [array, None, 3, -(2**70), 2.5, "ß", True]), kwargs={"k": {"a": array}})
    expected = (str(array.dtype), array.shape, tuple(step // array.itemsize for step in array.strides))
    for to_run in (False, True):
        with described_inputs(source, to_run=to_run) as found:
            assert found.form == "live"
            assert found.notes
            tensors = dict(found.tensors())
            assert set(tensors) == {"args[0]", "args[1][0]", "kwargs['k']['a']"}
            for tensor in tensors.values():
                assert (tensor.dtype, tensor.shape, tensor.stride) == expected
                assert (tensor.device, tensor.layout, tensor.subclass) == ("cpu", "strided", None)
                if array.dtype.kind in "biu":
                    assert [int(value) for value in tensor.elements()] == [int(value) for value in array.ravel()]
                if array.dtype == np.float16:
                    assert tensor.stats.nan == 1
            plain = [value.text for path, value in found.leaves() if isinstance(value, PlainValue)]
            assert plain == ["None", "3", str(-(2**70)), "2.5", "'ß'", "True"]


def test_the_file_lives_as_long_as_it_is_needed(without_torch, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with described_inputs(LiveSource(args=(BASE,), kwargs={}), to_run=True) as found:
        assert Path(found.path).stat().st_mode & 0o077 == 0 or Path(found.path).parent.stat().st_mode & 0o077 == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("array", [BASE[::-1], BASE.astype(">f4"), np.array(["a"]), np.array([{}], dtype=object)])
def test_what_no_tensor_is_like_stays_an_array(array, without_torch):
    with described_inputs(LiveSource(args=(array,), kwargs={}), to_run=False) as found:
        assert [value.type for _, value in found.leaves()] == ["ndarray"]
    with (
        pytest.raises(aotidoctor.InputsError) as raised,
        described_inputs(LiveSource(args=(array,), kwargs={}), to_run=True),
    ):
        pass
    assert raised.value.where == "inputs"
    assert "ndarray" in raised.value.observed
    assert raised.value.expected


def test_endless_nesting_is_an_error():
    endless: list[object] = []
    endless.append(endless)
    for function in (aotidoctor.check, aotidoctor.diagnose):
        with pytest.raises(aotidoctor.InputsError, match="levels"):
            function(CUDA, args=(endless,))


def test_a_description_copies_nothing_but_small_values(without_torch):
    huge = np.broadcast_to(np.float32(1), (1 << 20, 1 << 20))
    with described_inputs(LiveSource(args=(huge,), kwargs={}), to_run=False) as found:
        tensor = dict(found.tensors())["args[0]"]
    assert tensor.stats is None
    assert tensor.elements() is None


def test_inputs_are_read_as_a_file_of_them_would_be():
    call = {"args": (BASE,), "kwargs": {}}
    for inputs in (BASE, (BASE,), [BASE], call, ((BASE,), {})):
        report = aotidoctor.check(CUDA, inputs)
        assert [path for path, _ in report.case.inputs.leaves()] == ["args[0]"]
    assert [path for path, _ in aotidoctor.check(CUDA, {"x": BASE}).case.inputs.leaves()] == ["kwargs['x']"]


def test_a_report_keeps_no_value_of_the_caller():
    report = aotidoctor.check(CUDA, args=(BASE.astype(np.int64),))
    tensors = [value for _, value in report.case.inputs.leaves() if isinstance(value, TensorDesc)]
    assert [tensor.elements for tensor in tensors] == [None]
    assert public_report(report).case.inputs == report.case.inputs


def test_the_contract_is_settled_by_what_is_given():
    """What was asked on the command line of a file is asked here of the objects: codes and subjects are the same."""
    wrong = BASE.astype(np.float64)[:, :4]
    with tempfile.TemporaryDirectory() as room:
        path = os.path.join(room, "x.npy")
        np.save(path, np.ascontiguousarray(wrong))
        filed = aotidoctor.check(CUDA, path)
    live = aotidoctor.check(CUDA, args=(np.ascontiguousarray(wrong),))
    assert {(item.code, item.kind, item.subject) for item in filed.findings} == {
        (item.code, item.kind, item.subject) for item in live.findings
    }
