"""Job ``ops``: what this process has registered under the names of some operators, after the user's setup."""

from __future__ import annotations

from typing import Any

from aotidoctor.model.jobs import Operators
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.setup_module import load_setup


def ops(payload: Operators, channel: Channel) -> dict[str, Any]:
    """Look up ``payload.targets`` (``lab::my_op``, ``lab::my_op.default``, ``lab.my_op.default``).

    ``ops`` maps each target to ``registered``, ``overloads``, and for the wanted overload ``schema`` (text, else None),
    ``arguments`` (name, type, kwarg_only, has_default), ``returns`` (count), ``return_types``, ``kernel`` (is there one
    for the payload's ``device``), ``kernels`` (dispatch keys that have one), ``mutates``.
    """
    load_setup(payload, channel)
    channel.enter("scan")
    key = {"cpu": "CPU", "cuda": "CUDA", "xpu": "XPU"}.get(payload.device.partition(":")[0], "CPU")
    return {"ops": {target: _describe(target, key) for target in payload.targets}, "dispatch_key": key}


def _describe(target: str, key: str) -> dict[str, Any]:
    import torch

    name, overload = split_target(target)
    schemas = torch._C._jit_get_schemas_for_operator(name)
    facts: dict[str, Any] = {
        "registered": bool(schemas),
        "overloads": [schema.overload_name or "default" for schema in schemas],
    }
    wanted = [schema for schema in schemas if (schema.overload_name or "default") == overload]
    return facts | (_schema(wanted[0], name, key) if wanted else {"schema": None})


def split_target(target: str) -> tuple[str, str]:
    """``lab.my_op.out`` -> ``lab::my_op`` and ``out``; no overload means ``default``."""
    namespace, colons, rest = target.removeprefix("torch.ops.").partition("::")
    if not colons:
        namespace, _, rest = namespace.partition(".")
    name, _, overload = rest.partition(".")
    return f"{namespace}::{name}", overload or "default"


def _schema(schema: Any, name: str, key: str) -> dict[str, Any]:
    import torch

    full = f"{name}.{schema.overload_name}" if schema.overload_name else name
    keys = (key, "CompositeExplicitAutograd", "CompositeImplicitAutograd", "Meta")
    kernels = [one for one in keys if torch._C._dispatch_has_kernel_for_dispatch_key(full, one)]
    return {
        "schema": str(schema),
        "arguments": [_argument(argument) for argument in schema.arguments],
        "returns": len(schema.returns),
        "return_types": [str(value.type) for value in schema.returns],
        "kernel": any(one != "Meta" for one in kernels),
        "kernels": kernels,
        "mutates": bool(schema.is_mutable),
    }


def _argument(argument: Any) -> dict[str, Any]:
    return {
        "name": argument.name,
        "type": str(argument.type),
        "kwarg_only": bool(argument.kwarg_only),
        "has_default": bool(argument.has_default_value()),
    }
