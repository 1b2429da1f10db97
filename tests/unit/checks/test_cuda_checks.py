"""Launches that a GPU refuses, and graphs that mix devices."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.checks import launch_limits, mixed_device
from aotidoctor.diagnosis.playbooks import load_playbooks
from aotidoctor.diagnosis.rank import diagnose
from aotidoctor.diagnosis.treatments import plan_treatment
from aotidoctor.model.artifact import Metadata
from aotidoctor.model.case import Gpu
from aotidoctor.model.contract import ModelContract
from aotidoctor.model.evidence import NotChecked
from tests.unit.localize.kernels import case_of, floats, text

CUDA = (Metadata(member="a.wrapper_metadata.json", values={"AOTI_DEVICE_KEY": "cuda"}),)
RELU = "triton_poi_fused_addmm_relu_0"
CPU_KERNEL = """
    // Topologically Sorted Source Nodes: [embedding], Original ATen: [aten.embedding]
    cpp_fused_embedding_9((const float*)({name}.data_ptr()), (float*)(bufc.data_ptr()), s77);
"""
CPU_BUFFER = (
    "AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_0, int_array_1, cached_torch_dtype_float32, "
    "cached_torch_device_type_cpu, 0, &bufc_handle));\n    RAIIAtenTensorHandle bufc(bufc_handle);\n"
)


def mlp(batch, *, wrapper=None):
    return case_of("cuda_printer", replace(floats(batch, 16), device="cuda:0"), wrapper=wrapper, metadata=CUDA)


def with_grid(grid, *, axis=0, guarded=True):
    wrapper = text("cuda_printer.wrapper")
    old = "uint32_t grid_0 = ((xnumel + (128 - 1)) / (128));"
    assert old in wrapper
    others = {number: f"uint32_t grid_{number} = 1;" for number in (1, 2)}
    if axis == 0:
        wrapper = wrapper.replace(old, f"uint32_t grid_0 = {grid};")
    else:
        at = wrapper.index(old)
        wrapper = wrapper[:at] + wrapper[at:].replace(others[axis], f"uint32_t grid_{axis} = {grid};", 1)
    guard = "if (grid_0 == 0 || grid_1 == 0 || grid_2 == 0) return;"
    return wrapper if guarded else wrapper.replace(guard, "")


def test_ordinary_sizes_are_launched():
    assert launch_limits.CHECK.run(mlp(8)) == []


def test_an_empty_grid_that_the_wrapper_leaves_out_is_none():
    assert launch_limits.CHECK.run(mlp(0)) == []


def test_an_empty_grid_of_an_older_wrapper():
    first, second = launch_limits.CHECK.run(mlp(0, wrapper=with_grid("((xnumel + (128 - 1)) / (128))", guarded=False)))
    assert (first.kind, first.subject, second.kind) == ("grid-empty", RELU, "grid-empty")
    assert first.observed == "a grid of (0, 1, 1) (args[0].shape[0] = 0)"
    assert first.facts["place"] == "args[0].shape[0]"
    (diagnosis,) = (d for d in diagnose([first], load_playbooks()) if d.cause == "cuda-launch")
    assert "args[0].shape[0] is 0" in diagnosis.remedy.text


@pytest.mark.parametrize(("axis", "batch"), [(1, 300), (2, 300)])
def test_more_blocks_than_an_axis_has(axis, batch):
    case = mlp(batch, wrapper=with_grid("xnumel * 10", axis=axis))
    (found,) = launch_limits.CHECK.run(case)
    assert found.kind == "grid-large"
    assert found.expected == f"at most 65535 blocks in {'xyz'[axis]}"
    # 32 elements to a row, ten blocks to an element.
    assert found.facts["high"] == 65535 // 320
    plan = plan_treatment("cuda-launch", case, [found])
    assert plan.steps == ({"op": "clamp_dim", "path": "args[0]", "dim": 0, "size": 204},)


def test_the_first_axis_takes_more():
    assert launch_limits.CHECK.run(mlp(300, wrapper=with_grid("xnumel * 10"))) == []


def test_a_grid_that_depends_on_data_is_not_judged():
    assert launch_limits.CHECK.run(mlp(300, wrapper=with_grid("u0 * 70000", axis=1))) == []


@pytest.mark.parametrize(
    ("capability", "shared", "kinds"),
    [("90", 232448, []), ("90", 232449, ["shared"]), ("86", 101377, ["shared"]), ("999", 10**6, []), (None, 10**6, [])],
)
def test_shared_memory(capability, shared, kinds):
    case = mlp(8)
    kernels = tuple(replace(call, shared=str(shared) if call.name == RELU else "0") for call in case.contract.kernels)
    gpus = (Gpu(index=0, name="G", compute_capability=capability),)
    case = replace(case, contract=replace(case.contract, kernels=kernels), host=replace(case.host, gpus=gpus))
    assert [item.kind for item in launch_limits.CHECK.run(case)] == kinds


def test_more_threads_than_a_block_has():
    case = mlp(8)
    kernels = tuple(replace(call, warps="64" if call.name == RELU else call.warps) for call in case.contract.kernels)
    (found,) = launch_limits.CHECK.run(replace(case, contract=replace(case.contract, kernels=kernels)))
    assert (found.kind, found.subject, found.observed) == ("block", RELU, "2048 threads in a block")


def test_limits_are_those_of_cuda():
    """The grid of a Metal kernel is its threads, and a kernel of Triton for the CPU has no limit."""
    case = mlp(300, wrapper=with_grid("xnumel * 10", axis=1))
    assert len(launch_limits.CHECK.run(case)) == 1
    metal = tuple(replace(call, kind="metal") if call.grid else call for call in case.contract.kernels)
    mps = (Metadata(member="a.wrapper_metadata.json", values={"AOTI_DEVICE_KEY": "mps"}),)
    other = replace(case, model=replace(case.model, metadata=mps), contract=replace(case.contract, kernels=metal))
    assert launch_limits.CHECK.run(other) == []
    cpu = (Metadata(member="a.wrapper_metadata.json", values={"AOTI_DEVICE_KEY": "cpu"}),)
    assert launch_limits.CHECK.run(replace(case, model=replace(case.model, metadata=cpu))) == []


def test_without_sources_it_is_not_checked():
    case = mlp(8)
    assert isinstance(mixed_device.CHECK.run(replace(case, contract=None)), NotChecked)
    bare = replace(case.contract, kernels=())
    assert isinstance(bare, ModelContract)
    assert isinstance(launch_limits.CHECK.run(replace(case, contract=bare)), NotChecked)


def mixed(name, *, device="cpu"):
    """The recorded wrapper with a kernel of the CPU in it that reads ``name``."""
    wrapper = text("cuda_printer.wrapper")
    start = wrapper.index("    AOTICudaStreamGuard stream_guard")
    line = wrapper.index("\n", wrapper.index("&buf0_handle));", start)) + 1
    line = wrapper.index("\n", line) + 1
    buffer = CPU_BUFFER.replace("type_cpu", f"type_{device}")
    return wrapper[:line] + "    " + buffer + CPU_KERNEL.format(name=name) + wrapper[line:]


@pytest.mark.parametrize(("name", "shown"), [("l1_weight", "l1.weight"), ("arg4_1", "args[0]"), ("buf0", "buf0")])
def test_a_cpu_kernel_that_gets_a_cuda_tensor(name, shown):
    (found,) = mixed_device.CHECK.run(mlp(8, wrapper=mixed(name)))
    assert (found.kind, found.subject) == ("cpp", "cpp_fused_embedding_9")
    assert (found.observed, found.expected) == (f"{shown} on cuda", "cpu")
    (diagnosis,) = diagnose([found], load_playbooks())
    assert (diagnosis.cause, diagnosis.confidence) == ("mixed-device", 0.9)


def test_a_cpu_kernel_on_cpu_tensors_is_no_fault():
    assert mixed_device.CHECK.run(mlp(8, wrapper=mixed("bufc"))) == []


def test_a_graph_on_one_device_is_no_fault():
    assert mixed_device.CHECK.run(mlp(8)) == []


def test_a_triton_kernel_that_gets_a_cpu_tensor():
    wrapper = mixed("bufc").replace(f"call_{RELU}(buf1, l1_bias,", f"call_{RELU}(buf1, bufc,")
    (found,) = mixed_device.CHECK.run(mlp(8, wrapper=wrapper))
    assert (found.kind, found.subject, found.facts["tensor"]) == ("triton", RELU, "bufc")


def test_a_shim_of_the_gpu_on_cpu_tensors_only():
    line = "    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cuda_scatter_reduce_two_out(bufc, bufc, 0L, bufc, bufc));\n"
    whole = mixed("bufc")
    at = whole.index("    cpp_fused_embedding_9(")
    (found,) = mixed_device.CHECK.run(mlp(8, wrapper=whole[:at] + line + whole[at:]))
    assert (found.kind, found.subject, found.expected) == ("extern", "aoti_torch_cuda_scatter_reduce_two_out", "cuda")


def test_a_shim_may_take_one_tensor_from_the_cpu():
    line = "    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cuda_mul_Scalar_out(buf0, bufc));\n"
    whole = mixed("bufc")
    at = whole.index("    cpp_fused_embedding_9(")
    assert mixed_device.CHECK.run(mlp(8, wrapper=whole[:at] + line + whole[at:])) == []
