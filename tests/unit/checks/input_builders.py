"""Small contracts and calls for the tests of the input checks: no files, no torch."""

from __future__ import annotations

from aotidoctor.checks.registry import CHECKS
from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.model.artifact import Artifact, ArtifactKind, ExportedFacts
from aotidoctor.model.case import Case, Host, Options
from aotidoctor.model.contract import Dim, LeafSpec, ModelContract
from aotidoctor.model.evidence import NotChecked
from aotidoctor.model.inputs import Container, InputSet, Leaf, PlainValue, TensorDesc, walk_call


def contiguous(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def tensor(*shape, dtype="float32", **more):
    more.setdefault("stride", contiguous(shape))
    return TensorDesc(dtype=dtype, shape=tuple(shape), **more)


def plain(value):
    return PlainValue(type="None" if value is None else type(value).__name__, text=repr(value))


def dim(size):
    """``16`` is static, ``"s0"`` or ``"8*s0"`` dynamic, ``("s0", 2, 64)`` dynamic with bounds."""
    match size:
        case int():
            return Dim(static=size)
        case str():
            return Dim(expr=parse_expr(size))
        case (expr, low, high):
            return Dim(expr=parse_expr(expr), min=low, max=high)


class Spec:
    """A leaf of the contract under construction; ``None`` as dtype makes a baked-in constant.

    Strides may hold text: ``("8*s0", 8, 1)``.
    """

    def __init__(self, *dims, dtype="float32", device="cpu", strides=None, used=None, alignment=None):
        self.dims, self.dtype, self.device, self.used = dims, dtype, device, used
        self.strides, self.alignment = strides, alignment

    def strides_or_default(self):
        if self.strides is not None:
            return tuple(step if isinstance(step, int) else None for step in self.strides)
        if all(isinstance(size, int) for size in self.dims):
            return contiguous(self.dims)
        tail = self.dims[1:]
        return contiguous((1, *tail)) if all(isinstance(size, int) for size in tail) else (None,) * len(self.dims)

    def stride_exprs(self):
        return None if self.strides is None else tuple(parse_expr(str(step)) for step in self.strides)


CONSTANT = Spec(dtype=None)


def to_tree(value, make):
    if isinstance(value, tuple | list):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return Container(type=kind, children=tuple(to_tree(item, make) for item in value))
    if isinstance(value, dict):
        children = tuple(to_tree(item, make) for item in value.values())
        return Container(type="dict", children=children, keys=tuple(value))
    return Leaf(value=make(value))


def contract_of(*args, **kwargs):
    specs = []

    def register(spec):
        specs.append(spec)
        return len(specs) - 1

    arg_tree, kwarg_tree = to_tree(args, register), to_tree(kwargs, register)
    leaves, slot = [], 0
    for path, index in walk_call(arg_tree, kwarg_tree):
        spec = specs[index]
        if spec.dtype is None:
            leaves.append(LeafSpec(index=index, path=path, kind="constant"))
            continue
        leaves.append(
            LeafSpec(
                index=index,
                path=path,
                kind="tensor",
                input_index=slot,
                generated_name=f"arg{index}_1",
                dtype=spec.dtype,
                rank=len(spec.dims),
                dims=tuple(dim(size) for size in spec.dims),
                strides=spec.strides_or_default(),
                stride_exprs=spec.stride_exprs(),
                device_type=spec.device,
                used=spec.used,
                alignment=spec.alignment,
                check_line=100 + index,
            )
        )
        slot += 1
    return ModelContract(
        model_name="model",
        source="wrapper.cpp",
        args=arg_tree,
        kwargs=kwarg_tree,
        leaves=tuple(leaves),
        n_inputs=slot,
        member="model/x.wrapper.cpp",
    )


def call(*args, **kwargs):
    def leaf(value):
        return value if isinstance(value, TensorDesc | PlainValue) else plain(value)

    return InputSet(path="sample.pt", format="pt", form="args", args=to_tree(args, leaf), kwargs=to_tree(kwargs, leaf))


def case_of(contract, inputs, *, constants=None, **options):
    reference = ExportedFacts(name="model", constant_inputs=constants) if constants is not None else None
    return Case(
        artifact=Artifact(path="model.pt2", kind=ArtifactKind.AOTI_PACKAGE, size=1),
        host=Host(system="Linux", machine="x86_64", python="3.11"),
        options=Options(**options),
        contract=contract,
        inputs=inputs,
        inputs_path="sample.pt",
        reference=reference,
    )


def ask(case):
    """Findings of all ``input_*`` checks as ``(name, kind, subject, severity)``, in order, with the ladder's blocking."""
    failed, found = set(), []
    for check in CHECKS:
        if not check.name.startswith("input"):
            continue
        if any(name in failed for name in check.needs):
            failed.add(check.name)
            continue
        result = check.run(case)
        if isinstance(result, NotChecked):
            continue
        found += [(check.name, item.kind, item.subject, item.severity.value) for item in result]
        if any(item.severity.value == "error" for item in result):
            failed.add(check.name)
    return found
