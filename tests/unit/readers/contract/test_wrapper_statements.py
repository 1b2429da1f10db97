"""The grammar of the wrapper's statements: each form has one kind, whoever reads it."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from aotidoctor.readers.contract.run_impl import parse_body
from aotidoctor.readers.contract.wrapper_statements import _ROWS, Kind, read_statement, read_statements
from aotidoctor.readers.contract.wrapper_text import WrapperSection, find_sections

DATA = Path(__file__).parents[3] / "data"
CHECK = "AOTI_TORCH_ERROR_CODE_CHECK("
GUARD = "if (_check_aoti_runtime_check_inputs_env()) { "
ASSERT = 'assert_size_stride(buf2, {s0, 4L}, {4L, 1L}, "aten.mm", __FILE__, "torch.float32");'
FORMS = (
    ("auto arg0_1 = std::move(inputs[3]);", "input", {"name": "arg0_1", "index": 3}),
    ("[[maybe_unused]] auto& w = constants_->at(12);", "constant", {"name": "w", "index": 12}),
    ("const int64_t int_array_0[] = {s0, 4L};", "array", {"name": "int_array_0", "values": ("s0", "4L")}),
    ("int64_t s0 = arg0_1_size[0];", "number", {"name": "s0", "source": "int64_t", "value": "arg0_1_size[0]"}),
    (ASSERT, "assert", {"name": "buf2", "sizes": ("s0", "4L"), "dtype": "float32"}),
    (f"{GUARD}{ASSERT} }}", "assert", {"name": "buf2", "strides": ("4L", "1L"), "operator": "aten.mm"}),
    (
        f"{CHECK}aoti_torch_empty_strided(2, int_array_0, int_array_1, cached_torch_dtype_float32, "
        "cached_torch_device_type_cuda, this->device_idx_, &buf0_handle));",
        "allocate",
        {"name": "buf0", "size_array": "int_array_0", "dtype": "float32", "device_type": "cuda", "source": ""},
    ),
    ("RAIIAtenTensorHandle buf0(buf0_handle);", "own", {"name": "buf0", "source": "buf0_handle"}),
    ("auto buf3 = std::move(buf1);  // reuse", "reuse", {"name": "buf3", "source": "buf1"}),
    ("buf3 = std::move(true_graph_0_buf1);", "move", {"name": "buf3", "source": "true_graph_0_buf1"}),
    (
        "auto v = wrap_with_raii_handle_if_needed(reinterpret_tensor_wrapper(buf1, 2, a, b, 4L*s0));",
        "view",
        {"name": "v", "source": "buf1", "size_array": "a", "stride_array": "b", "value": "4L*s0"},
    ),
    ("if ((long(arg2_1.data_ptr()) & (16 -1)) != 0) {", "align-branch", {}),
    ("if (buf0_scalar) {", "branch", {}),
    ("output_handles[2] = output_handles[0];", "output", {"index": 2, "same": 0}),
    ("output_handles[1] = buf3.release();", "output", {"index": 1, "name": "buf3", "same": None}),
    (f"{CHECK}aoti_torch_clone(c, &output_handles[4]));", "copy", {"index": 4, "name": "c"}),
    (
        f"{CHECK}aoti_torch_cuda_mm_out(buf0, arg0_1, w));",
        "call",
        {"function": "aoti_torch_cuda_mm_out", "checked": True, "parts": ("buf0", "arg0_1", "w")},
    ),
    ("kernels.cpp_fused_add_0((float*)(buf0.data_ptr()));", "call", {"checked": False, "kernels": True}),
)


@pytest.mark.parametrize(("text", "kind", "fields"), FORMS, ids=[text[:40] for text, _, _ in FORMS])
def test_a_form_has_its_kind_and_fields(text, kind, fields):
    found = read_statement(7, text)
    assert (found.kind, found.line, found.text) == (kind, 7, text)
    assert {name: getattr(found, name) for name in fields} == fields


@pytest.mark.parametrize(
    "text",
    [
        'assert_size_stride(buf2, {s0, 4L}, {4L, 1L}, "aten.mm", 7);',
        "NewHandle buf0(buf0_handle);",
        f"{CHECK}aoti_torch_empty_strided_v2(2, a, b, &buf0_handle));",
        "output_handles[x] = buf3.release();",
        "for (;;) {",
    ],
)
def test_a_changed_form_is_unknown_and_counted(text):
    assert read_statement(1, text).kind == "unknown"
    body = parse_body(WrapperSection(text=f"::run_impl(\n) {{\n{text}\n", line=1))
    assert [(one.line, one.example) for one in body.losses.items()] == [(3, text)]


def test_every_statement_of_every_release_has_a_form():
    paths = sorted((DATA / "releases").glob("*/wrappers/*.cpp"))
    sections = [find_sections(path.read_text(encoding="utf-8")).body for path in paths]
    found = [one for section in sections for one in read_statements(section)]
    assert [one.text for one in found if one.kind == "unknown"] == []
    assert {"input", "array", "allocate", "view", "call", "output", "start", "align-branch"} <= {
        one.kind for one in found
    }


def test_what_a_loop_or_an_unknown_statement_takes_is_used_and_what_is_only_dropped_is_not():
    lines = (
        "inputs.clear();",
        f"{CHECK}aoti_torch_assign_tensors_out(arg0_1, &buf0_handle));",
        "NEW_CALL(arg1_1);",
        "arg2_1.reset();",
        "if (arg3_1.is_empty()) {",
    )
    text = "\n".join(("::run_impl(", ") {", *lines, ""))
    assert {name for name in parse_body(WrapperSection(text=text, line=1)).used if name.startswith("arg")} == {
        "arg0_1",
        "arg1_1",
    }


def test_the_table_has_a_form_of_each_kind_and_each_part_is_replaced():
    # The comment above a call is no row: its two lists are read apart.
    assert {kind for _, kind, _ in _ROWS} == set(get_args(Kind)) - {"origins"}
    assert [pattern.text for _, _, pattern in _ROWS if set("«»¦") & set(pattern.text)] == []
    assert all(pattern.compiled for _, _, pattern in _ROWS)
