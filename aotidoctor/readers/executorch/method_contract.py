"""Build the contract of an ExecuTorch method from its plan, and from the texts of the code that it hands over to.

The plan has dtype, rank and order of the dims of each input, and its sizes, which are upper bounds where the tensor is
dynamic. Which of them may change, and the lower bounds, only the checks of AOTInductor's code tell. They are about the
same tensors where one delegate gets all inputs of the method as they are: nothing but copies stands around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.model.contract import ConstantSpec, Dim, HostNeeds, LeafSpec, ModelContract, OutputSpec
from aotidoctor.model.expr import Num
from aotidoctor.model.inputs import Container, Leaf
from aotidoctor.model.other_artifacts import EMPTY_SHA256, ExecutorchFile, PlanTensor, PteMethod

_DEVICES = {"CudaBackend": "cuda", "MetalBackend": "mps", "mps": "mps"}
_COPIES = "et_copy::"


def method_contract(
    program: ExecutorchFile, method: PteMethod, code: ModelContract | None, targets: Sequence[str]
) -> ModelContract:
    """The contract of ``method``; ``code`` is that of its AOTInductor code, for the GPUs ``targets``."""
    leaves, tensors = [], 0
    for at, value in enumerate(method.inputs):
        if isinstance(value, PlanTensor):
            leaves.append(_leaf(value, at, tensors))
            tensors += 1
        else:
            leaves.append(LeafSpec(index=at, path=f"args[{at}]", kind="constant"))
    if code is not None and (known := _same_inputs(method, leaves, code)):
        leaves = [_with_checks(leaf, one) for leaf, one in zip(leaves, known, strict=True)]
    constants = tuple(
        ConstantSpec(name=one.fqn or "", original_fqn=one.fqn or "", dtype=one.dtype, shape=one.shape)
        for one in method.external
    )
    devices = (_DEVICES[one.backend] for one in method.delegates if one.backend in _DEVICES)
    machine = next((one.removeprefix("sm_") for one in targets if one.startswith("sm_")), None)
    return ModelContract(
        model_name=method.name,
        source="executorch",
        args=Container(type="tuple", children=tuple(Leaf(value=at) for at in range(len(leaves)))),
        kwargs=Container(type="dict", children=()),
        leaves=tuple(leaves),
        n_inputs=tensors,
        n_outputs=len(method.outputs),
        outputs=tuple(_output(value, at, len(method.outputs)) for at, value in enumerate(method.outputs)),
        constants=(*constants, *(code.constants if code is not None else ())),
        needs=HostNeeds(device_type=next(devices, "cpu"), compute_capability=machine),
        weights=_weights(program, method),
    )


def _leaf(value: PlanTensor, at: int, input_index: int) -> LeafSpec:
    return LeafSpec(
        index=at,
        path=f"args[{at}]",
        kind="tensor",
        input_index=input_index,
        dtype=value.dtype,
        rank=len(value.shape),
        dims=tuple(_dim(value, size) for size in value.shape),
        strides=_strides(value),
        device_type=value.device.partition(":")[0],
    )


def _dim(value: PlanTensor, size: int) -> Dim:
    return _fixed_dim(size) if not value.dynamic else Dim() if value.unbounded else Dim(max=size)


def _fixed_dim(size: int) -> Dim:
    return Dim(static=size, expr=Num(size))


def _strides(value: PlanTensor) -> tuple[int | None, ...] | None:
    """Strides by the order of the dims, None from the first size on that may change."""
    if sorted(value.dim_order) != list(range(len(value.shape))):
        return None
    strides: dict[int, int | None] = {}
    step: int | None = 1
    for dim in reversed(value.dim_order):
        strides[dim] = step
        step = None if step is None or value.dynamic else step * value.shape[dim]
    return tuple(strides[dim] for dim in range(len(value.shape)))


def _same_inputs(method: PteMethod, leaves: Sequence[LeafSpec], code: ModelContract) -> list[LeafSpec] | None:
    """The inputs of the code in the order of ``leaves``; None where they may be others than those of the method."""
    inputs = list(code.tensor_leaves())
    alone = len(method.delegates) == 1 and all(name.startswith(_COPIES) for name in method.operators)
    if not alone or len(inputs) != len(leaves) or any(leaf.input_index is None for leaf in leaves):
        return None
    fitting = all(
        one.dtype in (None, leaf.dtype) and one.rank in (None, leaf.rank) and _bounds_fit(leaf, one)
        for leaf, one in zip(leaves, inputs, strict=True)
    )
    return inputs if fitting else None


def _bounds_fit(leaf: LeafSpec, one: LeafSpec) -> bool:
    """Whether the upper bounds of the plan are sizes that the code accepts."""
    return all(
        (size := dim.max if dim.static is None else dim.static) is None
        or (
            checked.static in (None, size)
            and (not checked.among or size in checked.among)
            and (checked.max or size) >= size
        )
        for dim, checked in zip(leaf.dims or (), one.dims or (), strict=False)
    )


def _with_checks(leaf: LeafSpec, one: LeafSpec) -> LeafSpec:
    """``leaf`` with what the code tells of its sizes: one that is fixed is its own upper bound."""
    if one.rank is None:
        return leaf
    dims = []
    for dim, checked in zip(leaf.dims or (), one.dims or (), strict=True):
        fixed = dim.max is not None and (checked.static is not None or bool(checked.among))
        dims.append(_fixed_dim(dim.max) if fixed and dim.max is not None else replace(dim, min=checked.min))
    return replace(leaf, dims=tuple(dims), generated_name=one.generated_name)


def _output(value: PlanTensor | str, at: int, count: int) -> OutputSpec:
    path = "result" if count == 1 else f"result[{at}]"
    if isinstance(value, str):
        return OutputSpec(index=at, path=path, kind="none" if value == "None" else "number")
    open_size = "any" if value.unbounded else "at most {}"
    sizes = tuple(open_size.format(size) if value.dynamic else str(size) for size in value.shape)
    return OutputSpec(index=at, path=path, dtype=value.dtype, shape=sizes, device_type=value.device.partition(":")[0])


def _weights(program: ExecutorchFile, method: PteMethod) -> str:
    """Where the weights of the method are."""
    keys = [key for one in method.delegates for key in (one.weights_key, *one.other_keys) if key is not None]
    keys = [key for key in keys if not key.startswith(EMPTY_SHA256)]
    if method.external or any(key not in program.keys for key in keys):
        return "external"
    return "blob" if keys else "unknown"
