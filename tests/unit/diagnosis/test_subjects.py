from __future__ import annotations

import pytest

from aotidoctor.diagnosis.failure_signature import normal_subject, subject_kind

HASH = "c5guxrk6ccepukslcbfglrzrh3r2luchxge7cgg2nsh5lfhblw3c"


@pytest.mark.parametrize(
    ("subject", "kind", "normal"),
    [
        (None, "none", ""),
        ("", "none", ""),
        ("args[0]['a']", "input", "args[0]['a']"),
        ("args[0]['a'].shape[1]", "size", "args[0]['a'].shape[1]"),
        ("kwargs['/odd/key']", "input", "kwargs['/odd/key']"),
        ("result[0], result[1]", "output", "result[0], result[1]"),
        ("/home/me/models/model.pt2", "file", ""),
        ("model.pt2", "file", ""),
        ("/tmp/xyz/gone", "file", ""),
        ("C:\\models\\a.pt2", "file", ""),
        (f"model/data/aotinductor/model/{HASH}.wrapper.so", "member", "<hash>.wrapper.so"),
        (f"other/data/aotinductor/encoder/{HASH}.wrapper.so", "member", "<hash>.wrapper.so"),
        ("data/aotinductor/encoder", "member", "model"),
        ("zoo::misbehave", "operator", "zoo::misbehave"),
        ("aten.empty (buf7 read by mm)", "operator", "aten.empty (buf read by mm)"),
        ("aten.native_dropout", "operator", "aten.native_dropout"),
        ("triton_poi_fused_add_12", "kernel", "triton_poi_fused_add"),
        ("cpp_fused_add_log_0 (aten.log)", "kernel", "cpp_fused_add_log (aten.log)"),
        ("aoti_torch_cpu_mm_out (aten.mm)", "kernel", "aoti_torch_cpu_mm_out (aten.mm)"),
        ("libcudart.so.12", "library", "libcudart.so"),
        ("libstdc++.so.6.0.30", "library", "libstdc++.so"),
        ("GLIBC_2.38", "name", "GLIBC"),
        ("GLIBCXX_3.4.32", "name", "GLIBCXX"),
        ("aoti_torch_cpu_addmm_new", "name", "aoti_torch_cpu_addmm_new"),
        ("AOTI_DEVICE_KEY", "key", "AOTI_DEVICE_KEY"),
        ("l.weight", "name", "l.weight"),
    ],
)
def test_what_a_subject_is_and_what_stays_of_it(subject, kind, normal):
    assert (subject_kind(subject), normal_subject(subject)) == (kind, normal)
