"""Readings of what the value printer printed. The texts are recorded from packages of the test models (torch 2.13)."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from aotidoctor.localize.value_printer import printed_launches, read_saved_values, read_value_printer
from aotidoctor.model.contract import KernelBody, KernelCall, KernelParameter

RECORDED = Path(__file__).parents[2] / "data" / "printer"
NUMERIC = (
    KernelCall(name="cpp_fused_add_log_0", kind="cpp", arguments=("arg1_1", "buf0")),
    KernelCall(name="aoti_torch_cpu_mm_out", kind="extern", arguments=("buf1", "arg2_1", "w")),
)
CONV = (
    KernelCall(name="cpp_fused_convolution_0", kind="cpp", arguments=("arg2_1", "conv_weight", "buf0", "buf1", "buf2")),
    KernelCall(name="aoti_torch_cpu_convolution", kind="extern", arguments=("buf0", "buf1", "buf2", "&buf3_handle")),
    KernelCall(name="cpp_fused_mean_1", kind="cpp", arguments=("buf5", "buf3")),
)


def recorded(name):
    return (RECORDED / f"{name}.txt").read_text()


def buffers(call, role):
    return {buffer.name: buffer for buffer in call.buffers if buffer.role == role}


def block(header, *, low="1", high="2", mean="1.5", shape="[100]", values=""):
    shown = f"{values}\n[ CPUFloatType{{{shape[1:-1]}}} ]\n" if values else ""
    facts = f"Number of elements: 100\nDtype: float32\nMean value: {mean}\nMin value: {low}\nMax value: {high}\n"
    return f"[  {header}  ]:\n{shown}{facts}Device: cpu\nSize: {shape}\nStride: [1]\n\n"


def test_small_tensors_are_counted_exactly():
    log, product = read_value_printer(recorded("numeric2"), NUMERIC)
    assert (log.name, log.kind, product.kind) == ("cpp_fused_add_log_0", "cpp", "extern")
    assert (buffers(log, "out")["buf0"].nan, buffers(log, "out")["buf0"].shape) == (5, (4, 16))
    assert (buffers(log, "in")["arg1_1"].nan, buffers(log, "in")["arg1_1"].low) == (0, -1.0)
    assert (buffers(product, "out")["buf1"].inf, buffers(product, "out")["buf1"].dtype) == (32, "float16")


def test_a_buffer_that_nobody_printed_before_belongs_to_the_call_that_had_it_as_an_argument():
    _, convolution, mean = read_value_printer(recorded("conv2"), CONV)
    assert set(buffers(convolution, "in")) == {"buf0", "buf1"}
    assert buffers(convolution, "out")["buf3"].shape == (1, 8, 14, 14)
    assert buffers(mean, "in")["buf3"].written_by == 1
    assert set(buffers(mean, "out")) == {"buf5"}


def test_garbage_before_a_launch_is_no_input():
    fused = read_value_printer(recorded("conv2"), CONV)[0]
    # buf0 held NaN in its uninitialised memory, and does not any more.
    assert "-nan" in recorded("conv2")
    assert set(buffers(fused, "in")) == {"arg2_1"}
    assert not any(buffer.nan for buffer in fused.buffers)


def test_in_place_and_extern_calls():
    calls = read_value_printer(recorded("linear2"))
    assert [call.name for call in calls] == ["aoti_torch_cpu_addmm_out", "cpp_fused_relu_0", "aoti_torch_cpu_mm_out"]
    assert buffers(calls[1], "out")["buf1"].low == 0.0
    assert buffers(calls[2], "in")["buf1"].written_by == 1


def test_garbage_nan_that_becomes_real_nan_is_an_output():
    text = "".join(
        block(f"{when}_launch - k - buf0", low="nan", high="nan", mean="nan") for when in ("before", "after")
    )
    call = read_value_printer(text, (KernelCall(name="k", kind="cpp", arguments=("arg0_1", "buf0")),))[0]
    assert buffers(call, "out")["buf0"].nan == 1


def test_the_same_text_in_a_buffer_that_a_custom_operator_wrote_is_an_input():
    dirty = {"low": "-nan", "high": "-nan", "mean": "-nan"}
    order = (
        KernelCall(name="zoo::custom", kind="custom", arguments=("arg0_1", "buf0")),
        KernelCall(name="k", kind="cpp", arguments=("buf0", "buf1")),
    )
    text = "".join(
        block(f"{when}_launch - k - buf0", **dirty) + block(f"{when}_launch - k - buf1", low=low, high="3")
        for when, low in (("before", "7"), ("after", "1"))
    )
    custom, kernel = read_value_printer(text, order)
    assert (custom.name, buffers(custom, "out")["buf0"].nan) == ("zoo::custom", 1)
    assert buffers(kernel, "in")["buf0"].written_by == 0


def test_a_kernel_that_works_in_place_reads_what_another_call_wrote_under_another_name():
    """``buf1`` is the memory of ``buf0``: NaN came in, the kernel did not make it."""
    dirty = {"low": "nan", "high": "nan", "mean": "nan"}
    order = (
        KernelCall(name="aoti_torch_cpu_mm_out", kind="extern", arguments=("buf0", "arg0_1")),
        KernelCall(name="relu", kind="cpp", arguments=("buf1",)),
    )
    in_place = KernelBody(
        name="relu",
        kind="cpp",
        member="k.cpp",
        line=1,
        lines=2,
        parameters=(KernelParameter(name="in_out_ptr0", type="float", pointer=True, const=False),),
    )
    text = (
        block("before_launch - aoti_torch_cpu_mm_out - buf0")
        + block("after_launch - aoti_torch_cpu_mm_out - buf0", **dirty)
        + block("before_launch - relu - buf1", **dirty)
        + block("after_launch - relu - buf1", **{**dirty, "mean": "-nan"})
    )
    _, relu = read_value_printer(text, order, (in_place,))
    assert (buffers(relu, "in")["buf1"].nan, buffers(relu, "in")["buf1"].written_by) == (1, 0)
    assert buffers(relu, "out")["buf1"].nan == 1


def test_infinite_bounds_are_no_numbers():
    text = block("before_launch - k - buf0") + block("after_launch - k - buf0", low="-inf", high="3", mean="-inf")
    out = read_value_printer(text)[0].buffers[0]
    assert (out.inf, out.nan, out.low, out.high, out.mean) == (1, 0, None, 3.0, None)


def test_a_header_behind_the_broken_line_break_of_a_scalar():
    text = (
        "[  before_launch - k - u0: 5  ]\\n"
        + block("before_launch - k - buf0")
        + block("after_launch - k - buf0", low="0")
    )
    calls = read_value_printer(text)
    assert [[buffer.name for buffer in call.buffers] for call in calls] == [["buf0"]]


def test_a_kernel_that_is_called_twice_is_two_calls():
    once = block("before_launch - k - buf0") + block("after_launch - k - buf0", low="0")
    order = (KernelCall(name="k", kind="cpp", arguments=("buf0",)),) * 2
    assert [call.index for call in read_value_printer(once + once, order)] == [0, 1]


def test_a_text_that_was_cut():
    cut = recorded("numeric2")[: recorded("numeric2").index("after_launch - cpp_fused_add_log_0 - buf0")]
    assert not any(buffer.nan for call in read_value_printer(cut, NUMERIC) for buffer in call.buffers)
    assert read_value_printer("", ()) == ()


@pytest.mark.parametrize("name", ["numeric", "conv", "linear"])
def test_level_3_names_all_calls(name):
    order = {"numeric": NUMERIC, "conv": CONV}.get(name)
    found = printed_launches(recorded(f"{name}3"))
    assert all(returned for _, returned in found)
    if order is not None:
        assert [kernel for kernel, _ in found] == [call.name for call in order]


def test_level_3_of_a_run_that_died():
    text = recorded("conv3").rpartition("[ after_launch: aoti_torch_cpu_convolution")[0]
    assert printed_launches(text)[-1] == ("aoti_torch_cpu_convolution", False)


def saved(when, buffer, digest, kernel="cpp_fused_add_log_0", **more):
    return {"when": when, "kernel": kernel, "buffer": buffer, "dtype": "float32", "shape": [4, 16], "nan": 0, "inf": 0,
            "min": 0.5, "max": 1.0, "mean": 0.7, "sha256": digest, **more}  # fmt: skip


def test_saved_files_have_exact_statistics_and_the_closest_node():
    near = {"matches": "log", "target": "aten.log", "where": "m.py:3", "error": 0.25, "agrees": False}
    records = [
        saved("before", "arg1_1", "a"),
        saved("before", "buf0", "garbage"),
        saved("after", "arg1_1", "a"),
        saved("after", "buf0", "b", nan=3, min=math.nan, near=near),
    ]
    log, product = read_saved_values(records, NUMERIC)
    out = buffers(log, "out")["buf0"]
    assert (out.nan, out.low, out.matches, out.error, out.agrees) == (3, None, "log", 0.25, False)
    assert buffers(log, "in")["arg1_1"].agrees is None
    assert (product.name, product.buffers) == ("aoti_torch_cpu_mm_out", ())


def test_files_of_a_kernel_that_was_called_twice_tell_nothing():
    order = (NUMERIC[0], NUMERIC[0])
    calls = read_saved_values([saved("before", "buf0", "x"), saved("after", "buf0", "y")], order)
    assert [call.buffers for call in calls] == [(), ()]
