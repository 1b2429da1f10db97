"""Kernels of packages for the GPUs of Apple, Intel and AMD, from wrappers that torch 2.13 writes (made without a GPU)."""

from __future__ import annotations

import pytest

from aotidoctor.readers.contract.wrapper_statements import read_statements
from aotidoctor.readers.contract.wrapper_text import WrapperSection
from tests.unit.readers.contract.conftest import artifact_of, entry_of, recorded

# As 2.8 writes it, by the docstring of its generator; the next release had functions in the place of the variables.
OLD = """void AOTInductorModel::run_impl(
) {
    auto mps_lib_0_func = mps_lib_0.getKernelFunction("generated_kernel");
    auto mps_lib_0_func_handle = AOTIMetalKernelFunctionHandle(mps_lib_0_func.get());
    mps_lib_0_func->runCommandBlock([&] {
        mps_lib_0_func->startEncoding();
        aoti_torch_mps_set_arg(mps_lib_0_func_handle, 0, buf0);
        aoti_torch_mps_set_arg(mps_lib_0_func_handle, 1, arg0_1);
        mps_lib_0_func->dispatch({static_cast<uint64_t>(s77), static_cast<uint64_t>(16L)});
    });
    arg0_1.reset();
}"""


def statements(text):
    return list(read_statements(WrapperSection(text=text, line=1)))


def test_a_launch_is_one_call_with_its_tensors_and_threads(contract_of):
    contract = contract_of("mps")
    assert [(one.name, one.kind, one.grid[:1]) for one in contract.kernels] == [
        ("aoti_torch_mps_addmm_out", "extern", ()),
        ("mps_lib_0", "metal", ("s77",)),
        ("mps_lib_1", "metal", ("16L",)),
        ("mps_lib_2", "metal", ("48L",)),
    ]
    assert contract.kernels[3].arguments == ("buf5", "arg4_1", "buf0", "arg2_1", "s77")
    assert not any(one.unchecked for one in contract.kernels)
    assert [(body.name, body.kind, body.parameters[0].const) for body in contract.bodies] == [
        (name, "metal", False) for name in ("mps_lib_0", "mps_lib_1", "mps_lib_2")
    ]


def test_inputs_of_kernels_are_read_and_not_written(contract_of):
    leaves = contract_of("mps").tensor_leaves()
    assert [leaf.used for leaf in leaves] == [True] * 5
    assert not any(leaf.mutated for leaf in leaves)


LATER = OLD.replace("mps_lib_0_func_handle, ", "get_mps_lib_0_handle(), ").replace(
    "mps_lib_0_func->", "get_mps_lib_0()->"
)


@pytest.mark.parametrize("text", [OLD, LATER])
def test_a_block_of_2_8_and_after(text):
    call, *rest = [one for one in statements(text) if one.kind != "plain"]
    assert (call.kind, call.function, call.arguments) == ("call", "mps_lib_0", "buf0, arg0_1")
    assert call.values == ("s77", "16L")
    assert [one.kind for one in rest] == ["release"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("aoti_torch_mps_set_arg_tensor(handle, 1, buf0);", "aoti_torch_mps_set_arg_new(handle, 1, buf0);"),
        ("aoti_torch_mps_set_arg_tensor(handle, 1, buf0);\n", "\n"),
        ("            aoti_torch_mps_dispatch_single(handle, static_cast<uint64_t>(48L));\n", ""),
        (
            "            aoti_torch_mps_dispatch_single(handle, static_cast<uint64_t>(48L));\n        };\n",
            "            aoti_torch_mps_dispatch_single(handle, static_cast<uint64_t>(48L));\n",
        ),
    ],
)
def test_what_is_not_understood_in_a_block_is_counted(old, new):
    text = recorded("mps")
    assert old in text
    entry = entry_of(text.replace(old, new))
    from aotidoctor.readers.contract.read_contract import read_contract

    assert read_contract(artifact_of(entry), entry).unknown_lines >= 1


def test_a_size_keeps_its_brackets():
    text = OLD.replace("static_cast<uint64_t>(16L)", "static_cast<uint64_t>(div_floor_integer(s77, 2L))")
    call = next(one for one in statements(text) if one.kind == "call")
    assert call.values == ("s77", "div_floor_integer(s77, 2L)")


def test_a_block_that_ends_with_the_text_is_not_understood():
    text = OLD.partition("    });")[0]
    assert [one.kind for one in statements(text) if one.kind != "plain"] == ["unknown"]


def test_a_block_without_an_end_takes_no_more_than_its_share():
    begin = "auto mps_lib_0_lambda_0 = [&](AOTIMetalKernelFunctionHandle handle) {\n"
    text = "void AOTInductorModel::run_impl(\n) {\n" + (begin + "x = 1;\n" * 500) * 50
    kinds = [one.kind for one in statements(text)]
    assert kinds.count("unknown") == 50
    assert len(kinds) > 4000


def test_a_source_that_is_cut_is_no_kernel(contract_from):
    text = recorded("mps")
    contract = contract_from(text.replace("kernel void generated_kernel(", "kernel void gen(", 1))
    assert "mps_lib_0" not in {body.name for body in contract.bodies}
    assert contract.unread


@pytest.mark.parametrize(("name", "device"), [("xpu", "xpu"), ("rocm", "cuda")])
def test_triton_kernels_of_other_gpus(contract_of, name, device):
    contract = contract_of(name)
    assert contract.unread == ()
    assert [(one.kind, one.warps) for one in contract.kernels] == [("extern", None), *[("triton", "4")] * 3]
    assert contract.kernels[1].arguments == ("buf0", "arg2_1", "buf3", "s77", "16L")
    assert {one.device_type for one in contract.outputs} == {device}
    assert not any(leaf.mutated or not leaf.used for leaf in contract.tensor_leaves())
