"""Rules A02, A03 and A07: operators that the package calls from outside, custom operators, training-mode leftovers."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from aotidoctor.program.operators import SWITCHES, Call, add_custom, check_training
from aotidoctor.worker.verify.graph import call_of, graphs
from aotidoctor.worker.verify.records import Records, as_place, first_line

_COMPOSITE = ("CompositeImplicitAutograd", "CompositeExplicitAutograd")


def check_operators(program: Any, missing: list[str], records: Records) -> None:
    """Every operator of every graph, each told once; training-mode ones at each place."""
    calls = list(_calls(program))
    for path, node in calls:
        check_training(call_of(path, node), trains=_trains(node), found=records)
    _check_custom(calls, missing, records)


def _calls(program: Any) -> Iterator[tuple[str, Any]]:
    import torch

    for path, module in graphs(program):
        for node in module.graph.nodes:
            if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
                yield path, node


def _trains(node: Any) -> bool:
    """Whether the argument that says so is True, by its place, by its name, or where it is not given."""
    for at, argument in enumerate(node.target._schema.arguments):
        if argument.name in SWITCHES:
            return (
                node.args[at] if at < len(node.args) else node.kwargs.get(argument.name, argument.default_value)
            ) is True
    return False


def _check_custom(calls: list[tuple[str, Any]], missing: list[str], records: Records) -> None:
    from torch._library.utils import is_builtin

    seen: set[str] = set()
    for path, node in calls:
        name = node.target.name()
        if name in seen or is_builtin(node.target):
            continue
        seen.add(name)
        add_custom(Call(graph=path, node=as_place(node), target=name), records)
        if name in missing:
            continue  # What is declared here in its stead has no kernels at all.
        add = partial(records.add, "A03", node=node, target=name, graph=path)
        if not has_fake(node.target):
            expected = "a fake kernel: compiling the program calls it for shapes and dtypes"
            add("no-fake", observed=f"{name} has no fake kernel", expected=expected)
        device = _device(node)
        if device is not None and not _has_kernel(node.target, device):
            expected = f"a kernel for {device}, where its arguments are"
            add("no-kernel", observed=f"{name} has no kernel for {device}", expected=expected, device=device)


def has_fake(operator: Any) -> bool:
    """Whether shapes and dtypes of its results can be had without running it."""
    import torch
    from torch._library.simple_registry import singleton

    name = operator.name()
    if _has(name, *_COMPOSITE):
        return True
    entry = singleton._data.get(operator._schema.name)
    fake = getattr(entry, "fake_impl", None)
    if fake is not None and fake.kernel is not None:
        return True
    defined = torch._library.custom_ops.OPDEFS.get(operator._schema.name)
    if defined is not None:
        return getattr(defined, "_abstract_fn", None) is not None or not operator._schema.returns
    # The entry of a fake kernel that is gone stays in the dispatcher.
    return fake is None and _has(name, "Meta")


def _has(name: str, *keys: str) -> bool:
    """Whether the operator has a kernel under one of the keys."""
    import torch

    return any(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in keys)


def _device(node: Any) -> str | None:
    import torch
    from torch.utils import _pytree as pytree

    leaves = pytree.tree_leaves((node.args, node.kwargs, node))
    vals = (leaf.meta.get("val") for leaf in leaves if isinstance(leaf, torch.fx.Node))
    return next((val.device.type for val in vals if isinstance(val, torch.Tensor)), None)


def _has_kernel(operator: Any, device: str) -> bool:
    keys = {"cpu": "CPU", "cuda": "CUDA", "xpu": "XPU", "mps": "MPS", "meta": "Meta"}
    key = keys.get(device)
    return key is None or _has(operator.name(), key, *_COMPOSITE)


def check_shims(program: Any, records: Records) -> str | None:
    """Operators that are left after decomposition, that Inductor has no code for, and that lack a C shim.

    Returns why that cannot be told. A program that cannot be decomposed this way may compile all the same.
    """
    from torch._inductor.decomposition import select_decomp_table
    from torch._inductor.lowering import fallbacks, lowerings

    try:
        decomposed = copy.deepcopy(program).run_decompositions(select_decomp_table())
    except Exception as error:
        return f"{type(error).__name__}: {first_line(error)}"
    shims = Shims()
    seen: set[str] = set()
    for path, node in _calls(decomposed):
        name, target = str(node.target), node.target
        has_code = target in lowerings and target not in fallbacks
        if target.namespace != "aten" or has_code or name in seen:
            continue
        seen.add(name)
        _check_shim(path, node, shims, records)
    return None


def _check_shim(path: str, node: Any, shims: Shims, records: Records) -> None:
    name, device = str(node.target), _device(node) or "cpu"
    add = partial(records.add, "A02", node=node, target=name, graph=path, device=device)
    if name not in shims.listed:
        expected = "a shim: without one the call goes through the proxy executor, which is slower and needs libtorch"
        add("no-shim", observed=f"{name} has no C shim in this torch", expected=expected)
    elif not shims.declares(name, device):
        observed = f"the C shims for {device} in this torch do not declare {name}"
        add("undeclared", observed=observed, expected=f"a function that the generated code can call on {device}")


class Shims:
    """``listed`` are operators (``aten.sort.stable``) that Inductor takes to have a shim."""

    def __init__(self) -> None:
        from torchgen.aoti.fallback_ops import inductor_fallback_ops

        # A set before torch 2.9, a dict of versions since.
        self.listed = inductor_fallback_ops
        self._headers: dict[str, str] = {}

    def declares(self, name: str, device: str) -> bool:
        """Whether the header for ``device`` has a function for the operator; True where there is no header to read."""
        text = self._header(device)
        symbols = (f"aoti_torch_{kind}_{self._function(name)}(" for kind in (device, "aten"))
        return not text or any(symbol in text for symbol in symbols)

    def _function(self, name: str) -> str:
        """``sort_stable`` of ``aten.sort.stable``, with the newest version of it."""
        _, operator, overload = name.split(".")
        versions: Any = self.listed.get(name, {}) if isinstance(self.listed, dict) else {}
        newest = max((int(text[1:]) for text in versions if text[:1] == "v" and text[1:].isdigit()), default=1)
        short = operator if overload == "default" else f"{operator}_{overload}"
        return short if newest == 1 else f"{short}_v{newest}"

    def _header(self, device: str) -> str:
        if device not in self._headers:
            import torch

            folder = Path(torch.__file__).parent / "include/torch/csrc/inductor/aoti_torch/generated"
            own = folder / f"c_shim_{device}.h"
            both = (own, folder / "c_shim_aten.h")
            texts = [path.read_text(encoding="utf-8", errors="replace") for path in both if path.is_file()]
            self._headers[device] = "\n".join(texts) if own.is_file() else ""
        return self._headers[device]
