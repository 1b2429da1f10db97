"""Does an operator keep to its schema? Looks at arguments and results of one call that was made."""

from __future__ import annotations

from typing import Any

from aotidoctor.worker.describe import digest, stats, storage

Named = list[tuple[str, Any]]


def tensors_in(arguments: dict[str, Any]) -> Named:
    """``(name, tensor)`` of the arguments, ``xs[1]`` for one of a list."""
    import torch

    found: Named = []
    for name, value in arguments.items():
        items = enumerate(value) if isinstance(value, list | tuple) else [(None, value)]
        found += [
            (name if at is None else f"{name}[{at}]", item) for at, item in items if isinstance(item, torch.Tensor)
        ]
    return found


def flatten(op: Any, result: Any) -> Named:
    """``(name, tensor)`` of what came back: ``result``, ``result[1]``, ``result[1][0]``."""
    import torch

    found: Named = []
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
    """What is wrong with a result that is no usable tensor where the schema promises one; None when all are fine."""
    for promised, value in zip(op._schema.returns, _values(op, result), strict=False):
        if str(promised.type) == "Tensor" and value is None:
            return "an undefined tensor (None)"
    for name, tensor in flatten(op, result):
        problem = _no_memory(tensor)
        if problem:
            return f"{name} {problem}"
    return None


def _no_memory(tensor: Any) -> str | None:
    if tensor.device.type == "meta":
        return "is a meta tensor, without memory"
    try:
        address = tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return "is a tensor that has no storage"
    return "has no memory" if address == 0 and tensor.numel() else None


def storages(arguments: dict[str, Any]) -> dict[int, str | None]:
    """Address of each argument's memory -> digest of all of it."""
    return {storage(tensor): _digest(tensor) for _, tensor in tensors_in(arguments) if storage(tensor)}


def writes(op: Any, arguments: dict[str, Any], before: dict[int, str | None]) -> list[str]:
    """Arguments whose memory changed in the call though the schema declares no argument there as written to."""
    allowed = {storage(tensor) for name, tensor in tensors_in(arguments) if _declared(op, name)}
    # Nothing can be written to a tensor without memory, such as one without elements.
    return [
        name
        for name, tensor in tensors_in(arguments)
        if storage(tensor) not in {0, *allowed} and before.get(storage(tensor)) != _digest(tensor)
    ]


def aliases(op: Any, arguments: dict[str, Any], result: Any) -> list[list[str]]:
    """Pairs of a result and an argument, or of two results, that share memory without the schema saying so."""
    owners = {storage(tensor): name for name, tensor in tensors_in(arguments) if storage(tensor)}
    returns, found = op._schema.returns, []
    for name, tensor in flatten(op, result):
        promised = returns[_index(name) if len(returns) > 1 else 0]
        owner = owners.setdefault(storage(tensor), name) if storage(tensor) else name
        if owner != name and promised.alias_info is None:
            found.append([name, owner])
    return found


def clean(arguments: dict[str, Any]) -> bool:
    """True when no argument holds NaN or Inf."""
    return all(not stats(tensor)["nan"] and not stats(tensor)["inf"] for _, tensor in tensors_in(arguments))


def _declared(op: Any, name: str) -> bool:
    """Whether the schema says that the argument is written to."""
    wanted = name.partition("[")[0]
    found = next((item for item in op._schema.arguments if item.name == wanted), None)
    return found is not None and found.alias_info is not None and bool(found.alias_info.is_write)


def _index(name: str) -> int:
    """1 of ``result[1][0]``."""
    inside = name.partition("[")[2].partition("]")[0]
    return int(inside or 0)


def _digest(tensor: Any) -> str | None:
    """Of the whole memory that the tensor is a part of."""
    import torch

    try:
        flat = torch.empty(0, dtype=torch.uint8, device=tensor.device)
        return digest(flat.set_(tensor.untyped_storage()))
    except (RuntimeError, NotImplementedError):
        return digest(tensor)
