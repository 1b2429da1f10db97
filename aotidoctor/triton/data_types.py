"""Element types of Triton and of torch, by release."""

from __future__ import annotations

from collections.abc import Mapping

from aotidoctor.model.serving import Release

BFLOAT16_SINCE = "26.11"
_TYPES: Mapping[str, str] = {
    "TYPE_BOOL": "bool",
    "TYPE_UINT8": "uint8",
    "TYPE_INT8": "int8",
    "TYPE_INT16": "int16",
    "TYPE_INT32": "int32",
    "TYPE_INT64": "int64",
    "TYPE_FP16": "float16",
    "TYPE_FP32": "float32",
    "TYPE_FP64": "float64",
}
_BFLOAT16 = {"TYPE_BF16": "bfloat16"}


def data_types(release: Release) -> Mapping[str, str]:
    """The types that the backend takes, with torch's name of each."""
    return {**_TYPES, **_BFLOAT16} if release.since(BFLOAT16_SINCE) else _TYPES


def data_type_of(dtype: str | None, release: Release) -> str | None:
    """Triton's name of a dtype, None where it has none."""
    return next((name for name, torch_name in data_types(release).items() if torch_name == dtype), None)
