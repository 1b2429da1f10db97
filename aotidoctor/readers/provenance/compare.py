"""All that can be compared without looking at the bytes of constants."""

from __future__ import annotations

import re

from aotidoctor.model.artifact import ExportedFacts, ModelEntry
from aotidoctor.model.contract import Contract
from aotidoctor.model.operators import foreign
from aotidoctor.model.phrases import listed
from aotidoctor.readers.provenance.calls import compare_call
from aotidoctor.readers.provenance.difference import Compared, Difference, joined
from aotidoctor.readers.provenance.functions import compare_functions
from aotidoctor.readers.provenance.results import compare_constants, compare_outputs


def compare(contract: Contract, facts: ExportedFacts, model: ModelEntry | None = None) -> Compared:
    """A package's contract against a program's facts; ``model`` has the sources of its kernels."""
    parts = (compare_call, compare_outputs, compare_constants)
    return joined([*(part(contract, facts) for part in parts), compare_operators(contract, facts, model)])


# A hint: decompositions and fusion leave names, but not all of them, and make others. Of these operators the name stays
# in the name of the kernel that they are fused into, or in the call that they become.
_LASTING = frozenset({
    "abs", "add", "clamp", "cos", "cumsum", "div", "embedding", "erf", "exp", "gather", "gelu", "index_put", "log",
    "maximum", "mean", "minimum", "mul", "neg", "pow", "prod", "reciprocal", "relu", "remainder", "rsqrt", "sigmoid",
    "sin", "sort", "sqrt", "sub", "sum", "tanh", "where",
})  # fmt: skip
_NUMBER = re.compile(r"_\d+$")


def compare_operators(contract: Contract, facts: ExportedFacts, model: ModelEntry | None) -> Compared:
    """Custom operators, which no decomposition makes, functions, and the names in those of the kernels."""
    if not facts.ops or contract.source != "wrapper.cpp":
        return Compared()
    found = [*_custom(contract, facts), *(compare_functions(contract, facts, model) or _kernels(contract, facts))]
    return Compared(differences=tuple(found), aspects=("operators",))


def _custom(contract: Contract, facts: ExportedFacts) -> list[Difference]:
    theirs = set(foreign(facts.ops))
    extra = sorted(set(foreign(contract.custom_ops)) - theirs)
    if not extra:
        return []
    named = ", ".join(sorted(theirs)) or "none"
    return [_hint("custom", extra[0], f"calls {', '.join(extra)}", f"custom operators: {named}")]


def _kernels(contract: Contract, facts: ExportedFacts) -> list[Difference]:
    """Only where not a single lasting operator of the program has left its name."""
    names = {target.split(".")[1].strip("_") for target in facts.ops if target.startswith("aten.")}
    lasting = sorted(names & _LASTING)
    called = [kernel.name for kernel in contract.kernels]
    left = [origin.split(".")[-1] for kernel in contract.kernels for origin in kernel.origins]
    text = " ".join(f"_{_NUMBER.sub('', name)}_" for name in (*called, *left))
    if not lasting or not called or any(f"_{name}_" in text for name in lasting):
        return []
    kernels, operators = listed(list(dict.fromkeys(called)), 6), listed(lasting, 6)
    return [_hint("kernels", called[0], f"kernels {kernels}", f"operators {operators}")]


def _hint(kind: str, subject: str, package: str, program: str) -> Difference:
    return Difference(aspect="operators", kind=kind, subject=subject, package=package, program=program, decisive=False)
