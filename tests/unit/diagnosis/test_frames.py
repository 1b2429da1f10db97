from __future__ import annotations

import pytest

from aotidoctor.diagnosis.failure_signature import (
    logged_frames,
    native_frames,
    normal_function,
    python_frames,
    top_frames,
)
from aotidoctor.model.localization import Frame


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("acme::run(at::Tensor const&, long)", "acme::run"),
        ("acme::Map<std::string, int>::find(int) const", "acme::Map::find"),
        ("void acme::loop<float>(float*)", "acme::loop"),
        ("acme::go()::{lambda(int)#3}::operator()(int) const", "acme::go::{lambda}::operator"),
        ("(anonymous namespace)::misbehave(at::Tensor)", "misbehave"),
        ("cpp_fused_add_log_3(float const*)", "cpp_fused_add_log"),
        ("cpp_fused_add_log_3(float const*) [clone ._omp_fn.0]", "cpp_fused_add_log"),
        ("helper.constprop.0", "helper"),
        ("helper.isra.0.cold", "helper"),
        ("name[abi:cxx11](int)", "name"),
    ],
)
def test_functions_are_named_alike(written, normal):
    assert normal_function(written) == normal


def stack(*names):
    return [(name, "") for name in names]


def test_what_reports_the_failure_is_not_where_it_is():
    raised = stack("__pthread_kill_implementation", "__GI_raise", "__GI_abort", "misbehave", "PyObject_Call", "main")
    thrown = stack("c10::Error::Error", "c10::detail::torchCheckFail", "misbehave", "c10::Dispatcher::call")
    assert top_frames(raised) == top_frames(thrown) == ("misbehave",)


def test_a_helper_of_the_c_library_is_kept_with_who_called_it():
    avx = top_frames(stack("__memmove_avx512_unaligned_erms", "acme::copy(char*)", "acme::run()"))
    sse = top_frames(stack("__memmove_sse2_unaligned_erms", "acme::copy(char*)", "acme::run()"))
    assert avx == sse == ("memmove", "acme::copy", "acme::run")


def test_frameworks_and_unknown_frames_are_left_out():
    frames = stack("??", "at::native::add", "torch::aot_inductor::AOTInductorModel::run_impl", "GOMP_parallel", "main")
    assert top_frames(frames) == ()


def test_recursion_does_not_fill_the_places():
    assert top_frames(stack(*["dive(int)"] * 500, "enter()")) == ("dive", "enter")


def test_files_of_frameworks_tell_where_a_function_belongs():
    frames = [Frame(index=0, function="hook", file="/x/torch/a.py"), Frame(index=1, function="mine", file="/x/a.py")]
    assert native_frames(frames) == ("mine",)


def test_the_last_of_chained_tracebacks_counts():
    text = (
        'Traceback (most recent call last):\n  File "/a.py", line 1, in first\nKeyError\n\nDuring handling...\n\n'
        'Traceback (most recent call last):\n  File "/a.py", line 9, in outer\n  File "/b.py", line 2, in inner\nError\n'
    )
    assert python_frames(text) == ("inner", "outer")


def test_frames_of_a_log_lose_folders_and_lines():
    frames = ("misbehave(at::Tensor)", "/home/ann/run.py:44", "answer (/home/ann/serve.py:3)")
    assert logged_frames(frames) == ("misbehave", "run.py", "answer")
    assert logged_frames(("__call__ (/venv/lib/python3.11/site-packages/torch/_ops.py:9)",)) == ()
