"""Descriptions of tensors as Python expressions: the same shape, dtype, strides, device, layout and lazy bits.

Values are made up: floating point in [0, 1), integers and booleans one. No value of the user's gets in.
"""

from __future__ import annotations

from collections.abc import Mapping

from aotidoctor.commands.repro.script import quoted
from aotidoctor.model.dtypes import contiguous_stride
from aotidoctor.model.inputs import LeafValue, PlainValue, TensorDesc
from aotidoctor.model.tree import MAPPINGS, Container, Leaf, Tree, child_path

_LITERALS = ("int", "float", "bool", "str", "None", "NoneType")
_CUT = 80
_SPARSE = {"sparse_coo": "to_sparse", "sparse_csr": "to_sparse_csr", "sparse_csc": "to_sparse_csc"}
_BLOCKS = {"sparse_bsr": "to_sparse_bsr", "sparse_bsc": "to_sparse_bsc"}


class UnmadeError(Exception):
    """There is no expression for a leaf; the text says of which and why."""


def tree_text(tree: Tree[LeafValue], path: str, given: Mapping[str, str]) -> str:
    """The expression of a tree of arguments; ``given`` are those of leaves that are not made up."""
    if isinstance(tree, Leaf):
        return given[path] if path in given else leaf_text(tree.value, path)
    parts = [tree_text(child, child_path(path, tree, at), given) for at, child in enumerate(tree.children)]
    if tree.type in MAPPINGS:
        return "{" + ", ".join(f"{key_text(key)}: {part}" for key, part in zip(tree.keys, parts, strict=True)) + "}"
    return _sequence(tree, parts, path)


def _sequence(tree: Container[LeafValue], parts: list[str], path: str) -> str:
    if tree.type == "tuple":
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    if tree.type == "list":
        return f"[{', '.join(parts)}]"
    raise UnmadeError(f"{path} is a {tree.type.removeprefix('namedtuple:')}")


def leaf_text(value: LeafValue, path: str) -> str:
    """The expression of one leaf."""
    return _plain(value, path) if isinstance(value, PlainValue) else _tensor(value, path)


def _plain(value: PlainValue, path: str) -> str:
    if value.type == "ndarray" and value.shape is not None and value.dtype is not None:
        return f"torch.ones({value.shape}, dtype=torch.{value.dtype}).numpy()"
    if value.type in _LITERALS and len(value.text) < _CUT:
        return f'float("{value.text}")' if value.text in ("nan", "inf", "-inf") else value.text
    if value.type in ("dtype", "device") and len(value.text) < _CUT:
        return value.text if value.text.startswith("torch.") else f"torch.{value.text}"
    raise UnmadeError(f"{path} is a {value.type}")


def _tensor(tensor: TensorDesc, path: str) -> str:
    if tensor.quantized:
        return f"torch.quantize_per_tensor(torch.rand({tensor.shape}), 0.1, 10, torch.{tensor.dtype})"
    text = _memory(tensor)
    if tensor.layout in _SPARSE:
        text = f"{_filled(tensor.shape, tensor)}.{_SPARSE[tensor.layout]}()"
    elif tensor.layout in _BLOCKS:
        text = f"{_filled(tensor.shape, tensor)}.{_BLOCKS[tensor.layout]}((2, 2))"
    elif tensor.layout == "mkldnn":
        text = f"{_filled(tensor.shape, tensor)}.to_mkldnn()"
    elif tensor.layout == "nested":
        rows = ", ".join(_filled(tensor.shape[1:], tensor) for _ in range(tensor.shape[0])) if tensor.shape else ""
        text = f"torch.nested.nested_tensor([{rows}])"
    elif tensor.layout != "strided":
        raise UnmadeError(f"{path} is {tensor.layout}")
    text += ".conj()" if tensor.conj else ""
    text = f"torch._neg_view({text})" if tensor.neg else text
    if tensor.subclass == "Parameter":
        return f"torch.nn.Parameter({text}, requires_grad={tensor.requires_grad})"
    return f"{text}.requires_grad_()" if tensor.requires_grad else text


def _memory(tensor: TensorDesc) -> str:
    """Its memory, and the view of it where it is no plain row-major block."""
    if tensor.stride is None or tensor.stride == contiguous_stride(tensor.shape) or 0 in tensor.shape:
        return _filled(tensor.shape, tensor)
    span = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride, strict=True))
    return f"{_filled((span,), tensor)}.as_strided({tensor.shape}, {tensor.stride})"


def _filled(shape: tuple[int, ...], tensor: TensorDesc) -> str:
    dtype, device = tensor.dtype, "" if tensor.device == "cpu" else f', device="{tensor.device}"'
    if dtype.startswith("float8"):
        return f"torch.rand({shape}{device}).to(torch.{dtype})"
    if dtype == "float32":
        return f"torch.rand({shape}{device})"
    maker = "rand" if dtype.startswith(("float", "bfloat", "complex")) else "ones"
    return f"torch.{maker}({shape}, dtype=torch.{dtype}{device})"


def key_text(key: str | int) -> str:
    """A key of a dict."""
    return quoted(key) if isinstance(key, str) else repr(key)


def value_text(value: float | bool) -> str:
    """A number as Python writes it."""
    text = repr(value)
    return f'float("{text}")' if text in ("nan", "inf", "-inf") else text
