"""Parts of the emulation that need no Triton: arithmetic, blocks, checked memory, what a kernel's text may hold."""

from __future__ import annotations

import ast
import math
from dataclasses import replace

import pytest

np = pytest.importorskip("numpy", reason="numpy is not installed")

from aotidoctor.kernels.expressions import UnreadableExpressionError  # noqa: E402
from aotidoctor.readers.contract.wrapper_statements import read_statement  # noqa: E402
from aotidoctor.worker.emulation.checked_memory import LaunchMemory, Races  # noqa: E402
from aotidoctor.worker.emulation.interpreter import compute  # noqa: E402
from aotidoctor.worker.emulation.kernel_grammar import BUILTINS, RefusedKernel  # noqa: E402
from aotidoctor.worker.emulation.kernel_source import read_kernel  # noqa: E402
from aotidoctor.worker.emulation.launch import BlockTiling  # noqa: E402
from aotidoctor.worker.emulation.shims import find_operator  # noqa: E402
from aotidoctor.worker.emulation.storage import EmulationFindings, LaneFindings, Pointer, device_copy, empty_storage  # noqa: E402
from aotidoctor.worker.emulation.wrapper import CannotReplayError, LostValue, Replay, compute_size  # noqa: E402
from tests.emulation.hostile_kernels import BOUNDLESS, HARMLESS, HOSTILE  # noqa: E402

pytest.importorskip("torch", reason="torch is not installed")
pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("((xnumel + (256 - 1)) / (256))", 3),
        ("168L*s0", 840),
        ("(-7L) / 2L", -3),
        ("c10::div_floor_integer(static_cast<int64_t>((-7L)), static_cast<int64_t>(2L))", -4),
        ("(-7L) % 2L", -1),
        ("std::max({1L, s0, 3L})", 5),
        ("sizes[1] * 2", 18),
        ("0.5", 0.5),
        ("static_cast<int64_t>(std::pow(s0, 3L))", 125),
    ],
)
def test_sizes_are_computed_as_in_cpp(text, value):
    assert compute_size(text, {"xnumel": 600, "s0": 5, "sizes": (4, 9)}) == value


@pytest.mark.parametrize(
    "text",
    [
        "s9",
        "f(1)",
        "__import__('os')",
        "1/0",
        "a.b",
        "[].append",
        "(" * 5000,
        "1 +",
        "std::pow(9L, std::pow(9L, 9L))",
        "9000000000L * 9000000000L",
    ],
)
def test_what_is_no_size_is_unknown(text):
    with pytest.raises(UnreadableExpressionError):
        compute_size(text, {})


@pytest.mark.parametrize("grid", [1, 2, 7, 1000, 5000])
@pytest.mark.parametrize("size", [1, 32, 1024])
def test_blocks_cover_the_grid_once(grid, size):
    tiling = BlockTiling(sizes={"x": size}, axes={"x": 0}, reduced=(), grid=(grid, 1, 1))
    seen = []
    for block in tiling.blocks():
        start, count = block.start["x"], block.count["x"]
        assert start % count == 0
        seen += range(start, start + count)
        lane = (min(size * count - 1, size),)
        program, within = tiling.place(block, lane, (size * count,))
        assert program[0] * size + within == start * size + lane[0]
    assert seen == list(range(grid))


def memory(tensor, *, programs=0, shared=(), whole=False):
    pointer = Pointer(name="in_ptr0", number=1, tensor=tensor, itemsize=4, whole=whole)
    found = EmulationFindings()

    def place(index, shape):
        return {"launch": 1, "line": 1, "lane": index[0]}

    findings = LaneFindings(found=found, place=place)
    written = frozenset(id(one.storage) for one in shared)
    races = Races(findings=findings, programs=lambda shape: programs, shared=written)
    made = LaunchMemory(pointers={1: pointer}, findings=findings, races=races)
    return made, np.uint64(pointer.address), found


def lanes(base, *offsets):
    return base + np.array(offsets, dtype=np.int64).view(np.uint64) * np.uint64(4)


def test_a_lane_outside_reads_zero_and_is_told():
    import torch

    made, base, found = memory(device_copy("a", torch.arange(1, 5, dtype=torch.float32)))
    ptrs = lanes(base, 0, 3, 4, -1, 1 << 40)
    values = made.load(ptrs, np.array([True, True, True, True, False]), None, np.float32, 1)
    assert values.tolist() == [1, 4, 0, 0, 0]
    (one,) = found.findings
    assert (one["kind"], one["lane"], one["offset"], one["extent"], one["count"]) == ("out-of-bounds", 2, 4, 4, 2)


def test_a_store_outside_writes_nothing():
    made, base, found = memory(empty_storage("a", "float32", (4,), (1,)))
    made.store(lanes(base, 3, 4), np.array([7, 8], dtype=np.float32), np.ones(2, dtype=bool), 1)
    assert [one["kind"] for one in found.findings] == ["out-of-bounds"]
    assert made.load(lanes(base, 3), np.ones(1, dtype=bool), None, np.float32, 1).tolist() == [7]
    assert len(found.findings) == 1


@pytest.mark.parametrize(("whole", "astray"), [(False, [0, 3, 4]), (True, [4])])
def test_a_kernel_of_the_users_may_go_anywhere_in_the_allocation(whole, astray):
    base = empty_storage("a", "float32", (8,), (1,))
    base.storage.all_written()
    for offset, lane in ((-1, 0), (3, 3), (6, 4)):
        # The middle of the allocation: elements 2 to 4.
        made, first, found = memory(replace(base, sizes=(3,), offset=2), whole=whole)
        made.load(lanes(first, offset), np.ones(1, dtype=bool), None, np.float32, 1)
        made.store(lanes(first, offset), np.ones(1, dtype=np.float32), np.ones(1, dtype=bool), 1)
        assert bool(found.findings) == (lane in astray)


def test_misaligned_unwritten_and_freed():
    tensor = empty_storage("a", "float32", (4,), (1,))
    made, base, found = memory(tensor)
    made.load(lanes(base, 0) + np.uint64(2), np.ones(1, dtype=bool), None, np.float32, 1)
    made.load(lanes(base, 1), np.ones(1, dtype=bool), None, np.float32, 1)
    tensor.storage.live = False
    made.load(lanes(base, 2), np.ones(1, dtype=bool), None, np.float32, 1)
    assert [one["kind"] for one in found.findings] == ["misaligned", "uninitialized", "use-after-free"]


@pytest.mark.parametrize(
    ("values", "programs", "race"), [((1, 2), (0, 1), True), ((1, 1), (0, 1), False), ((1, 2), (0, 0), False)]
)
def test_two_programs_that_write_one_element(values, programs, race):
    tensor = empty_storage("a", "float32", (4,), (1,))
    made, base, found = memory(tensor, programs=np.array(programs), shared=(tensor,))
    made.store(lanes(base, 2, 2), np.array(values, dtype=np.float32), np.ones(2, dtype=bool), 1)
    assert [one["kind"] for one in found.findings] == (["race"] if race else [])


def test_a_program_that_reads_what_another_writes():
    tensor = empty_storage("a", "float32", (4,), (1,))
    tensor.storage.all_written()
    made, base, found = memory(tensor, shared=(tensor,))
    made.load(lanes(base, 1), np.ones(1, dtype=bool), None, np.float32, 1)
    made.races.programs = lambda shape: 1
    made.store(lanes(base, 1), np.array([5], dtype=np.float32), np.ones(1, dtype=bool), 1)
    assert [one["kind"] for one in found.findings] == ["race"]


@pytest.mark.parametrize("writes", [0, 1])
def test_a_program_that_writes_what_it_reads_together_with_another(writes):
    tensor = empty_storage("a", "float32", (4,), (1,))
    tensor.storage.all_written()
    made, base, found = memory(tensor, programs=np.array([0, 1]), shared=(tensor,))
    made.load(lanes(base, 1, 1), np.ones(2, dtype=bool), None, np.float32, 1)
    made.races.programs = lambda shape: writes
    made.store(lanes(base, 1), np.array([5], dtype=np.float32), np.ones(1, dtype=bool), 1)
    assert [one["kind"] for one in found.findings] == ["race"]


KERNEL = """/*
    async_compile.triton('k', '''
    import triton
    import triton.language as tl
    {head}
    @triton_heuristics.pointwise(triton_meta={{'signature': {{'in_ptr0': '*i64', 'XBLOCK': 'constexpr'}}}},
        inductor_meta={{'grid_type': 'Grid1D'}})
    @triton.jit
    def k(in_ptr0, XBLOCK : tl.constexpr):
        xoffset = tl.program_id(0) * XBLOCK
        {body}
    ''', device_str='cuda')
"""


def test_a_kernel_is_read():
    kernel = read_kernel("k", KERNEL.format(head="", body="x = xoffset"), 100)
    assert (kernel.signature["in_ptr0"], kernel.grid_type, kernel.tiles) == ("*i64", "Grid1D", {"x": 0})
    wrapper = KERNEL.format(head="", body="x = xoffset").split("\n")
    lines = kernel.text.split("\n")
    for number, line in enumerate(lines[:-1]):
        assert wrapper[kernel.first_line - 100 + number].strip() == line.strip()


@pytest.mark.parametrize(
    ("grid", "warps", "known"),
    [
        (("n / 64", "1", "1"), 2, {"BLOCK": 64, "num_warps": 2}),
        (("n / 128", "1", "1"), 4, {"BLOCK": 128, "num_warps": 4}),
        (("n / 64", "1", "1"), 8, {}),
        (("n / 32", "1", "1"), 2, {}),
    ],
)
def test_the_configuration_that_was_compiled_is_known_by_its_grid(grid, warps, known):
    configs = [{"BLOCK": size, "num_warps": many} for size, many in ((64, 2), (128, 4))]
    grids = [{"config": one, "cpp": [f"n / {one['BLOCK']}", "1", "1"]} for one in configs]
    text = KERNEL.format(head="", body="pass").replace(
        "pointwise(", f"user_autotune(configs={configs}, custom_kernel=True, "
    )
    text = text.replace("{'grid_type': 'Grid1D'}", f"{{'grid_type': 'PrecomputedGrid', 'precomputed_grids': {grids}}}")
    kernel = read_kernel("k_0", text, 1, grid, warps)
    assert (kernel.custom, kernel.constants) == (True, known)


@pytest.mark.parametrize(
    ("body", "waits"),
    [
        ("tl.atomic_add(in_ptr0, 1)", False),
        ("at = tl.atomic_add(in_ptr0, 1)", True),
        ("tl.atomic_xchg(in_ptr0, 0)", True),
        ("while tl.atomic_cas(in_ptr0, 0, 1) == 1: pass", True),
    ],
)
def test_programs_that_may_wait_for_one_another(body, waits):
    assert read_kernel("k", KERNEL.format(head="", body=body), 1).waits == waits


def test_a_users_kernel_stands_before_the_functions_that_it_calls_and_in_a_literal():
    comment = (
        KERNEL.replace("in_ptr0': '*i64'", "x_ptr': '*i64'")
        .replace("XBLOCK : tl.constexpr):", 'XBLOCK : tl.constexpr):\n        \\"\\"\\"Doubles.\\"\\"\\"')
        .replace("    ''', device_str", "\n    @triton.jit\n    def helper(x):\n        return x\n    ''', device_str")
    )
    kernel = read_kernel(
        "k_0", comment.format(head="from triton.language.math import rsqrt", body="x = 1 + \\\\\n            2"), 1
    )
    assert (kernel.name, list(kernel.signature)) == ("k", ["x_ptr", "XBLOCK"])


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("import os", "pass"),
        ("from os import path", "pass"),
        ("from triton.language.core import __builtins__", "pass"),
        ("from triton.language.extra import cuda", "pass"),
        ("from torch._inductor.runtime import runtime_utils", "pass"),
        ("print(open('/etc/passwd').read())", "pass"),
        ("x = [y for y in ().__class__.__bases__]", "pass"),
        ("", "eval('1')"),
        ("", "__import__('os').system('true')"),
        ("", "tl.core.__builtins__"),
        ("", "getattr(tl, 'x')"),
        ("", "tl.inline_asm_elementwise('', '', [], tl.int32, True, 1)"),
        ("", "global z"),
        ("(" * 300, "pass"),
        ("x = 1", "x.y = 2"),
        ("x = 1\n    x = 2", "pass"),
        *BOUNDLESS.values(),
    ],
)
def test_what_no_kernel_needs_is_refused(head, body):
    with pytest.raises(RefusedKernel):
        read_kernel("k", KERNEL.format(head=head, body=body), 1)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_of_a_hostile_text_is_more_than_it_may_be(name):
    head, body = (one.replace("\n", "\n    ") for one in HOSTILE[name])
    text = KERNEL.format(
        head=f"from torch._inductor.runtime import triton_helpers, triton_heuristics\n    {head}", body=body
    )
    if name in HARMLESS:
        # What is executed does not have it.
        nodes = [node for one in read_kernel("k", text, 1).checked.functions for node in ast.walk(one)]
        assert not any(isinstance(node, ast.Attribute) for node in nodes)
        assert {node.id for node in nodes if isinstance(node, ast.Name)}.isdisjoint({"inspect", "triton_heuristics"})
    else:
        with pytest.raises(RefusedKernel):
            read_kernel("k", text, 1)


def test_the_least_of_a_long_range_is_not_computed():
    for name in ("min", "max"):
        assert BUILTINS[name](3, 3) == 3
        with pytest.raises(RefusedKernel):
            BUILTINS[name](range(1 << 62))


def test_operators_that_reach_more_than_tensors_are_not_carried_out():
    for name in ("from_file", "from_file_out", "save", "device", "set__source_Storage"):
        with pytest.raises(CannotReplayError):
            find_operator(name)
    assert find_operator("addmm_out")._schema.name == "aten::addmm"


def test_no_source_is_refused():
    for text in ("", "/* nothing */", "async_compile.triton('k', '''"):
        with pytest.raises(RefusedKernel):
            read_kernel("k", text, 1)


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("lgamma", [0.5, 5.0, -1.5], [math.lgamma(x) for x in (0.5, 5.0, -1.5)]),
        ("tgamma", [0.5, 5.0, -0.5, -1.5, -2.5], [math.gamma(x) for x in (0.5, 5.0, -0.5, -1.5, -2.5)]),
        ("round", [0.5, -0.5, 1.4, -2.6, 2.5], [1, -1, 1, -3, 3]),
        # Half is added to neither: 0.49999997 is no half, and 8388609.5 is no float32.
        ("round", [0.49999997, 8388609.0], [0, 8388609]),
    ],
)
def test_functions_of_libdevice(name, values, expected):
    made = compute(name, [np.array(values, dtype=np.float32)])
    assert made == pytest.approx(expected, rel=1e-5)


def test_there_is_no_factorial_of_a_negative_number():
    assert np.isnan(compute("tgamma", [np.array([-1.0, -2.0], dtype=np.float32)])).all()


def replay(*texts):
    """A replay of these statements, with one input of ones, and without kernels and operators."""
    given = device_copy("args[0]", pytest.importorskip("torch").ones(2, 4))
    made = Replay(inputs=[given], constants=[], found=EmulationFindings(), launch=None, operator=None)
    made.run([read_statement(at, text) for at, text in enumerate(texts, start=1)])
    return made


@pytest.mark.parametrize(
    ("text", "dtype", "value"), [("1.5", "float64", 1.5), ("3L", "int64", 3), ("true", "bool", True)]
)
def test_a_tensor_of_a_number_is_made(text, dtype, value):
    made = replay(f"RAIIAtenTensorHandle n = scalar_to_tensor_handle({text});", "output_handles[0] = n.release();")
    assert (made.outputs[0].dtype, made.outputs[0].torch().item()) == (dtype, value)
    assert not made.found.not_emulated


def test_what_a_loop_takes_is_lost_and_not_the_value_before_it():
    made = replay(
        "auto arg0_1 = std::move(inputs[0]);",
        "AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_assign_tensors_out(arg0_1, &buf0_handle));",
        "RAIIAtenTensorHandle buf0(buf0_handle);",
        "output_handles[0] = buf0.release();",
    )
    assert isinstance(made.outputs[0], LostValue)
    assert len(made.found.not_emulated) == 2


def test_an_assertion_of_an_unknown_size_loses_no_tensor_and_the_aligned_copy_is_left_out():
    made = replay(
        "auto arg0_1 = std::move(inputs[0]);",
        "if ((long(arg0_1.data_ptr()) & (16 -1)) != 0) {",
        "arg0_1 = std::move(RAIIAtenTensorHandle(arg0_1_aligned));",
        "}",
        'if (_check_aoti_runtime_check_inputs_env()) { assert_size_stride(arg0_1, {u0, 4L}, {4L, 1L}, "input"); }',
        "output_handles[0] = arg0_1.release();",
    )
    assert made.outputs[0].torch().tolist() == [[1.0] * 4] * 2
    assert made.outputs[0].storage.known
    assert not made.found.not_emulated


def test_a_tensor_that_a_launch_in_run_impl_takes_is_not_known():
    made = replay(
        "auto arg0_1 = std::move(inputs[0]);", "CUdeviceptr var_0 = reinterpret_cast<CUdeviceptr>(arg0_1.data_ptr());"
    )
    assert not made.names["arg0_1"].storage.known
