"""Compare a package with an exported program in all but the bytes of constants, and complete its contract.

Functions (relu, gelu, tanh ...): no pass of the compiler makes one of them out of another, and none removes one that
is between an input and an output. The names that they leave are the program's own: of the nodes, in the comments of
the calls and in the names of the kernels. Elementary functions stay in the code by name.

Packages of torch 2.6 hold no input checks at all, and before 2.13 none holds a size that follows from another one
(``seq + 1``). The program has both. It is used only where nothing in the package contradicts it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.model.artifact import ExportedFacts, ModelEntry, ProgramLeaf, SizeRange
from aotidoctor.model.contract import GENERATED, Dim, LeafSpec, ModelContract
from aotidoctor.model.evidence import list_names
from aotidoctor.model.expr import Expr, Opaque, Sym, substitute, whole
from aotidoctor.model.torch_names import BUILT_IN, foreign
from aotidoctor.readers.provenance.compare_interface import (
    ProgramComparison,
    ProgramDifference,
    compare_call,
    compare_constants,
    compare_outputs,
    join_comparisons,
    program_difference,
)

_functions = partial(program_difference, "operators", "functions")
_hint = partial(program_difference, "operators", decisive=False)
# Functions: those of the program, and those that the code of the package computes.
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
# Operators whose decompositions compute such a function under its own name: measured on torch 2.13, over the samples of
# torch.testing's op_db, each operator by itself.
_DECOMPOSED = {
    "cumsum": {"cumulative_trapezoid", "repeat_interleave"},
    "erf": {"gelu", "special_ndtr"},
    "log": {
        "binary_cross_entropy", "cross_entropy_loss", "exponential", "kl_div", "log_softmax", "logit", "logsumexp",
        "poisson_nll_loss", "special_entr", "special_log_ndtr", "xlogy",
    },
    "sin": {"sinc", "special_sinc"},
    "sort": {"argsort", "msort", "nanquantile", "quantile"},
    "tan": {"cauchy"},
    "tanh": {"gelu", "mish"},
}  # fmt: skip
# Functions of the same code: kernels of equal code share the name of the first.
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
    """List functions that only one of the two has, and another mode of one that both have."""
    exchanged = _exchanged_function(contract, facts)
    if exchanged is not None:
        return [exchanged]
    named = {target.split(".")[1].strip("_") for target in facts.ops if target.startswith("aten.")}
    own = any(not target.startswith("aten.") for target in facts.ops if target.partition(".")[0] not in BUILT_IN)
    if own or named & _COMPOSITE or not contract.kernels:
        return []
    made = {function for function, operators in _DECOMPOSED.items() if named & operators}
    lost = [name for name in _lost_functions(contract, facts, model) if not named & _EQUALS.get(name, set())]
    new = _new(contract, facts, named | made)
    if lost or new:
        with_origins = [kernel for kernel in contract.kernels if kernel.origins]
        names = [
            kernel.name
            for kernel in with_origins
            if new and (new[0] in kernel.source_nodes or new[0] in map(_bare, kernel.origins))
        ]
        subject = names[0] if names else contract.kernels[0].name
        computes = f"computes {list_names(new, 6)}" if new else f"does not compute {list_names(lost, 6)}"
        return [_functions(subject, computes, list_names(lost, 6) or f"no {list_names(new, 6)}")]
    return _modes(contract, facts, model)


def _exchanged_function(contract: ModelContract, facts: ExportedFacts) -> ProgramDifference | None:
    """A node of the program that computes another function than the one that it is named after and its kernel lists."""
    # Calls of a library list what leads to their arguments too.
    for kernel in sorted(contract.kernels, key=lambda kernel: kernel.kind not in GENERATED):
        listed = {_bare(origin) for origin in kernel.origins} - {""}
        for node in kernel.source_nodes:
            named, computed = _NUMBER.sub("", node), _bare(facts.functions.get(node, ""))
            if named in FUNCTIONS & listed and computed and computed != named and computed not in listed:
                # Where a call of a library lists it for its arguments: the generated kernel named after the function.
                generated = [one.name for one in contract.kernels if one.kind in GENERATED]
                names = {name for name in generated if f"_{named}_" in name}
                place = kernel.name if kernel.kind in GENERATED or len(names) != 1 else names.pop()
                return _functions(place, f"computes {named} in the node {node}", computed)
    return None


def _new(contract: ModelContract, facts: ExportedFacts, named: set[str]) -> list[str]:
    """Functions of the package that the program lacks; and nodes of it, where the others have the program's names."""
    listed = {bare for kernel in contract.kernels for origin in kernel.origins if (bare := _bare(origin)) in FUNCTIONS}
    # Those that the name of a kernel lists, unless the program has an operator of that name or one that becomes it.
    words = [f"_{name}_" for name in named | {other for name in named for other in _EQUALS.get(name, ())}]
    unnamed = {name for name in FUNCTIONS if not any(f"_{name}_" in word for word in words)}
    for kernel in contract.kernels:
        if not kernel.origins and len(kernel.name) <= _LONGEST_NAME:
            listed |= {name for name in unnamed if f"_{name}_" in kernel.name}
    absent = sorted(listed - named)
    nodes = {node for kernel in contract.kernels for node in kernel.source_nodes}
    theirs = facts.nodes
    shared = nodes & theirs
    if absent or not theirs or len(shared) < max(3, _LEAST_SHARED * len(nodes)):
        return absent
    return sorted(node for node in nodes - theirs if _NUMBER.sub("", node) in FUNCTIONS)


def _lost_functions(contract: ModelContract, facts: ExportedFacts, model: ModelEntry | None) -> list[str]:
    """Functions on the way from an input to an output of which there is no trace in the package."""
    needed = {_bare(target) for target in facts.functions.values()} & FUNCTIONS
    if not needed or contract.unknown_lines:
        return []
    words = []
    for kernel in contract.kernels:
        if not kernel.origins and kernel.kind == "triton" and len(kernel.name) > _LONGEST_NAME:
            # Its name may lack some of its operators, and there is no list of them.
            return []
        words += [kernel.name, *map(_bare, kernel.origins), *kernel.source_nodes, *kernel.arguments]
    bare = (_NUMBER.sub("", word.strip("\"' ")) for word in words)
    text = " ".join(f"_{word}_" for word in bare)
    code = "\n".join((model.wrapper_cpp or "", *model.kernel_sources.values()) if model is not None else ())
    return sorted(name for name in needed if f"_{name}_" not in text and not _computes(code, name))


def _modes(contract: ModelContract, facts: ExportedFacts, model: ModelEntry | None) -> list[ProgramDifference]:
    """The difference where the program has gelu by erf and every kernel by tanh, or the reverse."""
    modes = {target for target in facts.functions.values() if _bare(target) == "gelu"}
    bodies = [body for body in contract.bodies if "_gelu_" in f"{body.name}_" and "_tanh_" not in f"{body.name}_"]
    if model is None or len(modes) != 1:
        return []
    code = []
    for body in bodies:
        whole = model.wrapper_cpp if body.member == model.wrapper_member else model.kernel_sources.get(body.member)
        code.append("\n".join((whole or "").split("\n")[body.line - 1 : body.line - 1 + body.lines]))
    code = [text for text in code if text]
    mode = "tanh" if next(iter(modes)).endswith("(tanh)") else "none"
    other = next(one for one in _MODES if one != mode)
    if not code or any(_computes(text, _MODES[mode]) or not _computes(text, _MODES[other]) for text in code):
        return []
    # A compiler that lowers it wrongly gives the same.
    package, program = (f"gelu (approximate={one!r})" for one in (other, mode))
    return [_functions(bodies[0].name, f"computes {package}", program, decisive=False)]


def _computes(text: str, function: str) -> bool:
    return re.search(rf"\b{function}\s*\(", text) is not None


def _bare(target: str) -> str:
    """``gelu`` of ``aten.gelu(tanh)`` and of ``aten.gelu_``."""
    parts = target.partition("(")[0].split(".")
    return parts[1].strip("_") if len(parts) > 1 and parts[0] == "aten" else ""


# Everything that can be compared.
def compare_program(
    contract: ModelContract, facts: ExportedFacts, model: ModelEntry | None = None
) -> ProgramComparison:
    """Compare a package's contract with a program's facts; ``model`` has the sources of its kernels."""
    parts = (compare_call, compare_outputs, compare_constants)
    return join_comparisons([*(part(contract, facts) for part in parts), compare_operators(contract, facts, model)])


# A hint: decompositions and fusion leave names, but not all of them, and make others. Of these operators the name stays
# in the name of the kernel that they are fused into, or in the call that they become.
_LASTING = frozenset({
    "abs", "add", "clamp", "cos", "cumsum", "div", "embedding", "erf", "exp", "gather", "gelu", "index_put", "log",
    "maximum", "mean", "minimum", "mul", "neg", "pow", "prod", "reciprocal", "relu", "remainder", "rsqrt", "sigmoid",
    "sin", "sort", "sqrt", "sub", "sum", "tanh", "where",
})  # fmt: skip


def compare_operators(contract: ModelContract, facts: ExportedFacts, model: ModelEntry | None) -> ProgramComparison:
    """Compare custom operators, which no decomposition makes, functions, and the operators in kernels' names."""
    if not facts.ops or contract.source != "wrapper.cpp":
        return ProgramComparison()
    found = compare_functions(contract, facts, model)
    names = {target.split(".")[1].strip("_") for target in facts.ops if target.startswith("aten.")}
    lasting = sorted(names & _LASTING)
    called = [kernel.name for kernel in contract.kernels]
    left = [origin.split(".")[-1] for kernel in contract.kernels for origin in kernel.origins]
    text = " ".join(f"_{_NUMBER.sub('', name)}_" for name in (*called, *left))
    if not found and lasting and called and not any(f"_{name}_" in text for name in lasting):
        # Not a single lasting operator of the program has left its name.
        kernels, operators = list_names(list(dict.fromkeys(called)), 6), list_names(lasting, 6)
        found.append(_hint("kernels", called[0], f"kernels {kernels}", f"operators {operators}"))
    theirs = set(foreign(facts.ops))
    extra = sorted(set(foreign(contract.custom_ops)) - theirs)
    if extra:
        named = ", ".join(sorted(theirs)) or "none"
        found.insert(0, _hint("custom", extra[0], f"calls {', '.join(extra)}", f"custom operators: {named}"))
    return ProgramComparison(differences=tuple(found), aspects=("operators",))


# Inputs that the package leaves open.
# Before the name of a size of the program that the package does not show under a name of its own.
OWN = "program_"


def complete_contract(contract: ModelContract, facts: ExportedFacts) -> ModelContract:
    """Complete the tensors of ``contract`` from ``facts``; ``completed`` has the paths of these leaves."""
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
    tensors = [other.tensor for _, other in pairs if other.tensor is not None]
    sizes = {size for one in tensors for size in (*(one.shape or ()), *(one.stride or ()))}
    theirs = {name for size in sizes for name in parse_expr(size).symbols}
    return {name: found.get(name, Sym(OWN + name if name in taken else name)) for name in theirs}


def _complete_leaf(
    leaf: LeafSpec, other: ProgramLeaf, names: Mapping[str, Expr], ranges: Mapping[str, SizeRange]
) -> LeafSpec:
    tensor = other.tensor
    if not is_open(leaf) or other.kind != "tensor" or tensor is None or tensor.shape is None:
        return leaf
    # Where the package has checks, bounds and strides that it does not compare are not compiled in.
    checked = leaf.check_line is not None or leaf.rank is not None
    known, dims = leaf.dims or (), []
    for at, size in enumerate(tensor.shape):
        dim, expr = known[at] if at < len(known) else Dim(), _read(size, names)
        if dim.static is None and (number := whole(expr)) is not None:
            dim = Dim(static=number, expr=expr) if dim.expr is None else dim
        elif dim.static is None:
            bounds = SizeRange() if checked else ranges.get(size, SizeRange())
            dim = Dim(
                min=bounds.low if dim.min is None else dim.min,
                max=bounds.high if dim.max is None else dim.max,
                expr=dim.expr if dim.expr is not None else expr,
            )
        dims.append(dim)
    made = replace(leaf, dtype=leaf.dtype or tensor.dtype, rank=len(dims), dims=tuple(dims))
    if checked or tensor.stride is None or len(tensor.stride) != len(dims):
        return made
    # The strides of the sample that the program was exported with, for which the code was compiled.
    exprs = tuple(_read(text, names) for text in tensor.stride)
    constant = tuple(map(whole, exprs))
    return replace(made, strides=constant, stride_exprs=exprs)


def _read(text: str, names: Mapping[str, Expr]) -> Expr | None:
    expr = parse_expr(text)
    return None if isinstance(expr, Opaque) else substitute(expr, names)
