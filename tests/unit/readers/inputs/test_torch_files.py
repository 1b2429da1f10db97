"""What torch.save writes, read without torch. The files come from ``tests/data/make_inputs.py``."""

import json
from pathlib import Path

import pytest

from aotidoctor.model.artifact import ExportedFacts, PickledState, ProgramArchive
from aotidoctor.model.errors import InputsError
from aotidoctor.model.inputs import PlainValue, TensorDesc
from aotidoctor.readers.inputs.read_inputs import read_examples, read_inputs

DATA = Path(__file__).parents[3] / "data" / "inputs"


def read(name, **options):
    return read_inputs(str(DATA / name), **options)


def tensors(name, **options):
    return [tensor for _, tensor in read(name, **options).tensors()]


@pytest.mark.parametrize(
    ("name", "form", "paths"),
    [
        ("args.pt", "args", ["args[0]", "args[1]"]),
        ("list.pt", "args", ["args[0]", "args[1]"]),
        ("pair.pt", "pair", ["args[0]", "kwargs['scale']"]),
        ("args_kwargs.pt", "args-kwargs", ["args[0]", "kwargs['scale']"]),
        ("kwargs.pt", "kwargs", ["kwargs['x']", "kwargs['scale']"]),
        ("one.pt", "tensor", ["args[0]"]),
        ("tree.pt", "args", ["args[0]", "args[1]['a']", "args[1]['b'][0]", "args[1]['b'][1]", "args[2]['z']"]),
        ("legacy.pt", "args", ["args[0]", "args[1]"]),
        ("plain2.pkl", "args", ["args[0]", "args[1]['a']"]),
        ("plain5.pkl", "args", ["args[0]", "args[1]['a']"]),
        ("protocol4.pt", "args", ["args[0]"]),
    ],
)
def test_forms_and_paths(name, form, paths):
    inputs = read(name)
    assert inputs.form == form
    assert [path for path, _ in inputs.leaves()] == paths


def test_metadata_and_values():
    first, second = tensors("args.pt")
    assert (first.dtype, first.shape, first.stride, first.storage_nbytes) == ("float32", (3, 4), (4, 1), 48)
    assert (first.stats.low, first.stats.high, first.stats.zeros, first.stats.nan) == (0.0, 11.0, 1, 0)
    assert (second.dtype, second.stats.low, second.stats.high) == ("int64", 0, 2)
    assert not second.stats.all_zero_or_one


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("parameter.pt", {"subclass": "Parameter", "requires_grad": True}),
        ("conj_neg.pt", {"conj": True, "dtype": "complex64"}),
        ("expanded.pt", {"stride": (0, 1), "storage_nbytes": 48}),
        ("sliced.pt", {"shape": (2, 2), "stride": (4, 2), "storage_offset": 5}),
        ("meta.pt", {"device": "meta", "storage": None, "stats": None}),
        ("sparse_coo.pt", {"layout": "sparse_coo", "shape": (3, 3), "stride": None}),
        ("sparse_csr.pt", {"layout": "sparse_csr", "shape": (3, 3), "stride": None}),
        ("quantized.pt", {"quantized": True, "dtype": "quint8", "stats": None}),
        ("nested.pt", {"layout": "nested"}),
        ("cuda.pt", {"device": "cuda:0", "dtype": "float32"}),
    ],
)
def test_kinds_of_tensors(name, fields):
    tensor = tensors(name)[0]
    assert {field: getattr(tensor, field) for field in fields} == fields


def test_negative_view_has_negated_values():
    tensor = tensors("conj_neg.pt")[1]
    assert tensor.neg
    assert (tensor.stats.low, tensor.stats.high) == (-12.0, -1.0)


def test_values_follow_strides_and_offset():
    assert (tensors("sliced.pt")[0].stats.low, tensors("sliced.pt")[0].stats.high) == (5.0, 11.0)
    expanded = tensors("expanded.pt")[0].stats
    assert (expanded.high, expanded.zeros) == (3.0, 5)


def test_requires_grad_without_subclass():
    tensor = tensors("parameter.pt")[1]
    assert (tensor.requires_grad, tensor.subclass) == (True, None)


@pytest.mark.parametrize("name", ["shared.pt", "legacy.pt"])
def test_shared_storage_has_one_name(name):
    first, second = tensors(name)
    assert first.storage == second.storage
    assert second.stride == (1, 4)


def test_separate_storages_of_plain_pickles_have_two_names():
    first, second = tensors("plain5.pkl")
    assert first.storage == second.storage  # one tensor, saved twice by reference
    assert first.stats == tensors("one.pt")[0].stats


def test_dtypes():
    found = {tensor.dtype: tensor.stats for tensor in tensors("dtypes.pt")}
    assert list(found) == ["bfloat16", "float16", "float8_e4m3fn", "uint16", "bool", "int8", "float64", "complex64"]
    assert found["float8_e4m3fn"] is None
    assert {found[name].high for name in ("bfloat16", "float16", "uint16", "int8", "float64")} == {2}
    assert found["bool"].all_zero_or_one
    assert (found["complex64"].low, found["complex64"].zeros) == (None, 1)


def test_nonfinite_values():
    stats = tensors("nonfinite.pt")[0].stats
    assert (stats.nan, stats.inf, stats.first_nonfinite, stats.low) == (1, 1, 6, 0.0)


def test_scalars_and_empty_tensors():
    scalar, empty = tensors("scalars.pt")
    assert (scalar.shape, scalar.stats.low) == ((), 2.5)
    assert (empty.shape, empty.numel, empty.stats.low) == ((0, 3), 0, None)


def test_leaves_that_are_no_tensors():
    values = [value for _, value in read("plain.pt").leaves()]
    assert [value.type for value in values] == [
        "int", "float", "bool", "None", "str", "dtype", "device", "Size", "complex",
    ]  # fmt: skip
    assert all(isinstance(value, PlainValue) for value in values)
    assert values[6].text == "cuda:1"


@pytest.mark.parametrize("name", ["state_dict.pt", "module.pt"])
@pytest.mark.parametrize("trust", [False, True])
def test_things_that_are_no_inputs(name, trust):
    with pytest.raises(InputsError) as caught:
        read(name, trust_pickle=trust)
    assert caught.value.cause == "inputs-file-format"
    assert name.removesuffix(".pt").replace("_", " ").replace("module", "pickled model") in str(caught.value)


def test_subclass_is_unsafe_and_described_when_trusted():
    with pytest.raises(InputsError) as caught:
        read("subclass.pt")
    assert (caught.value.cause, caught.value.subject) == ("inputs-file-unsafe", "__main__.Wrapped")
    inputs = read("subclass.pt", trust_pickle=True)
    ((_, tensor),) = inputs.tensors()
    assert isinstance(tensor, TensorDesc)
    assert (tensor.subclass, inputs.globals, inputs.trusted) == ("Wrapped", ("__main__.Wrapped",), True)


def examples(path, content):
    """Those of an archive in which they lie between other members."""
    path.write_bytes(b"before" + content + b"after")
    where = PickledState(member="sample.pt", offset=len(b"before"), size=len(content))
    facts = ExportedFacts(name="model")
    return read_examples(
        ProgramArchive(path=str(path), member="m.json", layout="pt2", facts=facts, document={}, examples=where)
    )


def test_examples_of_an_archive_are_read_where_they_lie(tmp_path):
    content = (DATA / "pair.pt").read_bytes()
    assert examples(tmp_path / "program.pt2", content) == dict(read("pair.pt").tensors())


def test_examples_of_an_archive_are_a_file_of_torch_save(tmp_path):
    """Too long a document of another format is nothing that ends the examination of the program."""
    assert examples(tmp_path / "program.pt2", json.dumps(["a"] * 60_000).encode()) == {}
