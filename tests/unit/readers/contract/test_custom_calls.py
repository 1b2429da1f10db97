"""What a wrapper takes for granted about the results of custom operators."""

from __future__ import annotations

import pytest

from aotidoctor.model.artifact import ExternNode

NODES = (
    ExternNode(name="n0", target="lab::two", output_names=("buf2", "buf3")),
    ExternNode(name="n1", target="lab::scale", output_names=("buf5",)),
)


@pytest.fixture
def calls_of(contract_from, recorded_text):
    """The custom calls of the recorded wrapper, with some of its text replaced."""

    def read(*changes, nodes=NODES):
        text = recorded_text("customop")
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        return contract_from(text, extern_nodes=nodes).custom_calls

    return read


def test_shape_and_strides_stand_beside_the_call_and_the_dtype_in_the_next_kernel(calls_of):
    two, scale = calls_of()
    assert [(call.index, call.target) for call in (two, scale)] == [(0, "lab::two"), (1, "lab::scale")]
    first, second = two.results
    assert (first.name, first.shape, first.stride) == ("buf2", ("s77", "16L"), ("16L", "1L"))
    # Only the other operator takes it, and that says nothing of its dtype.
    assert (first.dtype, first.used) == (None, True)
    assert (second.name, second.dtype, second.used) == ("buf3", "float32", True)
    # The kernel takes it under the name of the buffer that reuses it.
    assert (scale.results[0].name, scale.results[0].dtype) == ("buf5", "float32")


def test_arguments_that_are_results_of_other_operators(calls_of):
    two, scale = calls_of()
    assert two.arguments == (None,)
    assert scale.arguments == (None, None, two.results[0])


@pytest.mark.parametrize(
    "view",
    [
        ("{arg0_1, arg0_1, buf2, buf5}", "{arg0_1, arg0_1, reinterpret_tensor_wrapper(buf2, 2, a, b, 0L), buf5}"),
        (
            "    // Topologically Sorted Source Nodes: [scale]",
            "    auto buf7 = reinterpret_tensor_wrapper(buf2, 2, int_array_1, int_array_1, 0L);\n"
            "    // Topologically Sorted Source Nodes: [scale]",
        ),
    ],
)
def test_a_view_is_another_tensor(calls_of, view):
    changes = (
        [view] if "buf7" not in view[1] else [view, ("{arg0_1, arg0_1, buf2, buf5}", "{arg0_1, arg0_1, buf7, buf5}")]
    )
    assert calls_of(*changes)[1].arguments == (None, None, None)


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("double", "float64"),
        ("at::Half", "float16"),
        ("half", "float16"),
        ("at::BFloat16", "bfloat16"),
        ("int64_t", "int64"),
        ("uint8_t", "uint8"),
        ("bool", "bool"),
        ("at::complex<float>", "complex64"),
        ("c10::complex<double>", "complex128"),
        ("at::Float8_e4m3fn", None),
    ],
)
def test_element_types(calls_of, kind, dtype):
    calls = calls_of(("(const float*)(buf3.data_ptr())", f"(const {kind}*)(buf3.data_ptr())"))
    assert calls[0].results[1].dtype == dtype


def test_what_nothing_reads_is_not_relied_on(calls_of):
    calls = calls_of(("(const float*)(buf3.data_ptr())", "(const float*)(arg0_1.data_ptr())"))
    assert calls[0].results[1].used is False


def test_older_wrappers_assert_nothing(calls_of):
    two, scale = calls_of(*((f"assert_size_stride({name},", f"nothing({name},") for name in ("buf2", "buf3", "buf5")))
    assert [result.shape for result in (*two.results, *scale.results)] == [None] * 3
    assert scale.results[0].dtype == "float32"


def test_calls_of_nodes_that_are_not_listed_are_left_out(calls_of):
    assert [call.index for call in calls_of(nodes=NODES[:1])] == [0]
    assert calls_of(nodes=()) == ()
