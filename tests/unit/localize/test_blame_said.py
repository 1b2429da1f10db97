"""Failed checks out of the words of a log, and the chain from package and log alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.localize.blame.chain import chain_of
from aotidoctor.localize.blame.failing_elements import Failure
from aotidoctor.localize.blame.indirect_failures import chains_in, device_asserts, failures_in
from tests.unit.localize.kernels import case_of, floats, integers, text

KERNEL = "triton_poi_fused_add_index_0"
# The line is the one that the debug information of this package's genuine device code has for the assertion.
LINE = (
    "/tmp/t/t5/ct5jt25b.py:{line}: unknown: block: [{block},0,0], thread: [{thread},0,0] "
    "Assertion `index out of bounds: 0 <= tmp4 < {bound}` failed.\n"
)


def line(thread=8, *, line=32, block=0, bound="40"):
    return LINE.format(line=line, block=block, thread=thread, bound=bound)


NOISE = "I am no assertion\nCUDA error: device-side assert triggered\nCompile with `TORCH_USE_CUDA_DSA` to enable.\n"


def test_threads_that_say_the_same_are_counted():
    (found,) = device_asserts(NOISE + "".join(line(at) for at in range(8, 16)) + NOISE)
    assert (found.count, found.block, found.thread, found.line) == (8, (0, 0, 0), (8, 0, 0), 32)
    assert found.failure == Failure(kind="index", variable="tmp4", bound="40", source_line=32)


def test_an_assertion_of_aten_is_no_check_of_a_kernel_of_the_package():
    said = (
        "../aten/src/ATen/native/cuda/IndexKernel.cu:94: operator(): block: [1,0,0], thread: [4,2,0] "
        'Assertion `-sizes[i] <= index && index < sizes[i] && "index out of bounds"` failed.'
    )
    (found,) = device_asserts(said)
    assert (found.block, found.thread, found.failure) == ((1, 0, 0), (4, 2, 0), None)
    assert failures_in(said) == ()


@pytest.mark.parametrize(
    "cut", ["", NOISE, "Assertion `x` failed", "a.py:3: block: [0,0,0], thread: [0,0,0] Assertion `", line()[:-20]]
)
def test_what_is_no_assertion(cut):
    assert device_asserts(cut) == ()


def test_package_and_log_alone():
    case = replace(case_of("cuda_index"), inputs=None)
    (chain,) = chains_in(case, NOISE + line() + line(9))
    assert (chain.kernel, chain.bound, chain.origin, chain.sources) == (KERNEL, 40, "table.shape[0]", ("args[0]",))
    assert chain.operators == ("aten.index",)


def test_with_the_inputs_the_element():
    (chain,) = chains_in(case_of("cuda_index", integers(3, 40, 5), floats(3, 8)), line())
    assert chain.text == f"{KERNEL}: index 40 of 40 ← args[0][1] = 40; bound from table.shape[0]; from aten.index"


def test_a_log_of_another_package_gives_no_chain():
    case = case_of("cuda_index", integers(3, 40, 5), floats(3, 8))
    assert chains_in(case, line(bound="41")) == ()


def test_the_exception_of_a_cpu_kernel():
    said = "index out of bounds: 0 <= tmp2 < 100L\nException raised from cpp_fused_embedding_mul_0 at /x/y.cpp:22 (most"
    assert failures_in(said) == (
        Failure(kind="index", variable="tmp2", bound="100L", kernel="cpp_fused_embedding_mul_0", line=22),
    )


def two_kernels():
    """The recorded wrapper with a second kernel behind the first that has a check of the same words, one line later."""
    whole = text("cuda_index.wrapper")
    start = whole.index("template <typename in_ptr0_type_")
    end = whole.index("namespace torch::aot_inductor", start)
    second = (
        whole[start:end]
        .replace("add_index_0", "mul_index_1")
        .replace("x2 = xindex\n", "x2 = xindex\n        x3 = x2\n")
    )
    whole = whole[:end] + second + whole[end:]
    call = next(one for one in whole.split("\n") if one.strip().startswith("call_triton_poi_fused_add_index_0("))
    other = call.replace("add_index_0", "mul_index_1")
    return whole.replace(call, f"{call}\n{other}")


@pytest.mark.parametrize(("number", "kernel"), [(32, KERNEL), (33, KERNEL.replace("add_index_0", "mul_index_1"))])
def test_the_line_tells_apart_two_kernels_with_a_check_of_the_same_words(number, kernel):
    case = replace(case_of("cuda_index", wrapper=two_kernels()), inputs=None)
    assert [chain.kernel for chain in chains_in(case, line(line=number))] == [kernel]


def test_a_line_that_no_kernel_has_leaves_both_open():
    case = replace(case_of("cuda_index", wrapper=two_kernels()), inputs=None)
    chain = chain_of(case, Failure(kind="index", variable="tmp4", bound="40", source_line=999))
    assert chain is None
