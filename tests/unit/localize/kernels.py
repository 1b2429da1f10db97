"""Cases around recorded sources: the contract of the wrapper, and integers as the caller passes them."""

from __future__ import annotations

import math
from pathlib import Path

from aotidoctor.model.artifact import Artifact, ArtifactKind, ModelEntry
from aotidoctor.model.case import Case, Host
from aotidoctor.model.inputs import Container, InputSet, Leaf, TensorDesc
from aotidoctor.model.torch_names import contiguous_stride
from aotidoctor.readers.contract.read_contract import read_contract

DATA = Path(__file__).parents[2] / "data" / "wrappers"


def text(name: str) -> str:
    return (DATA / f"{name}.cpp").read_text(encoding="utf-8")


def integers(*values, shape=None, dtype="int64", stride=None) -> TensorDesc:
    """A tensor with these values, row-major."""
    shape = (len(values),) if shape is None else shape
    assert math.prod(shape) == len(values)
    stride = contiguous_stride(shape) if stride is None else stride
    return TensorDesc(dtype=dtype, shape=shape, stride=stride, elements=lambda: values)


def floats(*shape) -> TensorDesc:
    return TensorDesc(dtype="float32", shape=shape, stride=contiguous_stride(shape))


def case_of(name: str, *args, kwargs=None, kernel=None, wrapper=None, **changes) -> Case:
    """The case of the recorded package ``name`` called with these tensors."""
    path = DATA / f"{name}.kernel.cpp"
    source = kernel if kernel is not None else path.read_text(encoding="utf-8") if path.exists() else None
    entry = ModelEntry(
        name="model",
        layout="pt2",
        members=(),
        wrapper_member="a.wrapper.cpp",
        wrapper_cpp=text(f"{name}.wrapper") if wrapper is None else wrapper,
        kernel_sources={} if source is None else {"b.kernel.cpp": source},
        **changes,
    )
    artifact = Artifact(path="m.pt2", kind=ArtifactKind.AOTI_PACKAGE, size=1, models=(entry,))
    named = kwargs or {}
    inputs = InputSet(
        path=None,
        format="live",
        form="live",
        args=Container(type="tuple", children=tuple(Leaf(value=one) for one in args)),
        kwargs=Container(type="dict", children=tuple(Leaf(value=one) for one in named.values()), keys=tuple(named)),
    )
    host = Host(system="Linux", machine="x86_64", python="3.11")
    return Case(artifact=artifact, host=host, model=entry, contract=read_contract(artifact, entry), inputs=inputs)
