"""The memory of run_impl, followed statement by statement: who lives when, and how large."""

from __future__ import annotations

from aotidoctor.commands.map.buffer_lifetimes import bytes_in, lifetimes_of, storage_bytes
from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.model.expr import Num, Sym
from aotidoctor.readers.contract.run_impl import parse_body
from aotidoctor.readers.contract.wrapper_text import WrapperSection

HEAD = "void AOTInductorModel::run_impl(\n    AtenTensorHandle* input_handles\n) {\n"


def allocation(name, sizes="int_array_0", strides="int_array_1"):
    return (
        f"    AtenTensorHandle {name}_handle;\n"
        f"    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, {sizes}, {strides}, cached_torch_dtype_float32, "
        f"cached_torch_device_type_cpu, this->device_idx_, &{name}_handle));\n"
        f"    RAIIAtenTensorHandle {name}({name}_handle);\n"
    )


ARRAYS = (
    "    static constexpr int64_t int_array_0[] = {4L, 12L};\n    static constexpr int64_t int_array_1[] = {12L, 1L};\n"
)


def kernel(number, *names):
    return f"    cpp_fused_{number}({', '.join(f'(float*)({name}.data_ptr())' for name in names)});\n"


def lifetimes(*statements):
    body = parse_body(WrapperSection(text=HEAD + ARRAYS + "".join(statements), line=1))
    return lifetimes_of(body)


def spans(found):
    return {name: (one.first, one.last, one.names[1:]) for name, one in found.items()}


def test_reset_ends_a_buffer_and_what_is_returned_lives_to_the_end():
    found = lifetimes(
        allocation("buf0"), kernel(0, "buf0"), allocation("buf1"), kernel(1, "buf0", "buf1"), "    buf0.reset();\n",
        kernel(2, "buf1"), "    output_handles[0] = buf1.release();\n",
    )  # fmt: skip
    assert spans(found) == {"buf0": (0, 1, ()), "buf1": (1, 2, ())}
    assert bytes_in(found["buf0"].size, {}) == 4 * 12 * 4


def test_reused_memory_is_one_buffer_and_ends_with_its_last_name():
    found = lifetimes(
        allocation("buf0"), kernel(0, "buf0"), "    auto buf1 = std::move(buf0);  // reuse\n", kernel(1, "buf1"),
        "    buf1.reset();\n", kernel(2),
    )  # fmt: skip
    assert spans(found) == {"buf0": (0, 1, ("buf1",))}


def test_a_view_holds_the_memory_of_what_it_shows():
    view = (
        "    auto buf1 = reinterpret_tensor_wrapper(buf0, 2, int_array_0, int_array_1, 0L); buf0.reset();  // alias\n"
    )
    found = lifetimes(allocation("buf0"), kernel(0, "buf0"), view, kernel(1, "buf1"), "    buf1.reset();\n", kernel(2))
    assert spans(found) == {"buf0": (0, 1, ("buf1",))}


def test_what_an_operator_returns_has_the_size_that_is_asserted():
    found = lifetimes(
        "    AtenTensorHandle buf0_handle;\n",
        "    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_convolution(arg0_1, w, &buf0_handle));\n",
        "    RAIIAtenTensorHandle buf0(buf0_handle);\n",
        '    if (_check_aoti_runtime_check_inputs_env()) { assert_size_stride(buf0, {2L, 3L}, {3L, 1L}, "torch.ops.aten.convolution.default"); }\n',
        kernel(1, "buf0"),
    )
    assert spans(found) == {"buf0": (0, 1, ())}
    assert (found["buf0"].dtype, bytes_in(found["buf0"].size, {})) == ("float32", 24)


def test_a_part_of_a_pool_takes_no_memory_of_its_own():
    pool = (
        "    AtenTensorHandle buf1_handle;\n    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch__alloc_from_pool(pool0, 0, "
        "cached_torch_dtype_float32, 2, int_array_0, int_array_1, &buf1));\n"
    )
    found = lifetimes(allocation("pool0"), pool, kernel(0, "buf1"))
    assert {name: one.pool for name, one in found.items()} == {"pool0": None, "buf1": "pool0"}


def test_the_storage_of_a_padded_tensor_counts_the_gaps():
    assert storage_bytes("float32", (Num(2), Num(3)), (Num(8), Num(1))) == Num(4 * (8 + 2 + 1))
    assert storage_bytes("float32", (Num(2), Num(0)), (Num(8), Num(1))) == Num(0)
    assert storage_bytes("float16", ()) == Num(2)
    assert storage_bytes(None, (Num(2),)) is None
    assert str(storage_bytes("int64", (Sym("s0"), parse_expr("4L")))) == "32*s0"
