"""What the reader says of each value that a pickle may hold."""

from __future__ import annotations

import collections
import pickle
from collections import OrderedDict, defaultdict, deque

import pytest

from aotidoctor.model.errors import InputsError
from aotidoctor.model.inputs import PlainValue
from aotidoctor.readers.inputs.read_inputs import read_inputs
from tests.unit.readers.inputs.opcodes import (
    FALSE,
    NONE,
    TRUE,
    call,
    dict_of,
    list_of,
    name,
    new,
    number,
    numbers,
    plain,
    plain_args,
    storage,
    text,
    torch_file,
    tuple_of,
)


def read(tmp_path, data, **options):
    path = tmp_path / "inputs.pt"
    path.write_bytes(data)
    return read_inputs(str(path), **options)


def leaves(tmp_path, data, **options):
    return dict(read(tmp_path, data, **options).leaves())


def refused(tmp_path, data, **options):
    with pytest.raises(InputsError) as caught:
        read(tmp_path, data, **options)
    return caught.value


@pytest.mark.parametrize(
    ("value", "kind", "shown"),
    [
        (None, "None", "None"),
        (True, "bool", "True"),
        (2.5, "float", "2.5"),
        (-7, "int", "-7"),
        (1 << 300, "int", "an int of 301 bits"),
        ("é", "str", "'é'"),
        (b"ab", "bytes", "b'ab'"),
        (3 + 4j, "complex", "(3+4j)"),
        (complex(float("inf"), 1), "complex", "(inf+1j)"),
        (complex(0, float("-inf")), "complex", "-infj"),
        (complex(float("nan"), 2), "complex", "(nan+2j)"),
        (bytearray(b"xy"), "bytearray", "a bytearray"),
        ({1, 2}, "set", "a set of 2"),
        (frozenset((1, 2, 3)), "frozenset", "a frozenset of 3"),
        (int, "type", "builtins.int"),
    ],
)
def test_a_plain_value(tmp_path, value, kind, shown):
    found = leaves(tmp_path, pickle.dumps((value, 1), protocol=4), trust_pickle=True)
    assert found["args[0]"] == PlainValue(type=kind, text=shown)


@pytest.mark.parametrize(
    ("value", "kind", "shown"),
    [
        (name("torch.float16"), "dtype", "torch.float16"),
        (call("torch.device", text("cuda"), number(1)), "device", "cuda:1"),
        (call("torch.Size", numbers(2, 3)), "Size", "torch.Size([2, 3])"),
        (call("torch.serialization._get_layout", text("torch.sparse_csr")), "layout", "a layout"),
        (storage(), "storage", "a storage"),
    ],
)
def test_a_value_of_torch_that_is_no_tensor(tmp_path, value, kind, shown):
    found = leaves(tmp_path, torch_file(tuple_of(plain(), value)))
    assert found["args[1]"] == PlainValue(type=kind, text=shown)


Pair = collections.namedtuple("Pair", "first second")  # noqa: PYI024 - as a user writes it


def container(tmp_path, value):
    found = read(tmp_path, pickle.dumps((value,), protocol=2), trust_pickle=True).args.children[0]
    return found.type, found.keys, [leaf.value.text for leaf in found.children]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (deque((1, 2)), ("deque", (), ["1", "2"])),
        (OrderedDict(a=1, b=2), ("ordereddict", ("a", "b"), ["1", "2"])),
        (defaultdict(int, {"k": 3}), ("defaultdict", ("k",), ["3"])),
        (Pair(1, 2), ("namedtuple:Pair", (), ["1", "2"])),
        ({(1, 2): 5}, ("dict", ("a tuple",), ["5"])),
        ({3 + 4j: 5}, ("dict", ("(3+4j)",), ["5"])),
        ({True: 5, None: 6}, ("dict", ("True", "None"), ["5", "6"])),
    ],
)
def test_a_container(tmp_path, value, expected):
    assert container(tmp_path, value) == expected


def test_an_ordered_dict_as_old_pythons_wrote_it(tmp_path):
    """Pairs as lists, in a list; what is no pair is passed over. The last of equal keys counts, as in Python."""
    pairs = list_of(
        list_of(text("a"), number(1)), list_of(text("b"), number(2)), list_of(text("a"), number(3)), list_of(number(9))
    )
    found = read(tmp_path, b"\x80\x02" + tuple_of(call("collections.OrderedDict", pairs)) + b".").args.children[0]
    assert (found.keys, [leaf.value.text for leaf in found.children]) == (("a", "b"), ["3", "2"])


def test_several_results_of_an_operator(tmp_path):
    value = call("torch.return_types.max", tuple_of(plain(), plain((3,), (1,))), dict_of())
    found = leaves(tmp_path, torch_file(tuple_of(value)), trust_pickle=True)
    assert {path: leaf.shape for path, leaf in found.items()} == {"args[0][0]": (2, 3), "args[0][1]": (3,)}


NJT = "torch.nested._internal.nested_tensor"


def jagged(values):
    state = dict_of(text("values"), values, text("_ragged_idx"), number(1))
    parts = name(f"{NJT}._rebuild_njt"), name(f"{NJT}.NestedTensor"), tuple_of(state), dict_of()
    return call("torch._tensor._rebuild_from_type_v2", *parts)


def typed(inner_args):
    parts = (name("torch._utils._rebuild_tensor_v2"), name("torch.Tensor"), inner_args, dict_of())
    return call("torch._tensor._rebuild_from_type_v2", *parts)


@pytest.mark.parametrize("values", [plain(), typed(plain_args())], ids=["plain values", "values with attributes"])
def test_a_jagged_tensor(tmp_path, values):
    """Written as torch 2.13 saves ``nested_tensor(..., layout=torch.jagged)``."""
    leaf = leaves(tmp_path, torch_file(tuple_of(jagged(values))), trust_pickle=True)["args[0]"]
    assert (leaf.dtype, leaf.shape, leaf.stride, leaf.layout) == ("float32", (), None, "nested")
    assert (leaf.subclass, leaf.stats) == ("NestedTensor", None)


@pytest.mark.parametrize(
    ("value", "observed"),
    [
        (plain((2, 3), (1,)), "1 strides"),
        (plain((3, 3), (3, 1)), "a storage of 24 bytes"),
        (plain((2, -3)), "a size or stride that is not a non-negative integer"),
        (plain((1,) * 65, (1,) * 65), "an unexpected value in place of sizes"),
        (
            call("torch._utils._rebuild_parameter", number(1), TRUE, NONE),
            "an unexpected value in place of a plain tensor",
        ),
        (call("torch._utils._rebuild_tensor_v2", storage()), "torch._utils._rebuild_tensor_v2 with 1 arguments"),
        (
            call(
                "torch._utils._rebuild_tensor_v3", storage(), number(0), numbers(6), numbers(1), FALSE, NONE, text("f")
            ),
            "an unexpected value in place of a dtype",
        ),
        (
            call(
                "torch._tensor._rebuild_from_type_v2",
                name("torch._utils._rebuild_parameter"),
                name("torch.Tensor"),
                tuple_of(plain(), TRUE),
                dict_of(),
            ),
            "an unexpected value in place of a tensor",
        ),
    ],
)
def test_a_tensor_that_contradicts_itself(tmp_path, value, observed):
    error = refused(tmp_path, torch_file(tuple_of(value)))
    assert (error.cause, error.observed) == ("inputs-file-corrupt", observed)


def test_a_tensor_with_attributes_is_of_no_subclass(tmp_path):
    leaf = leaves(tmp_path, torch_file(tuple_of(typed(plain_args()))))["args[0]"]
    assert (leaf.dtype, leaf.shape, leaf.subclass) == ("float32", (2, 3), None)


def test_a_tensor_made_by_a_function_of_its_own(tmp_path):
    inner = call("torch._tensor._rebuild_from_type_v2", name("m.f"), name("torch.Tensor"), tuple_of(), dict_of())
    error = refused(
        tmp_path, torch_file(tuple_of(call("torch._utils._rebuild_parameter", inner, TRUE, NONE))), trust_pickle=True
    )
    assert error.observed == "m.f in place of a tensor"


def test_names_of_parts_of_a_checkpoint_may_be_names_of_arguments(tmp_path):
    found = leaves(tmp_path, torch_file(dict_of(text("model"), dict_of(text("x"), plain()))))
    assert list(found) == ["kwargs['model']['x']"]


def test_jagged_values_that_are_no_tensor(tmp_path):
    error = refused(tmp_path, torch_file(tuple_of(jagged(number(1)))), trust_pickle=True)
    assert error.observed == "an unexpected value in place of a plain tensor"


@pytest.mark.parametrize(
    ("value", "observed"),
    [
        (storage(), "a bare storage"),
        (name("torch.float32"), "the name of a function or class (torch.float32)"),
        (NONE, "a single NoneType"),
        (dict_of(text("state"), dict_of(), text("param_groups"), list_of()), "the state of an optimizer"),
        (dict_of(text("l.weight"), plain()), "a state dict of 1 tensors (l.weight)"),
        (
            dict_of(text("model"), dict_of(text("l.weight"), plain()), text("epoch"), number(3)),
            "a training checkpoint ('model' holds a state dict)",
        ),
        (
            dict_of(text("epoch"), number(3), text("optimizer"), dict_of(text("param_groups"), list_of())),
            "a training checkpoint ('optimizer' holds a state dict)",
        ),
    ],
)
def test_what_holds_no_inputs_is_named(tmp_path, value, observed):
    error = refused(tmp_path, torch_file(value))
    assert error.cause == "inputs-file-format"
    assert error.observed.startswith(observed)


def test_a_namedtuple_made_by_new_alone_is_one(tmp_path):
    found = read(tmp_path, b"\x80\x02" + tuple_of(new("m.Point", number(1), number(2))) + b".", trust_pickle=True)
    assert found.args.children[0].type == "namedtuple:Point"
