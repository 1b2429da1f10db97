"""The package as a program: calls in order, the tensors they name, who wrote what. By name, from the contract."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from aotidoctor.localize.blame import cpp_flow, triton_flow
from aotidoctor.localize.blame.flow import Flow
from aotidoctor.localize.kernel_text import text_of
from aotidoctor.model.case import Case
from aotidoctor.model.contract import ConstantSpec, Contract, KernelBody, KernelCall, LeafSpec, Parameter
from aotidoctor.model.expr import evaluate, parse_expr, solve
from aotidoctor.model.inputs import TensorDesc

_HANDLE = "_handle"
# What follows on this line is the first line of the file.
_OPENING = "async_compile.triton("
GENERATED = ("cpp", "triton")


@dataclass(slots=True)
class Program:
    """Static facts of one model with the inputs of the call; flows of kernels are read when they are asked for."""

    case: Case
    contract: Contract
    leaves: Mapping[str, LeafSpec]
    constants: Mapping[str, ConstantSpec]
    tensors: Mapping[str, TensorDesc]
    bodies: Mapping[str, KernelBody]
    sizes: Mapping[str, int]
    _flows: dict[str, Flow | None] = field(default_factory=dict)

    def calls(self, kernel: str) -> tuple[int, ...]:
        """Places of the calls of ``kernel``."""
        return tuple(at for at, call in enumerate(self.contract.kernels) if call.name == kernel)

    def call(self, at: int) -> KernelCall:
        """The call at a place."""
        return self.contract.kernels[at]

    def flow(self, kernel: str) -> Flow | None:
        """What the kernel does; None when its source is not in the package."""
        if kernel not in self._flows:
            self._flows[kernel] = self._follow(kernel)
        return self._flows[kernel]

    def _follow(self, kernel: str) -> Flow | None:
        body = self.bodies.get(kernel)
        text = text_of(self.case.model, body) if body is not None else None
        if body is None or text is None:
            return None
        pointers = frozenset(one.name for one in body.parameters if one.pointer)
        follow = cpp_flow.follow if body.kind == "cpp" else triton_flow.follow
        return follow(text, body.line, pointers)

    def first_source_line(self, kernel: str) -> int | None:
        """The line of the wrapper where the file that a Triton kernel was compiled from begins, counted from 1."""
        body = self.bodies.get(kernel)
        text = text_of(self.case.model, body) if body is not None and body.kind == "triton" else None
        if body is None or text is None:
            return None
        opening = next((at for at, line in enumerate(text.split("\n")) if _OPENING in line), None)
        return body.line + opening if opening is not None else None

    def arguments(self, at: int) -> Mapping[str, tuple[Parameter, str]]:
        """Parameter name to itself and the argument of the call at ``at``; empty where they do not pair up."""
        call = self.call(at)
        body = self.bodies.get(call.name)
        if body is None or not body.parameters or len(call.arguments) < len(body.parameters):
            return {}
        if body.kind == "cpp" and len(call.arguments) != len(body.parameters):
            return {}
        return {one.name: (one, name) for one, name in zip(body.parameters, call.arguments, strict=False)}

    def given(self, at: int) -> dict[str, int]:
        """The numbers that the call at ``at`` hands to its kernel, as far as the inputs tell them."""
        found = {}
        for parameter, text in self.arguments(at).values():
            value = None if parameter.pointer else evaluate(parse_expr(text), self.sizes)
            if value is not None:
                found[parameter.name] = value
        return found

    def root(self, name: str) -> str:
        """The name that the memory of ``name`` first had."""
        *_, first = self._earlier(name)
        return first

    def shown_otherwise(self, name: str) -> bool:
        """Whether ``name`` is a view: its offsets are not those of the memory below."""
        return any(one in self.contract.views for one in self._earlier(name))

    def _earlier(self, name: str) -> Iterator[str]:
        """``name``, and the names that its memory had before."""
        yield name
        for _ in range(len(self.contract.renamed)):
            if name not in self.contract.renamed:
                return
            name = self.contract.renamed[name]
            yield name

    def writer(self, name: str, before: int) -> int | None:
        """The last call before ``before`` that writes to the memory of ``name``."""
        root = self.root(name)
        for at in range(before - 1, -1, -1):
            if root in {self.root(one) for one in self.written(at)}:
                return at
        return None

    def written(self, at: int) -> tuple[str, ...]:
        """Tensors that the call at ``at`` writes to or makes."""
        call = self.call(at)
        if call.kind in GENERATED:
            return tuple(name for one, name in self.arguments(at).values() if one.pointer and not one.const)
        made = [name[1:].removesuffix(_HANDLE) for name in call.arguments if name.startswith("&")]
        in_place = call.name.endswith(("_out", "_")) or "__" in call.name
        return (*made, *call.arguments[:1]) if in_place or call.kind == "custom" else tuple(made)

    def taken(self, at: int) -> tuple[str, ...]:
        """Tensors that the call at ``at`` reads."""
        call = self.call(at)
        if call.kind in GENERATED:
            arguments = self.arguments(at).values()
            return tuple(name for one, name in arguments if one.pointer and (one.const or "in_out" in one.name))
        written = set(self.written(at))
        names = [name for name in call.arguments if name not in written and self._is_tensor(self.root(name))]
        return tuple(names)

    def _is_tensor(self, name: str) -> bool:
        return name in self.leaves or name in self.constants or name.startswith("buf")


def program_of(case: Case) -> Program | None:
    """The program; None without a contract."""
    contract = case.contract
    if contract is None:
        return None
    tensors = case.tensors
    return Program(
        case=case,
        contract=contract,
        leaves={leaf.generated_name: leaf for leaf in contract.leaves if leaf.generated_name is not None},
        constants={constant.name: constant for constant in contract.constants},
        tensors=tensors,
        bodies={body.name: body for body in contract.bodies},
        sizes=_sizes(contract, tensors),
    )


def _sizes(contract: Contract, tensors: Mapping[str, TensorDesc]) -> dict[str, int]:
    """The value of each symbol in this call: as the wrapper computes it, from the first dim that shows it."""
    found: dict[str, int] = {}
    for leaf in contract.leaves:
        tensor = tensors.get(leaf.path)
        if tensor is None or leaf.dims is None:
            continue
        for dim, size in zip(leaf.dims, tensor.shape, strict=False):
            known = solve(dim.expr, size) if dim.expr is not None and dim.static is None else None
            if known is not None:
                found.setdefault(*known)
    return found
