"""Arguments of the calls in a pickle: sizes, dtypes, devices, layouts, classes."""

from __future__ import annotations

from aotidoctor.model.dtypes import ITEMSIZE
from aotidoctor.readers.inputs.nodes import Call, Global, Items, Value
from aotidoctor.readers.inputs.storage import MalformedError

MAX_RANK = 64


def sizes(value: Value) -> tuple[int, ...]:
    """A shape or strides: a tuple, a list or a torch.Size of non-negative integers."""
    if isinstance(value, Call) and value.name == "torch.Size" and len(value.args) == 1:
        value = value.args[0]
    items = value.items if isinstance(value, Items) else value
    if not isinstance(items, (tuple, list)) or len(items) > MAX_RANK:
        raise MalformedError("an unexpected value in place of sizes")
    return tuple(size(item) for item in items)


def size(value: Value) -> int:
    """A count of elements: a size, a stride or an offset."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 62:
        raise MalformedError("a size or stride that is not a non-negative integer")
    return value


def dtype_name(value: Value) -> str:
    """``float32`` of the global ``torch.float32``."""
    name = value.name.removeprefix("torch.") if isinstance(value, Global) else ""
    if name not in ITEMSIZE:
        raise MalformedError("an unexpected value in place of a dtype")
    return name


def device_name(value: Value) -> str:
    """``cuda:1`` of ``torch.device("cuda", 1)`` or of a text."""
    parts = value.args if isinstance(value, Call) and value.name == "torch.device" else (value,)
    return ":".join(str(part) for part in parts if isinstance(part, (str, int)))[:40] or "cpu"


def layout_name(value: Value) -> str:
    """``sparse_csr`` of ``torch.serialization._get_layout("torch.sparse_csr")``."""
    if isinstance(value, Call) and value.name == "torch.serialization._get_layout" and len(value.args) == 1:
        name = value.args[0]
        if isinstance(name, str):
            return name.removeprefix("torch.")[:40]
    return "strided"


def class_name(value: Value) -> str | None:
    """The last part of a class's name, None for ``torch.Tensor`` itself."""
    if not isinstance(value, Global) or value.name == "torch.Tensor":
        return None
    return value.name.rpartition(".")[2]
