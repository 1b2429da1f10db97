"""A shim that is missing is named: in the title of what misses it, and as the subject of *missing-c-shim*."""

from __future__ import annotations

import pytest

from aotidoctor.commands.classify import classify_text

NAMED = (
    (
        "abi-mismatch",
        "aoti_torch_cpu__weight_int4pack_mm_cpu_tensor",
        "OSError: /tmp/x/c.so: undefined symbol: aoti_torch_cpu__weight_int4pack_mm_cpu_tensor",
    ),
    (
        "abi-mismatch",
        "aoti_torch_item_float32",
        "ImportError: dlopen(/tmp/m/c.wrapper.so, 0x0002): Symbol not found: _aoti_torch_item_float32",
    ),
    ("abi-mismatch", "mylib_call", "Error in dlopen: /tmp/aoti_torch_x/c.so: undefined symbol: mylib_call"),
    (
        "undefined-symbol-link",
        "aoti_torch_cuda_bmm_out",
        "RuntimeError: Error in dlopen: /tmp/m/c.wrapper.so: undefined symbol: aoti_torch_cuda_bmm_out",
    ),
    ("missing-c-shim", "_embedding_bag", "error: 'aoti_torch__embedding_bag' was not declared in this scope"),
    (
        "missing-c-shim",
        "cumsum_v2",
        "/tmp/c.cpp:12:8: error: use of undeclared identifier 'aoti_torch_cuda_cumsum_v2'; did you mean 'aoti_torch_cuda_cumsum'?",
    ),
    ("missing-c-shim", "polar", "warning: implicit declaration of function 'aoti_torch_cpu_polar'"),
    ("missing-c-shim", "foo", "cab.cpp(120): error C3861: 'aoti_torch_cpu_foo': identifier not found"),
    (
        "missing-c-shim",
        "aten._scaled_dot_product_flash_attention",
        "[AOTI] c shim missing for aten._scaled_dot_product_flash_attention",
    ),
    (
        "missing-c-shim",
        "aten.grid_sampler_3d.default",
        "aten.grid_sampler_3d.default is missing a c-shim implementation, using proxy executor as fallback",
    ),
)


@pytest.mark.parametrize(("cause", "name", "text"), NAMED, ids=[f"{cause}-{name}" for cause, name, _ in NAMED])
def test_the_shim_is_named(cause, name, text):
    _, diagnoses, _ = classify_text(f"{text}\n".encode(), "log")
    first = diagnoses[0]
    assert first.cause == cause
    assert name in first.title.split()
    if cause == "missing-c-shim":
        assert first.subject == name


def test_the_device_is_named_with_it():
    _, diagnoses, _ = classify_text(b"c.cpp(120): error C3861: 'aoti_torch_cpu_foo': identifier not found\n", "log")
    assert diagnoses[0].title == "foo has no C shim for cpu in this torch"


def test_a_text_without_a_name_makes_none_up():
    _, diagnoses, _ = classify_text(b"OSError: /tmp/x/c.so: symbol not found in flat namespace\n", "log")
    assert (diagnoses[0].cause, diagnoses[0].subject) == ("abi-mismatch", None)
    assert "aoti_torch" not in diagnoses[0].title
