"""The functions (relu, gelu, tanh ...): which of them the program has, and which the code of the package computes.

No pass of the compiler makes one of them out of another, and none takes one away that lies between an input and an
output. The names that they leave are the program's own: of the nodes, in the comments of the calls and in the names of
the kernels. What is elementary stays in the code by its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from aotidoctor.model.artifact import ExportedFacts, ModelEntry
from aotidoctor.model.contract import Contract, KernelBody, KernelCall
from aotidoctor.model.operators import BUILT_IN
from aotidoctor.model.phrases import listed
from aotidoctor.readers.provenance.difference import Difference

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


def compare_functions(contract: Contract, facts: ExportedFacts, model: ModelEntry | None) -> list[Difference]:
    """Functions that only one of the two has, and another mode of one that both have."""
    exchanged = _exchanged(contract, facts)
    if exchanged is not None:
        return [exchanged]
    named = {target.split(".")[1].strip("_") for target in facts.ops if target.startswith("aten.")}
    own = any(not target.startswith("aten.") for target in facts.ops if target.partition(".")[0] not in BUILT_IN)
    if own or named & _COMPOSITE or not contract.kernels:
        return []
    lost = [name for name in _lost(contract, facts, model) if not named & _EQUALS.get(name, set())]
    new = _new(contract, facts, named)
    if lost or new:
        return [_difference(contract, lost, new)]
    return _modes(contract, facts, model)


def _exchanged(contract: Contract, facts: ExportedFacts) -> Difference | None:
    """A node of the program whose kernel lists the function that the node is named after, while it computes another."""
    # Calls of a library list what leads to their arguments too.
    for kernel in sorted(contract.kernels, key=lambda kernel: kernel.kind not in ("cpp", "triton")):
        listed = {_bare(origin) for origin in kernel.origins} - {""}
        for node in kernel.source_nodes:
            named, computed = _NUMBER.sub("", node), _bare(facts.functions.get(node, ""))
            if named in FUNCTIONS & listed and computed and computed != named and computed not in listed:
                return _told(
                    _place(contract, kernel, named), f"computes {named} in the node {node}", computed, sure=True
                )
    return None


def _place(contract: Contract, kernel: KernelCall, function: str) -> str:
    """The generated kernel that is named after the function, where a call of a library lists it for its arguments."""
    names = {one.name for one in contract.kernels if one.kind in ("cpp", "triton") and f"_{function}_" in one.name}
    return kernel.name if kernel.kind in ("cpp", "triton") or len(names) != 1 else names.pop()


def _new(contract: Contract, facts: ExportedFacts, named: set[str]) -> list[str]:
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


def _lost(contract: Contract, facts: ExportedFacts, model: ModelEntry | None) -> list[str]:
    """Functions on the way from an input to an output of which the package shows no trace at all."""
    wanted = {_bare(target) for target in facts.functions.values()} & FUNCTIONS
    if not wanted or contract.unknown_lines or any(_is_cut(kernel) for kernel in contract.kernels):
        return []
    text = " ".join(_words(contract))
    code = "\n".join(_sources(model))
    return sorted(name for name in wanted if f"_{name}_" not in text and re.search(rf"\b{name}\s*\(", code) is None)


def _words(contract: Contract) -> Iterator[str]:
    """All that the package says of its operators, each between underscores."""
    for kernel in contract.kernels:
        for word in (kernel.name, *map(_bare, kernel.origins), *kernel.source_nodes, *kernel.arguments):
            bare = _NUMBER.sub("", word.strip("\"' "))
            yield f"_{bare}_"


def _is_cut(kernel: KernelCall) -> bool:
    """A kernel whose name may lack some of its operators, and that has no list of them."""
    return not kernel.origins and kernel.kind == "triton" and len(kernel.name) > _LONGEST_NAME


def _sources(model: ModelEntry | None) -> Iterator[str]:
    if model is not None:
        yield model.wrapper_cpp or ""
        yield from model.kernel_sources.values()


def _modes(contract: Contract, facts: ExportedFacts, model: ModelEntry | None) -> list[Difference]:
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
        _told(bodies[0].name, f"computes gelu (approximate={other!r})", f"gelu (approximate={wanted!r})", sure=False)
    ]


def _computes(text: str, function: str) -> bool:
    return re.search(rf"\b{function}\s*\(", text) is not None


def _text_of(model: ModelEntry | None, body: KernelBody) -> str:
    if model is None:
        return ""
    whole = model.wrapper_cpp if body.member == model.wrapper_member else model.kernel_sources.get(body.member)
    return "\n".join((whole or "").split("\n")[body.line - 1 : body.line - 1 + body.lines])


def _difference(contract: Contract, lost: list[str], new: list[str]) -> Difference:
    with_origins = [kernel for kernel in contract.kernels if kernel.origins]
    names = [
        kernel.name
        for kernel in with_origins
        if new and (new[0] in kernel.source_nodes or new[0] in map(_bare, kernel.origins))
    ]
    subject = names[0] if names else contract.kernels[0].name
    computes = f"computes {listed(new, 6)}" if new else f"does not compute {listed(lost, 6)}"
    return _told(subject, computes, listed(lost, 6) or f"no {listed(new, 6)}", sure=True)


def _told(subject: str, package: str, program: str, *, sure: bool) -> Difference:
    return Difference(
        aspect="operators", kind="functions", subject=subject, package=package, program=program, decisive=sure
    )


def _bare(target: str) -> str:
    """``gelu`` of ``aten.gelu(tanh)`` and of ``aten.gelu_``."""
    parts = target.partition("(")[0].split(".")
    return parts[1].strip("_") if len(parts) > 1 and parts[0] == "aten" else ""
