"""Treatment steps on real tensors. They need torch, no package and no process."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from aotidoctor.model.jobs import Run

pytest.importorskip("torch")

from aotidoctor.worker.call import ModelCall
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.treatments.input_steps import TreatmentError
from aotidoctor.worker.treatments.treat import apply_steps, prepare_payload

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
]


class Point(NamedTuple):
    x: Any
    y: Any


def treated(steps: list[dict[str, Any]], *args: Any, **kwargs: Any) -> ModelCall:
    return apply_steps(steps, ModelCall(args=args, kwargs=kwargs), [])


def test_cast_keeps_values_and_says_so() -> None:
    import torch

    applied: list[str] = []
    call = ModelCall(args=(torch.tensor([1, 2], dtype=torch.int32),), kwargs={})
    (new,) = apply_steps([{"op": "cast", "path": "args[0]", "dtype": "int64"}], call, applied).args
    assert new.dtype is torch.int64
    assert new.tolist() == [1, 2]
    assert applied == ["cast args[0] int32→int64"]


def test_contiguous_and_given_strides() -> None:
    import torch

    base = torch.arange(6.0).reshape(2, 3)
    plain = treated([{"op": "contiguous", "path": "args[0]", "stride": None}], base.t()).args[0]
    given = treated([{"op": "contiguous", "path": "args[0]", "stride": [1, 2]}], base).args[0]
    assert plain.is_contiguous()
    assert given.stride() == (1, 2)
    assert torch.equal(given, base)
    with pytest.raises(TreatmentError):
        treated([{"op": "contiguous", "path": "args[0]", "stride": [1]}], base)


@pytest.mark.parametrize(("size", "rows"), [(2, [0, 1]), (5, [0, 1, 2, 2, 2])])
def test_clamp_dim_cuts_or_repeats_the_last(size: int, rows: list[int]) -> None:
    import torch

    base = torch.arange(3)
    assert treated([{"op": "clamp_dim", "path": "args[0]", "dim": 0, "size": size}], base).args[0].tolist() == rows


@pytest.mark.parametrize("transposed", [False, True])
def test_slice_dim_keeps_values_and_the_order_of_strides(transposed: bool) -> None:
    import torch

    base = torch.arange(24.0).reshape(6, 4)
    base = base.t() if transposed else base
    step = {"op": "slice_dim", "path": "args[0]", "dim": 1, "start": 1, "size": 2}
    (part,) = treated([step], base).args
    assert torch.equal(part, base[:, 1:3])
    assert part.is_contiguous() is not transposed
    assert part.untyped_storage().data_ptr() != base.untyped_storage().data_ptr()


def test_values() -> None:
    import torch

    base = torch.tensor([float("nan"), -1.0, 0.0, float("inf")])
    steps = [
        {"op": "nan_to_num", "path": "args[0]"},
        {"op": "clamp_values", "path": "args[0]", "low": 0, "high": 5},
        {"op": "replace_value", "path": "args[0]", "old": 0, "new": 1},
    ]
    # Inf stays where there is NaN: -inf in a mask is meant so.
    assert treated(steps, base).args[0].tolist() == [1.0, 1.0, 1.0, 5.0]
    assert base.isnan().any(), "the user's tensor was changed"


def test_lazy_bits_sparse_and_quantised() -> None:
    import torch

    conj = treated([{"op": "resolve", "path": "args[0]"}], torch.tensor([1 + 2j]).conj()).args[0]
    assert not conj.is_conj()
    assert conj.tolist() == [1 - 2j]
    sparse = treated([{"op": "dense", "path": "args[0]"}], torch.eye(2).to_sparse()).args[0]
    assert sparse.layout is torch.strided
    quantised = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8)
    assert not treated([{"op": "dense", "path": "args[0]"}], quantised).args[0].is_quantized


def test_leaf_inside_dict_list_and_namedtuple() -> None:
    import torch

    value = {"a": [torch.zeros(1), 3], "p": Point(torch.zeros(1), 2)}
    steps = [
        {"op": "to_tensor", "path": "args[0]['a'][1]", "dtype": "int64"},
        {"op": "set", "path": "args[0]['p'].y", "value": 9},
    ]
    new = treated(steps, value).args[0]
    assert new["a"][1].dtype is torch.int64
    assert new["p"].y == 9
    assert type(new["p"]) is Point


def test_star_means_each_tensor() -> None:
    import torch

    call = treated([{"op": "cast", "path": "*", "dtype": "float64"}], torch.zeros(1), 2, w=torch.zeros(1))
    assert call.args[0].dtype is call.kwargs["w"].dtype is torch.float64
    assert call.args[1] == 2


def test_lists_of_numbers_become_a_tensor() -> None:
    import torch

    form = {"dict": [["ids", {"tensor_of": "kwargs['ids']", "dtype": "int64"}]]}
    step = {"op": "tree", "args": {"tuple": []}, "kwargs": form}
    assert torch.equal(treated([step], ids=[[1, 2], [3, 4]]).kwargs["ids"], torch.tensor([[1, 2], [3, 4]]))
    for other in ([[1, 2], [3]], "text"):
        with pytest.raises(TreatmentError):
            treated([step], ids=other)


def test_tree_is_built_from_a_template() -> None:
    call = treated(
        [
            {
                "op": "tree",
                "args": {"tuple": [{"dict": [["b", {"leaf": "args[1]"}], ["a", {"leaf": "args[0]"}]]}]},
                "kwargs": {"dict": [["k", {"value": 7}]]},
            }
        ],
        1,
        2,
    )
    assert call.args == ({"b": 2, "a": 1},)
    assert list(call.args[0]) == ["b", "a"]
    assert call.kwargs == {"k": 7}


@pytest.mark.parametrize(
    ("path", "args", "kwargs"),
    [("args[1]", (1, 3), {"k": {"x": 5}}), ("kwargs['k']['x']", (1, 2, 3), {"k": {}}), ("kwargs['k']", (1, 2, 3), {})],
)
def test_drop(path: str, args: tuple[int, ...], kwargs: dict[str, Any]) -> None:
    call = treated([{"op": "drop", "path": path}], 1, 2, 3, k={"x": 5})
    assert (call.args, call.kwargs) == (args, kwargs)


def test_insert_makes_the_tensor_it_is_told() -> None:
    step = {"op": "insert", "path": "args[1]", "tensor": {"tensor": {"dtype": "float32", "shape": [2], "data": [1, 2]}}}
    call = treated([step], "a", "b")
    assert (call.args[0], call.args[2]) == ("a", "b")
    assert call.args[1].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "step",
    [
        {"op": "cast", "path": "args[7]", "dtype": "int64"},
        {"op": "cast", "path": "args[0]", "dtype": "int65"},
        {"op": "drop", "path": "args[7]"},
        {"op": "drop", "path": "nowhere"},
        {"op": "tree", "args": {"tuple": [{"leaf": "args[7]"}]}, "kwargs": {"dict": []}},
    ],
)
def test_a_step_that_cannot_be_applied_raises(step: dict[str, Any]) -> None:
    import torch

    with pytest.raises(TreatmentError):
        treated([step], torch.zeros(1))


def test_steps_on_the_payload(tmp_path: Path) -> None:
    channel = Channel(tmp_path / "channel", user_cwd=tmp_path, run_dir=tmp_path)
    payload = Run(treatment=({"op": "threads", "n": 2}, {"op": "model_name", "name": "b"}))
    new, applied = prepare_payload(payload, channel)
    assert (new.threads, new.model_name) == (2, "b")
    assert len(applied) == 2
    assert payload.threads is None
    with pytest.raises(TreatmentError):
        prepare_payload(Run(treatment=({"op": "pray"},)), channel)


def test_the_device_that_a_treatment_asks_for_has_no_number(tmp_path: Path) -> None:
    payload = Run(device="cuda", device_index=3, treatment=({"op": "device", "device": "cuda"},))
    new, applied = prepare_payload(payload, Channel(tmp_path / "channel", user_cwd=tmp_path, run_dir=tmp_path))
    assert (new.device, new.device_index, applied) == ("cuda", -1, ["device cuda"])


def test_a_stand_in_is_put_where_none_was() -> None:
    import torch

    step = {"op": "stand_in", "path": "args[1]", "tensor": {"dtype": "int64", "shape": [2, 3], "seed": 0}}
    (kept, made) = treated([step], torch.ones(2), None).args
    assert torch.equal(kept, torch.ones(2))
    assert (made.dtype, made.shape) == (torch.int64, (2, 3))


def test_an_operator_is_replaced_by_zeros_of_the_form_that_it_promises() -> None:
    import torch

    from aotidoctor.worker.operators.op_calls import stand_in_operator

    library = torch.library.Library("treatlab", "DEF")
    library.define("halves(Tensor x, int n) -> (Tensor, Tensor)")
    library.define("fill_(Tensor(a!) x) -> ()")

    def fails(*_: Any) -> Any:
        raise RuntimeError("as it does")

    def fake(x: Any, n: int) -> Any:
        return x.new_empty(x.shape[0] // n).t(), x.new_empty((4, 2), dtype=torch.int32).t()

    library.impl("halves", fails, "CPU")
    library.impl("halves", fake, "Meta")
    library.impl("fill_", fails, "CPU")
    library.impl("fill_", lambda x: None, "Meta")
    with pytest.raises(RuntimeError, match="as it does"):
        torch.ops.treatlab.halves(torch.ones(6), 2)
    assert "treatlab::halves" in stand_in_operator("treatlab::halves", "cpu")
    stand_in_operator("treatlab::fill_.default", "cpu")
    one, two = torch.ops.treatlab.halves(torch.ones(6), 2)
    assert one.tolist() == [0.0, 0.0, 0.0]
    assert (two.dtype, two.shape, two.stride()) == (torch.int32, (2, 4), (1, 2))
    assert two.abs().sum() == 0
    given = torch.ones(2)
    torch.ops.treatlab.fill_(given)
    assert given.tolist() == [1.0, 1.0]
    with pytest.raises(TreatmentError):
        stand_in_operator("treatlab::absent", "cpu")


def test_a_package_is_copied_into_the_layout_of_the_compiler(tmp_path: Path) -> None:
    import zipfile

    from aotidoctor.worker.treatments.treat import repack

    source, target = tmp_path / "flat.pt2", tmp_path / "copy.pt2"
    with zipfile.ZipFile(source, "w") as archive:
        archive.writestr("data/aotinductor/model/", b"")
        archive.writestr("data/aotinductor/model/a.so", b"code")
        archive.writestr("other/data/weights/model_weights_config.json", b"{}")
        archive.writestr("other/archive_version", b"9")
    repack(source, target)
    with zipfile.ZipFile(target) as copy:
        found = {item.filename: copy.read(item) for item in copy.infolist()}
    assert found == {
        "model/archive_format": b"pt2",
        "model/archive_version": b"0",
        "model/byteorder": b"little",
        "model/data/aotinductor/model/a.so": b"code",
        "model/data/weights/model_weights_config.json": b"{}",
    }
    with zipfile.ZipFile(source, "w") as archive:
        archive.writestr("readme.txt", b"nothing")
    with pytest.raises(TreatmentError):
        repack(source, tmp_path / "none.pt2")


def test_a_note_says_what_changed_in_the_leaf() -> None:
    import torch

    applied: list[str] = []
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    leaves = (torch.tensor([1.0, torch.nan, 9.0]), torch.ones(2, 3).t(), 7, torch.eye(2).to_sparse(), nested)
    steps: list[dict[str, Any]] = [
        {"op": "clamp_values", "path": "args[0]", "low": 0, "high": 5},
        {"op": "contiguous", "path": "args[1]", "stride": None},
        {"op": "to_tensor", "path": "args[2]", "dtype": "int64"},
        {"op": "dense", "path": "args[3]"},
        {"op": "dense", "path": "args[4]"},
        {"op": "clone", "path": "args[1]"},
    ]
    apply_steps(steps, ModelCall(args=leaves, kwargs={}), applied)
    assert applied[:4] == [
        "clamp_values args[0] 2 values",
        "contiguous args[1] (1, 3)→(2, 1)",
        "to_tensor args[2] 7→tensor",
        "dense args[3] torch.sparse_coo→torch.strided",
    ]
    assert applied[4:] == ["dense args[4]", "clone args[1]"]
