"""Job ``ops``: what this process has registered under the names of some operators, after the user's setup."""

from __future__ import annotations

from typing import Any

from aotidoctor.model.answers.operators import Argument, Operator
from aotidoctor.model.jobs import Operators
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.setup_module import load_setup

_KEYS = {"cpu": "CPU", "cuda": "CUDA", "xpu": "XPU"}


def ops(payload: Operators, channel: Channel) -> dict[str, Any]:
    """Look up ``payload.targets`` (``lab::my_op``, ``lab::my_op.default``, ``lab.my_op.default``).

    ``ops`` maps each target to an ``Operator``; its ``kernel`` tells whether there is one for the asked ``device``.
    """
    load_setup(payload, channel)
    channel.enter("scan")
    key = dispatch_key(payload.device)
    return {"ops": {target: _describe(target, key) for target in payload.targets}}


def dispatch_key(device: str) -> str:
    """``CUDA`` of ``cuda:1``: what kernels for a device are registered under."""
    return _KEYS.get(device.partition(":")[0], "CPU")


def _describe(target: str, key: str) -> Operator:
    import torch

    name, overload = split_target(target)
    schemas = torch._C._jit_get_schemas_for_operator(name)
    wanted = [schema for schema in schemas if (schema.overload_name or "default") == overload]
    return _schema(wanted[0], name, key) if wanted else Operator(registered=bool(schemas))


def split_target(target: str) -> tuple[str, str]:
    """``lab.my_op.out`` -> ``lab::my_op`` and ``out``; no overload means ``default``."""
    namespace, colons, rest = target.removeprefix("torch.ops.").partition("::")
    if not colons:
        namespace, _, rest = namespace.partition(".")
    name, _, overload = rest.partition(".")
    return f"{namespace}::{name}", overload or "default"


def _schema(schema: Any, name: str, key: str) -> Operator:
    import torch

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
