"""Compare a package with an exported program in all but the bytes of constants, and complete its contract.

Functions (relu, gelu, tanh ...): no pass of the compiler makes one of them out of another, and none takes one away
that lies between an input and an output. The names that they leave are the program's own: of the nodes, in the
comments of the calls and in the names of the kernels. What is elementary stays in the code by its name.

Packages of torch 2.6 hold no input checks at all, and before 2.13 none holds a size that follows from another one
(``seq + 1``). The program tells both. It is asked only where nothing that the package does tell contradicts it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from aotidoctor.model.artifact import ExportedFacts, ModelEntry, ProgramLeaf, ProgramTensor, SizeRange
from aotidoctor.model.contract import Dim, KernelBody, KernelCall, LeafSpec, ModelContract
from aotidoctor.model.evidence import list_names
from aotidoctor.model.expr import Expr, Num, Opaque, Sym, parse_expr, substitute
from aotidoctor.model.torch_names import BUILT_IN, foreign
from aotidoctor.readers.provenance.compare_interface import (
    ProgramComparison,
    ProgramDifference,
    compare_call,
    compare_constants,
    compare_outputs,
    join_comparisons,
)

# Functions: which the program has, and which the code of the package computes.

FUNCTIONS = frozenset({
    "acos", "asin", "atan", "celu", "cos", "cosh", "cumsum", "elu", "erf", "gelu", "hardsigmoid", "hardswish",
    "hardtanh", "leaky_relu", "log", "mish", "relu", "sigmoid", "silu", "sin", "sinh", "softplus", "sort",
    "tan", "tanh",
})  # fmt: skip
# Operators that become several of those before they are compiled.
_COMPOSITE = frozenset({
    "lstm", "lstm_cell", "gru", "gru_cell", "rnn_tanh", "rnn_relu", "glu", "log_sigmoid", "log_sigmoid_forward",
    "logsigmoid", "relu6", "selu", "prelu", "rrelu", "threshold", "softsign", "tanhshrink", "msort", "argsort",
})  # fmt: skip
# What is written in the same code: kernels of equal code share the name of the first.
_EQUALS = {
    "relu": {"clamp", "clamp_min", "maximum"},
    "hardtanh": {"clamp", "clamp_min", "clamp_max"},
    "hardsigmoid": {"clamp"},
    "hardswish": {"clamp", "hardsigmoid"},
    "leaky_relu": {"where"},
    "elu": {"where", "celu"},
    "celu": {"where", "elu"},
    "sigmoid": {"exp"},
    "silu": {"sigmoid"},
    "gelu": {"erf", "tanh"},
    "mish": {"softplus", "tanh"},
    "softplus": {"log", "log1p"},
}
# Triton's kernels have shorter names where they would be longer than a file's name may be.
_LONGEST_NAME = 90
_LEAST_SHARED = 0.9
_NUMBER = re.compile(r"_\d+$")
_MODES = {"none": "erf", "tanh": "tanh"}


def compare_functions(
    contract: ModelContract, facts: ExportedFacts, model: ModelEntry | None
) -> list[ProgramDifference]:
    """Functions that only one of the two has, and another mode of one that both have."""
    exchanged = _exchanged_function(contract, facts)
    if exchanged is not None:
        return [exchanged]
    named = {target.split(".")[1].strip("_") for target in facts.ops if target.startswith("aten.")}
    own = any(not target.startswith("aten.") for target in facts.ops if target.partition(".")[0] not in BUILT_IN)
    if own or named & _COMPOSITE or not contract.kernels:
        return []
    lost = [name for name in _lost_functions(contract, facts, model) if not named & _EQUALS.get(name, set())]
    new = _new(contract, facts, named)
    if lost or new:
        with_origins = [kernel for kernel in contract.kernels if kernel.origins]
        names = [
            kernel.name
            for kernel in with_origins
            if new and (new[0] in kernel.source_nodes or new[0] in map(_bare, kernel.origins))
        ]
        subject = names[0] if names else contract.kernels[0].name
        computes = f"computes {list_names(new, 6)}" if new else f"does not compute {list_names(lost, 6)}"
        return [_function_difference(subject, computes, list_names(lost, 6) or f"no {list_names(new, 6)}", sure=True)]
    return _modes(contract, facts, model)


def _exchanged_function(contract: ModelContract, facts: ExportedFacts) -> ProgramDifference | None:
    """A node of the program whose kernel lists the function that the node is named after, while it computes another."""
    # Calls of a library list what leads to their arguments too.
    for kernel in sorted(contract.kernels, key=lambda kernel: kernel.kind not in ("cpp", "triton")):
        listed = {_bare(origin) for origin in kernel.origins} - {""}
        for node in kernel.source_nodes:
            named, computed = _NUMBER.sub("", node), _bare(facts.functions.get(node, ""))
            if named in FUNCTIONS & listed and computed and computed != named and computed not in listed:
                return _function_difference(
                    _place(contract, kernel, named), f"computes {named} in the node {node}", computed, sure=True
                )
    return None


def _place(contract: ModelContract, kernel: KernelCall, function: str) -> str:
    """The generated kernel that is named after the function, where a call of a library lists it for its arguments."""
    names = {one.name for one in contract.kernels if one.kind in ("cpp", "triton") and f"_{function}_" in one.name}
    return kernel.name if kernel.kind in ("cpp", "triton") or len(names) != 1 else names.pop()


def _new(contract: ModelContract, facts: ExportedFacts, named: set[str]) -> list[str]:
    """Functions of the package that the program lacks; and nodes of it, where the others have the program's names."""
    listed = {bare for kernel in contract.kernels for origin in kernel.origins if (bare := _bare(origin)) in FUNCTIONS}
    listed |= {name for kernel in contract.kernels if not kernel.origins for name in _in_name(kernel.name, named)}
    absent = sorted(listed - named)
    nodes = {node for kernel in contract.kernels for node in kernel.source_nodes}
    theirs = facts.nodes
    shared = nodes & theirs
    if absent or not theirs or len(shared) < max(3, _LEAST_SHARED * len(nodes)):
        return absent
    return sorted(node for node in nodes - theirs if _NUMBER.sub("", node) in FUNCTIONS)


def _in_name(kernel: str, named: set[str]) -> Iterator[str]:
    """Functions that the name of a kernel lists, where nothing of the program is called like it or becomes it."""
    if len(kernel) > _LONGEST_NAME:
        return
    words = {f"_{name}_" for name in named | {other for name in named for other in _EQUALS.get(name, ())}}
    for name in FUNCTIONS:
        if f"_{name}_" in kernel and not any(f"_{name}_" in word for word in words):
            yield name


def _lost_functions(contract: ModelContract, facts: ExportedFacts, model: ModelEntry | None) -> list[str]:
    """Functions on the way from an input to an output of which the package shows no trace at all."""
    wanted = {_bare(target) for target in facts.functions.values()} & FUNCTIONS
    # A kernel whose name may lack some of its operators, and that has no list of them.
    if (
        not wanted
        or contract.unknown_lines
        or any(
            (not kernel.origins and kernel.kind == "triton" and len(kernel.name) > _LONGEST_NAME)
            for kernel in contract.kernels
        )
    ):
        return []
    text = " ".join(_words(contract))
    code = "\n".join(_sources(model))
    return sorted(name for name in wanted if f"_{name}_" not in text and re.search(rf"\b{name}\s*\(", code) is None)


def _words(contract: ModelContract) -> Iterator[str]:
    """All that the package says of its operators, each between underscores."""
    for kernel in contract.kernels:
        for word in (kernel.name, *map(_bare, kernel.origins), *kernel.source_nodes, *kernel.arguments):
            bare = _NUMBER.sub("", word.strip("\"' "))
            yield f"_{bare}_"


def _sources(model: ModelEntry | None) -> Iterator[str]:
    if model is not None:
        yield model.wrapper_cpp or ""
        yield from model.kernel_sources.values()


def _modes(contract: ModelContract, facts: ExportedFacts, model: ModelEntry | None) -> list[ProgramDifference]:
    """Gelu by erf or by tanh, where the program has it in one way and every kernel in the other."""
    modes = {target for target in facts.functions.values() if _bare(target) == "gelu"}
    bodies = [body for body in contract.bodies if "_gelu_" in f"{body.name}_" and "_tanh_" not in f"{body.name}_"]
    code = [text for body in bodies if (text := _text_of(model, body))]
    if len(modes) != 1 or not code:
        return []
    wanted = "tanh" if next(iter(modes)).endswith("(tanh)") else "none"
    other = next(mode for mode in _MODES if mode != wanted)
    if any(_computes(text, _MODES[wanted]) or not _computes(text, _MODES[other]) for text in code):
        return []
    # A compiler that lowers it wrongly gives the same.
    return [
        _function_difference(
            bodies[0].name, f"computes gelu (approximate={other!r})", f"gelu (approximate={wanted!r})", sure=False
        )
    ]


def _computes(text: str, function: str) -> bool:
    return re.search(rf"\b{function}\s*\(", text) is not None


def _text_of(model: ModelEntry | None, body: KernelBody) -> str:
    if model is None:
        return ""
    whole = model.wrapper_cpp if body.member == model.wrapper_member else model.kernel_sources.get(body.member)
    return "\n".join((whole or "").split("\n")[body.line - 1 : body.line - 1 + body.lines])


def _function_difference(subject: str, package: str, program: str, *, sure: bool) -> ProgramDifference:
    return ProgramDifference(
        aspect="operators", kind="functions", subject=subject, package=package, program=program, decisive=sure
    )


def _bare(target: str) -> str:
    """``gelu`` of ``aten.gelu(tanh)`` and of ``aten.gelu_``."""
    parts = target.partition("(")[0].split(".")
    return parts[1].strip("_") if len(parts) > 1 and parts[0] == "aten" else ""


# Everything that can be compared.


def compare_program(
    contract: ModelContract, facts: ExportedFacts, model: ModelEntry | None = None
) -> ProgramComparison:
    """A package's contract against a program's facts; ``model`` has the sources of its kernels."""
    parts = (compare_call, compare_outputs, compare_constants)
    return join_comparisons([*(part(contract, facts) for part in parts), compare_operators(contract, facts, model)])


# A hint: decompositions and fusion leave names, but not all of them, and make others. Of these operators the name stays
# in the name of the kernel that they are fused into, or in the call that they become.
_LASTING = frozenset({
    "abs", "add", "clamp", "cos", "cumsum", "div", "embedding", "erf", "exp", "gather", "gelu", "index_put", "log",
    "maximum", "mean", "minimum", "mul", "neg", "pow", "prod", "reciprocal", "relu", "remainder", "rsqrt", "sigmoid",
    "sin", "sort", "sqrt", "sub", "sum", "tanh", "where",
})  # fmt: skip
_KERNEL_NUMBER = re.compile(r"_\d+$")


def compare_operators(contract: ModelContract, facts: ExportedFacts, model: ModelEntry | None) -> ProgramComparison:
    """Custom operators, which no decomposition makes, functions, and the names in those of the kernels."""
    if not facts.ops or contract.source != "wrapper.cpp":
        return ProgramComparison()
    found = [*_custom(contract, facts), *(compare_functions(contract, facts, model) or _kernels(contract, facts))]
    return ProgramComparison(differences=tuple(found), aspects=("operators",))


def _custom(contract: ModelContract, facts: ExportedFacts) -> list[ProgramDifference]:
    theirs = set(foreign(facts.ops))
    extra = sorted(set(foreign(contract.custom_ops)) - theirs)
    if not extra:
        return []
    named = ", ".join(sorted(theirs)) or "none"
    return [_hint("custom", extra[0], f"calls {', '.join(extra)}", f"custom operators: {named}")]


def _kernels(contract: ModelContract, facts: ExportedFacts) -> list[ProgramDifference]:
    """Only where not a single lasting operator of the program has left its name."""
    names = {target.split(".")[1].strip("_") for target in facts.ops if target.startswith("aten.")}
    lasting = sorted(names & _LASTING)
    called = [kernel.name for kernel in contract.kernels]
    left = [origin.split(".")[-1] for kernel in contract.kernels for origin in kernel.origins]
    text = " ".join(f"_{_KERNEL_NUMBER.sub('', name)}_" for name in (*called, *left))
    if not lasting or not called or any(f"_{name}_" in text for name in lasting):
        return []
    kernels, operators = list_names(list(dict.fromkeys(called)), 6), list_names(lasting, 6)
    return [_hint("kernels", called[0], f"kernels {kernels}", f"operators {operators}")]


def _hint(kind: str, subject: str, package: str, program: str) -> ProgramDifference:
    return ProgramDifference(
        aspect="operators", kind=kind, subject=subject, package=package, program=program, decisive=False
    )


# Inputs that the package leaves open.

# Before the name of a size of the program that the package does not show under a name of its own.
OWN = "program_"


def complete_contract(contract: ModelContract, facts: ExportedFacts) -> ModelContract:
    """``contract`` with what ``facts`` add to its tensors; ``completed`` names those leaves."""
    pairs = list(zip(contract.leaves, facts.leaves, strict=False))
    if not any(is_open(leaf) for leaf in contract.leaves) or compare_program(contract, facts).decisive:
        return contract
    if [one.path for one in contract.leaves] != [other.path for other in facts.leaves]:
        return contract
    names = _names(pairs, contract)
    leaves = tuple(_complete_leaf(one, other, names, facts.ranges) for one, other in pairs)
    changed = tuple(new.path for old, new in zip(contract.leaves, leaves, strict=True) if new != old)
    unsure = tuple(f"the rank of {path} is not certain" for path in changed)
    problems = tuple(text for text in contract.problems if not unsure or not text.startswith(unsure))
    return replace(contract, leaves=leaves, completed=changed, problems=problems)


def is_open(leaf: LeafSpec) -> bool:
    """Whether the package leaves dtype, rank or a size of this tensor open."""
    if leaf.kind != "tensor" or leaf.input_index is None:
        return False
    return leaf.dtype is None or leaf.has_open_sizes


def _names(pairs: list[tuple[LeafSpec, ProgramLeaf]], contract: ModelContract) -> Mapping[str, Expr]:
    """Each size of the program in terms of the package's, by the dims that both show as a plain name."""
    found: dict[str, Expr] = {}
    for one, other in pairs:
        shape = (other.tensor.shape if other.tensor is not None else None) or ()
        for dim, size in zip(one.dims or (), shape, strict=False):
            if isinstance(dim.expr, Sym) and isinstance(parse_expr(size), Sym):
                found.setdefault(size, dim.expr)
    taken = {symbol.name for symbol in contract.symbols}
    theirs = {name for _, other in pairs for size in _sizes(other.tensor) for name in parse_expr(size).symbols}
    return {name: found.get(name, Sym(OWN + name if name in taken else name)) for name in theirs}


def _sizes(tensor: ProgramTensor | None) -> tuple[str, ...]:
    return () if tensor is None else (*(tensor.shape or ()), *(tensor.stride or ()))


def _complete_leaf(
    leaf: LeafSpec, other: ProgramLeaf, names: Mapping[str, Expr], ranges: Mapping[str, SizeRange]
) -> LeafSpec:
    tensor = other.tensor
    if not is_open(leaf) or other.kind != "tensor" or tensor is None or tensor.shape is None:
        return leaf
    # Where the package has checks, bounds and strides that it does not compare are not compiled in.
    checked = leaf.check_line is not None or leaf.rank is not None
    known = leaf.dims or ()
    dims = [
        _dim(known[at] if at < len(known) else Dim(), size, names, {} if checked else ranges)
        for at, size in enumerate(tensor.shape)
    ]
    made = replace(leaf, dtype=leaf.dtype or tensor.dtype, rank=len(dims), dims=tuple(dims))
    return made if checked else _with_strides(made, tensor, names)


def _dim(dim: Dim, size: str, names: Mapping[str, Expr], ranges: Mapping[str, SizeRange]) -> Dim:
    if dim.static is not None:
        return dim
    expr = _read(size, names)
    if isinstance(expr, Num) and expr.under == 1:
        return Dim(static=expr.over, expr=expr) if dim.expr is None else dim
    bounds = ranges.get(size, SizeRange())
    return Dim(
        min=bounds.low if dim.min is None else dim.min,
        max=bounds.high if dim.max is None else dim.max,
        expr=dim.expr if dim.expr is not None else expr,
    )


def _with_strides(leaf: LeafSpec, tensor: ProgramTensor, names: Mapping[str, Expr]) -> LeafSpec:
    """The strides of the sample that the program was exported with, for which the code was compiled."""
    if tensor.stride is None or len(tensor.stride) != leaf.rank:
        return leaf
    exprs = tuple(_read(text, names) for text in tensor.stride)
    constant = tuple(expr.over if isinstance(expr, Num) and expr.under == 1 else None for expr in exprs)
    return replace(leaf, strides=constant, stride_exprs=exprs)


def _read(text: str, names: Mapping[str, Expr]) -> Expr | None:
    expr = parse_expr(text)
    return None if isinstance(expr, Opaque) else substitute(expr, names)
