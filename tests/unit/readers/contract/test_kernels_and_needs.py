"""Kernels, constants, outputs, weights and what the package needs of a host."""

import pytest

from aotidoctor.model.artifact import ExternNode, SharedObject


def test_kernel_calls_in_order(contract_of, recorded_text):
    contract = contract_of(
        "customop", extern_nodes=(ExternNode(name="n0", target="lab::two"), ExternNode(name="n1", target="lab::scale"))
    )
    assert [(kernel.kind, kernel.name) for kernel in contract.kernels] == [
        ("cpp", "cpp_fused_add_two_0"),
        ("custom", "lab::two"),
        ("custom", "lab::scale"),
        ("cpp", "cpp_fused_add_relu_1"),
    ]
    assert contract.custom_ops == ("lab::two", "lab::scale")
    assert contract.kernels[1].origins == ("aten.add", "lab.two")
    assert contract.kernels[1].source_nodes == ("add", "two")
    assert contract.kernels[2].arguments == ("arg0_1", "arg0_1", "buf2", "buf5")
    assert contract.kernels[3].origins == ()  # the comment above the operator is not about the kernel after it
    lines = recorded_text("customop").split("\n")
    assert all(
        kernel.line and ("cpp_fused" in lines[kernel.line - 1] or "proxy" in lines[kernel.line - 1])
        for kernel in contract.kernels
    )


def test_operators_of_aten_itself_need_no_registration(contract_of):
    contract = contract_of("customop", extern_nodes=(ExternNode(name="n0", target="aten::_linalg_svd"),))
    assert contract.custom_ops == ()


def test_triton_launches(contract_of, make_member):
    first, second = contract_of("cuda_sort").kernels
    assert (first.kind, first.name) == ("triton", "triton_red_fused_relu_sum_0")
    assert first.arguments == ("arg0_1", "buf0", "64L", "s77")
    assert first.origins == ("aten.relu", "aten.sum")
    assert (first.grid, first.warps) == (("((xnumel + (2 - 1)) / (2))", "1", "1"), "2")
    assert second.shared == "256"
    assert second.device_code.endswith(".cubin")


def test_device_code_that_is_no_member_is_missing(contract_of, make_member):
    contract = contract_of("cuda_sort")
    wanted = [kernel.device_code for kernel in contract.kernels]
    assert list(contract.needs.missing_gpu_code) == wanted
    there = contract_of("cuda_sort", members=tuple(map(make_member, wanted)))
    assert there.needs.missing_gpu_code == ()


def test_debug_printers_are_no_kernels(contract_of):
    kinds = {(kernel.kind, kernel.name) for kernel in contract_of("cuda_printer").kernels}
    assert kinds == {
        ("extern", "aoti_torch_cuda_mm_out"),
        ("triton", "triton_poi_fused_addmm_relu_0"),
        ("triton", "triton_poi_fused_addmm_mul_sigmoid_1"),
    }


def test_bound_checks_of_cpp_kernels(contract_of, recorded_text):
    (check,) = contract_of("embedding").bound_checks
    assert (check.kernel, check.bound) == ("cpp_fused_embedding_mul_sum_0", "100")
    assert check.text in recorded_text("embedding", "kernel").split("\n")[check.line - 1]
    assert check.member.endswith(".kernel.cpp")
    assert [check.bound for check in contract_of("scatter").bound_checks] == ["8", "8", "8"]


def test_bound_checks_of_triton_kernels(contract_of, recorded_text):
    (check,) = contract_of("cuda_index").bound_checks
    assert (check.kernel, check.bound) == ("triton_poi_fused_add_index_0", "40")
    assert check.text in recorded_text("cuda_index").split("\n")[check.line - 1]


def test_threads_of_the_build_machine(contract_of):
    assert contract_of("bigsum").needs.baked_threads == {"cpp_fused_mul_sum_0": 2}


@pytest.mark.parametrize("kernels", ["bigsum_fixed", "bigsum_dynthreads"])
def test_threads_that_the_kernel_fixes_or_asks_for_are_not_baked(contract_of, kernels):
    assert contract_of("bigsum", kernels=kernels).needs.baked_threads == {}


def test_an_array_that_no_thread_number_indexes_is_no_matter(contract_of, contract_from, recorded_text):
    kernel = recorded_text("bigsum", "kernel").replace("_arr[tid]", "_arr[x0]")
    assert contract_from(recorded_text("bigsum"), kernel).needs.baked_threads == {}


def test_random_operators(contract_of):
    ops = contract_of("dropout").needs.random_ops
    assert "normalized_rand_cpu in cpp_fused_add_native_dropout_rand_like_0" in ops
    assert {"aten.native_dropout", "aten.rand_like"} <= set(contract_of("rand_fallback").needs.random_ops)
    assert contract_of("embedding").needs.random_ops == ()


def test_reads_of_memory_that_nothing_wrote(contract_of):
    assert contract_of("empty_mm").needs.uninitialized_ops == (
        "aten.empty (buf0 read by aoti_torch_cpu_mm_out)",
        "aten.empty (buf2 returned)",
    )
    needs = contract_of("empty").needs
    assert needs.nan_constants == ("cpp_fused_add_0",)
    assert len(needs.uninitialized_ops) == 1


@pytest.mark.parametrize(
    "name", ["empty_filled", "cat", "derived", "mutate", "conv_fold", "customop", "cuda_sort", "scatter"]
)
def test_memory_that_is_written_first_is_no_finding(contract_of, name):
    assert contract_of(name).needs.uninitialized_ops == ()


def test_constants(contract_of):
    contract = contract_of("consts_mid")
    assert [constant.original_fqn for constant in contract.constants] == [
        "l.weight",
        "l.bias",
        "buf",
        "_tensor_constant0",
    ]
    weight = contract.constants[0]
    assert (weight.dtype, weight.shape, weight.stride, weight.data_size) == ("float32", (64, 64), (64, 1), 16384)
    assert [constant.kind for constant in contract.constants] == ["parameter", "parameter", "buffer", "tensorconstant"]
    assert any(constant.from_folded for constant in contract_of("conv_fold").constants)


def test_outputs(contract_of):
    first, second, third, fourth = contract_of("mutate").outputs
    assert (first.same_as, second.same_as, third.same_as, fourth.same_as) == ("args[0]", "args[1]", None, "args[1]")
    assert (third.dtype, third.shape, third.device_type) == ("float32", ("8", "8"), "cpu")
    assert contract_of("div8").outputs[0].shape == ("s40",)
    view = contract_of("evenbatch").outputs[1]
    assert (view.same_as, view.shape) == ("args[0]", ("(s77//4)", "4", "4"))


def test_weights_beside_the_code(contract_of, make_member):
    assert contract_of("conv_blob").weights == "external"
    assert contract_of("conv_blob", members=(make_member("a.wrapper_weights.blob"),)).weights == "blob"
    assert contract_of("conv_blob", members=(make_member("weights_config.json"),)).weights == "disk"
    assert contract_of("div8").weights == "none"


@pytest.mark.parametrize(("span", "where"), [(6400, "so"), (6408, "so"), (16, "mmap"), (1, "mmap"), (2000, "unknown")])
def test_weights_in_or_behind_the_library(contract_of, span, where):
    library = SharedObject(member="a.wrapper.so", format="elf", size=1, constants_span=span)
    assert contract_of("embedding", shared_objects=(library,)).weights == where


def test_what_the_compile_command_tells(contract_of):
    needs = contract_of("embedding").needs
    assert needs.torch_path == "/build/venv/lib/python3.11/site-packages/torch"
    assert (needs.python_version, needs.march_native, needs.device_type) == ("3.11", True, "cpu")
    assert {"avx512f", "avx512_vnni", "fma"} <= set(needs.isa)
    assert contract_of("cuda_sort").needs.cuda_version == "13.0"


def test_kernels_inside_the_wrapper(contract_from, recorded_text):
    whole = recorded_text("bigsum").replace("// Compile cmd", recorded_text("bigsum", "kernel") + "\n// Compile cmd", 1)
    assert contract_from(whole).needs.baked_threads == {"cpp_fused_mul_sum_0": 2}


def test_five_megabytes_are_read_whole(contract_from, recorded_text):
    """How long it takes, ``tests/bench/test_hostile.py`` asks."""
    text = recorded_text("customop")
    at = text.index("    // Topologically Sorted")
    end = text.index("    output_handles[0]")
    block = text[at:end]
    big = text[:end] + block * (5_000_000 // len(block)) + text[end:]
    contract = contract_from(big)
    assert len(contract.kernels) > 5000
    once = contract_from(text)
    assert {call.name for call in contract.kernels} == {call.name for call in once.kernels}
    assert (contract.unknown_lines, contract.n_outputs) == (0, once.n_outputs)
