"""What operators of torch say of their arguments, and codes of drivers, without a stack around them."""

from __future__ import annotations

import pytest

from aotidoctor.commands.classify import classify_text


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("RuntimeError: addmv: Expected vec to be 1-D", "input-rank"),
        ("RuntimeError: quantile() input tensor must be either float or double dtype", "input-dtype"),
        ("RuntimeError: mkldnn_linear: input needs to be mkldnn layout", "input-layout"),
    ],
)
def test_what_an_operator_says_of_its_arguments(text, cause):
    _, diagnoses, _ = classify_text(text.encode(), "log")
    assert [(item.cause, item.confidence < 0.45) for item in diagnoses] == [(cause, True)]


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("RuntimeError: Triton Error [ZE]: 0x70000003", "out-of-memory"),
        ("RuntimeError: Triton Error [ZE]: 0x78000013", "cuda-launch"),
        ("RuntimeError: Native API failed. Native API returns: -2 (PI_ERROR_DEVICE_NOT_AVAILABLE)", "device-unavailable"),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH", "abi-mismatch"),
        ("RuntimeError: CUDA error: capture sequence contains a merge of separate capture sequences", "cuda-graph-capture"),
    ],
)  # fmt: skip
def test_codes_of_drivers_as_their_headers_have_them(text, cause):
    _, diagnoses, _ = classify_text(text.encode(), "log")
    assert [(item.cause, item.confidence < 0.5) for item in diagnoses] == [(cause, True)]
