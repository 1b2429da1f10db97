"""Check a call of an operator against its schema and its fake kernel; read and describe its arguments; job ``ops``.

The compiled call passes tensors and integers in two flat arrays; all else is in the package's JSON, with the names. A
saved call has the tensors beside a description, since not every value of torch can be written to a file:
``["tensor", 0]``, ``["tensors", [0, None]]``, ``["value", 2.0]``, ``["torch", "float16"]``.

For the fake kernel meta tensors are tried first: fake tensors need modules whose import takes longer than everything
else here. They are needed where the size of a result depends on values; such a size is None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from aotidoctor.model.answers import Argument, Operator
from aotidoctor.model.jobs import Operators
from aotidoctor.model.torch_names import EXPORTED_TYPES
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.tensors import digest, dtype_name, storage_address, value_counts
from aotidoctor.worker.user_code import load_setup

# Job ops: operators that are registered in this process, after the user's setup.
_KEYS = {"cpu": "CPU", "cuda": "CUDA", "xpu": "XPU"}


def ops(payload: Operators, channel: Channel) -> dict[str, Any]:
    """Look up ``payload.targets`` (``lab::my_op``, ``lab::my_op.default``, ``lab.my_op.default``).

    ``ops`` maps each target to an ``Operator``; its ``kernel`` is whether there is one for ``payload.device``.
    """
    load_setup(payload, channel)
    channel.enter("scan")
    key = dispatch_key(payload.device)
    return {"ops": {target: _describe_operator(target, key) for target in payload.targets}}


def dispatch_key(device: str) -> str:
    """``CUDA`` of ``cuda:1``: the key under which kernels for a device are registered."""
    return _KEYS.get(device.partition(":")[0], "CPU")


def _describe_operator(target: str, key: str) -> Operator:
    name, overload = split_target(target)
    schemas = torch._C._jit_get_schemas_for_operator(name)
    schema = next((one for one in schemas if (one.overload_name or "default") == overload), None)
    if schema is None:
        return Operator(registered=bool(schemas))
    full = f"{name}.{schema.overload_name}" if schema.overload_name else name
    keys = (key, "CompositeExplicitAutograd", "CompositeImplicitAutograd")
    return Operator(
        registered=True,
        schema=str(schema),
        arguments=tuple(
            Argument(name=argument.name, has_default=bool(argument.has_default_value()))
            for argument in schema.arguments
        ),
        returns=len(schema.returns),
        kernel=any(torch._C._dispatch_has_kernel_for_dispatch_key(full, one) for one in keys),
    )


def split_target(target: str) -> tuple[str, str]:
    """``lab.my_op.out`` -> ``lab::my_op`` and ``out``; no overload means ``default``."""
    namespace, colons, rest = target.removeprefix("torch.ops.").partition("::")
    if not colons:
        namespace, _, rest = namespace.partition(".")
    name, _, overload = rest.partition(".")
    return f"{namespace}::{name}", overload or "default"


# Arguments: from the compiled call, from a file, and to one.
Described = dict[str, list[Any]]

# Numbers of torch._export.serde.schema.
_LAYOUTS = {1: "sparse_coo", 2: "sparse_csr", 3: "sparse_csc", 4: "sparse_bsr", 5: "sparse_bsc", 7: "strided"}
_FORMATS = {1: "contiguous_format", 2: "channels_last", 3: "channels_last_3d", 4: "preserve_format"}
_PLAIN = ("float", "floats", "bool", "bools", "string", "strings")


class UnsuitableArgumentError(Exception):
    """Raised for a kind of argument that cannot be given to an operator outside its package; the text names it."""


def read_operator_call(
    node: dict[str, Any], integers: Sequence[int], tensors: Sequence[Any], device: str
) -> tuple[Described, list[Any]]:
    """Read the arguments of one call by name, and the tensors in them, by a node of the package's JSON.

    ``integers`` and ``tensors`` are the flat arrays of the call. Arguments come first in both, results after them.

    Raises:
        UnsuitableArgumentError: mostly an object of a custom class.
    """
    given = [(item["name"], *_only(item["arg"])) for item in node["inputs"]]
    outputs = sum(_only(output)[0] == "int" for output in node.get("outputs", []))
    # Torch before 2.13 takes a constant Scalar from the JSON and not from the array: then there are fewer integers.
    single = sum(kind in ("int", "sym_int") for _, kind, _ in given)
    listed = sum(len(value) for _, kind, value in given if kind in ("ints", "sym_ints"))
    passed = single + listed == len(integers) - outputs
    reader = _FlatArgumentReader(iter(integers), iter(tensors), passed=passed, device=device)
    return {name: reader.read(kind, value) for name, kind, value in given}, reader.used


def _only(union: dict[str, Any]) -> tuple[str, Any]:
    """Kind and value of ``{"as_int": 3}``."""
    ((key, value),) = union.items()
    return key.removeprefix("as_"), value


class _FlatArgumentReader:
    """Reads each argument from the flat arrays; ``used`` are the tensors so far."""

    def __init__(self, integers: Iterator[int], tensors: Iterator[Any], *, passed: bool, device: str) -> None:
        self._integers = integers
        self._tensors = tensors
        self._passed = passed
        self._device = device
        self.used: list[Any] = []

    def read(self, kind: str, value: Any) -> list[Any]:
        match kind:
            case "none":
                return ["value", None]
            case "tensor":
                return ["tensor", self._next_tensor()]
            case "tensors":
                return ["tensors", [self._next_tensor() for _ in value]]
            case "optional_tensors":
                present = [_only(item)[0] == "tensor" for item in value]
                return ["tensors", [self._next_tensor() if found else None for found in present]]
            case "int" | "sym_int":
                return ["value", self._integer(value)]
            case "ints" | "sym_ints":
                return ["value", [self._integer(item) for item in value]]
            case "device":
                return ["device", self._device]
            case _ if kind in _PLAIN:
                return ["value", value]
            case _:
                table = {"scalar_type": EXPORTED_TYPES, "layout": _LAYOUTS, "memory_format": _FORMATS}.get(kind, {})
                name = table.get(value) if isinstance(value, int) else None
                if name is None:
                    raise UnsuitableArgumentError(f"an argument of the kind {kind.replace('_', ' ')}")
                return ["torch", name]

    def _next_tensor(self) -> int:
        self.used.append(next(self._tensors))
        return len(self.used) - 1

    def _integer(self, value: Any) -> int:
        """From the array if it was passed there; other constants are in the JSON."""
        if not self._passed and isinstance(value, int):
            return value
        return int(next(self._integers))


def describe_values(values: dict[str, Any]) -> tuple[Described, list[Any]]:
    """Describe arguments that are Python values, and collect the tensors in them.

    Raises:
        UnsuitableArgumentError: as ``read_operator_call``.
    """
    tensors: list[Any] = []
    return {name: _describe_value(value, tensors) for name, value in values.items()}, tensors


def _describe_value(value: Any, tensors: list[Any]) -> list[Any]:
    def keep(tensor: Any) -> int | None:
        if tensor is None:
            return None
        tensors.append(tensor)
        return len(tensors) - 1

    if isinstance(value, torch.Tensor):
        return ["tensor", keep(value)]
    if isinstance(value, list | tuple) and any(isinstance(item, torch.Tensor) for item in value):
        return ["tensors", [keep(item) for item in value]]
    if isinstance(value, torch.device):
        return ["device", str(value)]
    if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
        return ["torch", str(value).removeprefix("torch.")]
    if value is None or isinstance(value, bool | int | float | str):
        return ["value", value]
    if isinstance(value, list | tuple) and all(isinstance(item, bool | int | float | str) for item in value):
        return ["value", list(value)]
    raise UnsuitableArgumentError(f"an argument of the type {type(value).__name__}")


def build_arguments(described: Described, tensors: Sequence[Any]) -> dict[str, Any]:
    """Python values of a saved call's arguments."""
    build: dict[str, Callable[[Any], Any]] = {
        "value": lambda value: value,
        "tensor": lambda index: tensors[index],
        "tensors": lambda indices: [None if index is None else tensors[index] for index in indices],
        "torch": lambda name: getattr(torch, name),
        "device": torch.device,
    }
    return {name: build[kind](value) for name, (kind, value) in described.items()}


# The schema.
NamedTensors = list[tuple[str, Any]]


def tensors_in(arguments: dict[str, Any]) -> NamedTensors:
    """``(name, tensor)`` of the arguments, ``xs[1]`` for one of a list."""
    found: NamedTensors = []
    for name, value in arguments.items():
        items = enumerate(value) if isinstance(value, list | tuple) else [(None, value)]
        found += [
            (name if at is None else f"{name}[{at}]", item) for at, item in items if isinstance(item, torch.Tensor)
        ]
    return found


def flatten_result(op: Any, result: Any) -> NamedTensors:
    """``(name, tensor)`` of the results: ``result``, ``result[1]``, ``result[1][0]``."""
    found: NamedTensors = []
    values = _values(op, result)
    for at, value in enumerate(values):
        name = "result" if len(values) == 1 else f"result[{at}]"
        if isinstance(value, torch.Tensor):
            found.append((name, value))
        elif isinstance(value, list | tuple):
            found += [(f"{name}[{n}]", item) for n, item in enumerate(value) if isinstance(item, torch.Tensor)]
    return found


def _values(op: Any, result: Any) -> list[Any]:
    """One value per result of the schema."""
    count = len(op._schema.returns)
    return list(result) if count > 1 and isinstance(result, list | tuple) else [result] if count else []


def bad_return(op: Any, result: Any) -> str | None:
    """The fault of a result that is no usable tensor where the schema promises one; None when all are fine."""
    for promised, value in zip(op._schema.returns, _values(op, result), strict=False):
        if str(promised.type) == "Tensor" and value is None:
            return "an undefined tensor (None)"
    for name, tensor in flatten_result(op, result):
        if tensor.device.type == "meta":
            return f"{name} is a meta tensor, without memory"
        try:
            address = tensor.untyped_storage().data_ptr()
        except (RuntimeError, NotImplementedError):
            return f"{name} is a tensor that has no storage"
        if address == 0 and tensor.numel():
            return f"{name} has no memory"
    return None


def storage_digests(arguments: dict[str, Any]) -> dict[int, str | None]:
    """Address of each argument's memory -> digest of the whole memory."""
    return {storage_address(tensor): _digest(tensor) for _, tensor in tensors_in(arguments) if storage_address(tensor)}


def undeclared_writes(op: Any, arguments: dict[str, Any], before: dict[int, str | None]) -> list[str]:
    """Arguments whose memory changed in the call though the schema declares no argument there as written to."""
    declared = {item.name for item in op._schema.arguments if item.alias_info is not None and item.alias_info.is_write}
    allowed = {storage_address(tensor) for name, tensor in tensors_in(arguments) if name.partition("[")[0] in declared}
    # Nothing can be written to a tensor without memory, such as one without elements.
    return [
        name
        for name, tensor in tensors_in(arguments)
        if storage_address(tensor) not in {0, *allowed} and before.get(storage_address(tensor)) != _digest(tensor)
    ]


def undeclared_aliases(op: Any, arguments: dict[str, Any], result: Any) -> list[list[str]]:
    """Pairs of a result and an argument, or of two results, that share memory without the schema saying so."""
    owners = {storage_address(tensor): name for name, tensor in tensors_in(arguments) if storage_address(tensor)}
    returns, found = op._schema.returns, []
    for name, tensor in flatten_result(op, result):
        # 1 of ``result[1][0]``.
        index = int(name.partition("[")[2].partition("]")[0] or 0) if len(returns) > 1 else 0
        promised = returns[index]
        owner = owners.setdefault(storage_address(tensor), name) if storage_address(tensor) else name
        if owner != name and promised.alias_info is None:
            found.append([name, owner])
    return found


def all_finite(arguments: dict[str, Any]) -> bool:
    """True when no argument holds NaN or Inf."""
    return all(
        not value_counts(tensor)["nan"] and not value_counts(tensor)["inf"] for _, tensor in tensors_in(arguments)
    )


def _digest(tensor: Any) -> str | None:
    """Digest of the whole memory that the tensor is a part of."""
    try:
        flat = torch.empty(0, dtype=torch.uint8, device=tensor.device)
        return digest(flat.set_(tensor.untyped_storage()))
    except (RuntimeError, NotImplementedError):
        return digest(tensor)


# The promise of the fake kernel, without the real kernel.
def fake_promise(op: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """``fake``: per result ``path``, ``dtype``, ``shape``, ``stride``, ``device`` (None: unknown).

    Or ``fake_missing``: the error of the attempt.
    """
    with torch.no_grad():
        try:
            result = op(**tree_map_only(torch.Tensor, on_meta, arguments))
            return {"fake": [_facts(name, tensor) for name, tensor in flatten_result(op, result)]}
        except Exception:
            return _with_fake_tensors(op, arguments)


def _with_fake_tensors(op: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    try:
        mode = FakeTensorMode(shape_env=ShapeEnv())
        with mode:
            fakes = tree_map_only(torch.Tensor, partial(mode.from_tensor, static_shapes=True), arguments)
            result = op(**fakes)
        return {"fake": [_facts(name, tensor) for name, tensor in flatten_result(op, result)]}
    except Exception as error:
        return {"fake_missing": f"{type(error).__name__}: {error}"[:2000]}


def on_meta(tensor: Any) -> Any:
    """A tensor of the same form without memory."""
    if tensor.layout != torch.strided:
        return tensor.to("meta")
    return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device="meta")


def _facts(name: str, tensor: Any) -> dict[str, Any]:
    return {
        "path": name,
        "dtype": dtype_name(tensor),
        "shape": [_size(size) for size in tensor.shape],
        "stride": [_size(size) for size in tensor.stride()],
        "device": None if tensor.device.type == "meta" else tensor.device.type,
    }


def _size(size: Any) -> int | None:
    """The size; None if it depends on values."""
    return int(size) if isinstance(size, int) else None
