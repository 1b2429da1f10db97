"""The generated code of two packages of one program."""

from __future__ import annotations

from aotidoctor.localize.comparison import compare_code
from aotidoctor.model.artifact import ModelEntry, SharedObject
from aotidoctor.model.contract import KernelCall, ModelContract

HASH = "clzl6i4okaovrdlau2n777vaitwx6pujobx33ym2mug2wjbqnc34"
KERNEL = """// Triton kernels are embedded as comments in {where}/{hash}.wrapper.cpp

#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  cpp_fused_add_log_0(const float* in_ptr0)
{{
    auto tmp2 = static_cast<float>({value});
}}
// Compile cmd
// g++ {where}/{hash}.kernel.cpp -O3
"""
WRAPPER = """#include "{where}/x.h"
    cpp_fused_add_log_0(in);
    aoti_torch_cpu_mm_out(buf1);{more}
"""


def package(where="/tmp/one/c7", hash_=HASH, value="1.0", more="", names=("cpp_fused_add_log_0",), sources=True):
    model = ModelEntry(
        name="model",
        layout="pt2",
        members=(),
        shared_objects=(SharedObject(member="m.so", format="elf", size=1, kernel_symbols=tuple(names)),),
        wrapper_member="w" if sources else None,
        wrapper_cpp=WRAPPER.format(where=where, more=more) if sources else None,
        kernel_sources={f"{hash_}.kernel.cpp": KERNEL.format(where=where, hash=hash_, value=value)} if sources else {},
    )
    kernels = tuple(KernelCall(name=name, kind="cpp") for name in names) if sources else ()
    contract = ModelContract(
        model_name="model", source="wrapper.cpp", args=None, kwargs=None, leaves=(), n_inputs=1, kernels=kernels
    )
    return model, contract


def test_directories_and_hashes_are_no_difference():
    found = compare_code(*package(), *package(where="/home/me/.cache/inductor/c9/cab", hash_=HASH[::-1]))
    assert (found.same_kernels, found.same_sources, found.where) == (True, True, None)


def test_the_first_line_that_differs():
    found = compare_code(*package(value="1.01"), *package())
    assert (found.same_kernels, found.same_sources) == (True, False)
    assert found.where == "kernel.cpp:6"
    assert (found.ours, found.theirs) == (
        "auto tmp2 = static_cast<float>(1.01);",
        "auto tmp2 = static_cast<float>(1.0);",
    )


def test_a_line_of_the_wrapper_that_only_one_has():
    found = compare_code(*package(more="\n    extra();"), *package())
    assert (found.where, found.ours, found.theirs) == ("wrapper.cpp:4", "extra();", None)


def test_other_kernels():
    found = compare_code(*package(), *package(names=("cpp_fused_add_log_0", "cpp_fused_sum_1")))
    assert found.same_kernels is False
    assert found.other_kernels == ("cpp_fused_add_log_0", "cpp_fused_sum_1")


def test_without_sources_the_symbols_tell_the_names():
    found = compare_code(*package(sources=False), *package(sources=False))
    assert (found.same_kernels, found.same_sources) == (True, None)
    assert compare_code(None, None, *package()).same_kernels is None
